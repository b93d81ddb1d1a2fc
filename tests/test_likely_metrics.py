"""Which metric of a run is its loss, and which time is that of a step."""

from __future__ import annotations

import numpy as np
import pytest

from rca.likely_metrics import with_likely
from rca.metric_series import MetricSeries


def run(**curves: list[float]) -> dict[str, tuple[MetricSeries, ...]]:
    return {
        name: (
            MetricSeries(
                name=name,
                source="train.log",
                rank=None,
                step=np.arange(len(values), dtype=float),
                value=np.array(values),
                event_id=np.arange(len(values)),
                unit="s" if name.endswith("time") else "",
            ),
        )
        for name, values in curves.items()
    }


FALLING = [3.0, 2.5, 2.1, 1.8]
OTHER = [0.7, 0.6, 0.5, 0.4]


def loss_of(**curves: list[float]) -> list[float] | None:
    found = with_likely(run(**curves)).get("loss")
    return None if found is None else found[0].value.tolist()


@pytest.mark.parametrize("name", ["ce", "batch_bce", "mlm_loss", "nll", "cost", "train_mse", "train/ctc"])
def test_the_only_loss_is_the_loss(name: str) -> None:
    assert loss_of(**{name: FALLING, "accuracy": OTHER}) == FALLING


def test_a_whole_stands_for_its_parts() -> None:
    assert loss_of(mlm=FALLING, nsp_loss=OTHER, total=[4.0, 3.2, 2.6, 2.2]) == [4.0, 3.2, 2.6, 2.2]
    whole = [a + b for a, b in zip(FALLING, OTHER, strict=True)]
    assert loss_of(box_loss=FALLING, cls_loss=OTHER, det_loss=whole) == whole


@pytest.mark.parametrize(
    "curves",
    [
        {"loss": OTHER, "ce": FALLING},
        {"box_loss": FALLING, "cls_loss": OTHER},
        {"d_loss": FALLING},
        {"val_ce": FALLING},
        {"total": FALLING, "accuracy": OTHER},
        {"mse": OTHER, "eval_loss": OTHER},
    ],
)
def test_none_is_guessed(curves: dict[str, list[float]]) -> None:
    assert loss_of(**curves) == curves.get("loss")


def test_its_validation_comes_with_it() -> None:
    found = with_likely(run(ce=FALLING, val_ce=OTHER))
    assert found["eval_loss"][0].value.tolist() == OTHER


def test_a_nameless_time_is_of_a_step_unless_it_counts_on() -> None:
    assert with_likely(run(line_time=[0.3, 0.3, 9.0, 0.3]))["step_time"][0].value.tolist() == [0.3, 0.3, 9.0, 0.3]
    assert "step_time" not in with_likely(run(line_time=[1.0, 2.1, 3.0, 4.2]))
