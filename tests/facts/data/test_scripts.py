"""What scripts do, by their source."""

from __future__ import annotations

import pytest

from ..tables import Run


@pytest.mark.parametrize(
    ("calls", "lacking"),
    [
        ({"without_gradient": True, "trains": False, "evaluation_mode": False}, True),
        ({"without_gradient": True, "trains": False, "evaluation_mode": True}, False),
        ({"without_gradient": True, "trains": True, "evaluation_mode": False}, None),
        ({"without_gradient": False, "trains": False, "evaluation_mode": False}, None),
    ],
)
def test_a_script_that_predicts_should_evaluate(calls: dict[str, bool], lacking: bool | None) -> None:
    run = Run()
    run.source("demo.py").add(kind="artifact", name="script.calls", line=3, attrs=calls)
    assert run.values().get("script.no_evaluation_mode") is lacking
