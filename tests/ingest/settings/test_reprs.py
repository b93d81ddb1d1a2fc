"""Objects as programs print them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rca.ingest.settings.reprs import UNKNOWN, arguments, call_end, scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-2.5e-05", -2.5e-5),
        ("1_000", 1000),
        ("True", True),
        ("false", False),
        ("None", None),
        ("'adamw'", "adamw"),
        ('"a, b"', "a, b"),
        ("(0.9, 0.95)", (0.9, 0.95)),
        ("['q', 'v']", ["q", "v"]),
        ("{'a': 1}", {"a": 1}),
        ("<SchedulerType.LINEAR: 'linear'>", "linear"),
        ("<Stage.two: 2>", 2),
        ("Some(\n 2,\n)", 2),
        ("torch.bfloat16", "torch.bfloat16"),
        ("args.lr", UNKNOWN),
        ("model.parameters()", UNKNOWN),
        ("./out/run", "./out/run"),
        ("[" * 300, "[" * 300),
    ],
)
def test_scalar(text: str, value: Any) -> None:
    assert scalar(text) == value


def test_arguments_split_at_the_top_level_only() -> None:
    text = "lr=0.1, betas=(0.9, 0.99), name='a, b=c', nested={'x': 1, 'y': [2]}, model.dim: 3, 'quoted': 4, lr_fn=f.g"
    assert arguments(text) == {
        "lr": 0.1,
        "betas": (0.9, 0.99),
        "name": "a, b=c",
        "nested": {"x": 1, "y": [2]},
        "model.dim": 3,
        "quoted": 4,
    }


def test_the_end_of_a_call() -> None:
    assert call_end("f(a=(1, ')'), b=')')x", 1) == 20
    assert call_end("f(a=1", 1) is None


@given(st.text(alphabet="abl=:,'\"()[]{}<>\\ 0.1e\n", max_size=200))
def test_any_text_ends(text: str) -> None:
    assert isinstance(arguments(text), dict)
    scalar(text)
    call_end(text, 0)
