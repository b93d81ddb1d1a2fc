"""What Python scripts call."""

from __future__ import annotations

import json

import pytest

from rca.events import EventBuilder
from rca.ingest.settings.script_calls import add_calls

PREDICTS = (
    "import torch\nnet = build()\nnet.load_state_dict(torch.load('a.pt'))\nwith torch.no_grad():\n    y = net(x)\n"
)


def calls(text: str) -> dict[str, bool] | None:
    out = EventBuilder("demo.py")
    add_calls(out, text)
    rows = out.build().to_pylist()
    return None if not rows else json.loads(rows[0]["attrs"])


def test_a_script_that_predicts() -> None:
    found = calls(PREDICTS)
    assert found == {"loads_weights": True, "without_gradient": True, "trains": False, "evaluation_mode": False}


def test_evaluation_mode_and_training_are_seen() -> None:
    assert (calls(PREDICTS + "net.eval()\n") or {})["evaluation_mode"] is True
    assert (calls(PREDICTS + "loss.backward()\n") or {})["trains"] is True


@pytest.mark.parametrize("text", ["x = 1\n", "def broken(:\n", "(" * 5000, "\x00"])
def test_other_source_adds_nothing(text: str) -> None:
    assert calls(text) is None
