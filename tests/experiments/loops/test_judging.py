from __future__ import annotations

import math

import pytest

from rca.experiments.interface import RunProfile
from rca.experiments.loops.judging import contrast, decide, reproduction
from rca.rules.schema import LoopRule

RATIO = LoopRule(runs="load", figure="time of a step", at_least=1.3, below=1.1, shows={"wait": 0.3}, agrees={"wait": "data_share"})  # fmt: skip # noqa: E501
DIFFERENCE = LoopRule(runs="repeat", figure="share", compares="difference", at_least=0.3, below=0.1)


def figures(*values: float) -> list[dict[str, float]]:
    return [{"time": value, "wait": 0.5} for value in values]


def test_equal_pairs_have_no_interval() -> None:
    found = contrast(DIFFERENCE, "time", figures(1.0, 1.0), figures(0.25, 0.25))
    assert (found.value, found.low, found.high) == (0.75, 0.75, 0.75)


def test_a_ratio_is_a_geometric_mean_with_an_interval() -> None:
    found = contrast(RATIO, "time", figures(2.0, 8.0), figures(1.0, 1.0))
    assert found.value == pytest.approx(4.0)
    assert found.low < 1.3 < found.high


@pytest.mark.parametrize(
    ("control", "treatment", "decision"),
    [
        ((2.0, 2.1, 1.9), (1.0, 1.0, 1.0), "confirmed"),
        ((1.2, 1.21, 1.2), (1.0, 1.0, 1.0), "mitigates"),
        ((1.0, 1.01, 1.0), (1.0, 1.0, 1.0), "refuted"),
        ((1.0, 3.0, 1.1), (1.0, 1.0, 1.0), "inconclusive"),
    ],
)
def test_only_the_whole_interval_decides(
    control: tuple[float, ...], treatment: tuple[float, ...], decision: str
) -> None:
    assert decide(RATIO, contrast(RATIO, "time", figures(*control), figures(*treatment))) == decision


def test_nothing_left_is_a_large_ratio_not_an_error() -> None:
    found = contrast(RATIO, "time", figures(1.0), figures(0.0))
    assert math.isfinite(found.value)
    assert found.value > 1e6


def test_the_control_must_show_what_the_run_recorded() -> None:
    assert reproduction(RATIO, figures(1.0), RunProfile(data_share=0.6)).shown
    assert reproduction(RATIO, figures(1.0), RunProfile()).shown
    far = reproduction(RATIO, figures(1.0), RunProfile(data_share=0.1))
    assert not far.shown
    assert "0.5, the run recorded 0.1" in far.says
    little = reproduction(RATIO, [{"wait": 0.1}], RunProfile())
    assert not little.shown
