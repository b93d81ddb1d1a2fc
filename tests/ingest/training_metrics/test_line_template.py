"""A learnt shape reads the next line as a first look would."""

# ruff: noqa: E501 - log lines stand as they are printed

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rca.ingest.training_metrics.counters import position
from rca.ingest.training_metrics.line_template import LineTemplate, LineTemplates
from rca.ingest.training_metrics.pairs import pairs, slots

LINES = [
    "step: 20  loss:  8.8918  grad_norm:  2.5177  memory: 61.07GiB(64.30%)  tps: 12,645  mfu: 33.43%",
    "Epoch: [0]  [  10/2031]  eta: 15:49  lr: 0.002000  loss: 37.1221 (36.5198)  time: 0.4687  data: 0.0121  max mem: 6312",
    "step   10/100 | loss 3.400000 (+nanz)| norm 1.2000 (+nanz)| lr 3.00e-04 | 100.00 ms | 123456 tok/s",
    " iteration       10/    1000 | consumed samples: 1024 | elapsed time per iteration (ms): 1500.0 | lm loss: 1.2E+01 |",
    "13:00:58 step     78 loss 3.5064 it/s 1.25 tok/s/gpu 21545 data_wait 1.5ms comm 9.7%",
]


def look(message: str) -> tuple[dict[str, int | None], list[tuple[str, float, str | None]]]:
    place = position(message)
    counters = {name: getattr(place, name) for name in ("step", "total", "epoch", "epochs", "batch", "length")}
    return counters, [pair[:3] for pair in pairs(message)]


def like(
    template: LineTemplate, message: str
) -> tuple[dict[str, int | None], list[tuple[str, float, str | None]]] | None:
    found = template.read(message)
    if found is None:
        return None
    place, values = found
    counters = {name: getattr(place, name) for name in ("step", "total", "epoch", "epochs", "batch", "length")}
    return counters, [pair[:3] for pair in values]


@pytest.mark.parametrize("line", LINES)
@given(numbers=st.lists(st.integers(0, 9), min_size=80, max_size=80))
def test_other_digits_read_the_same(line: str, numbers: list[int]) -> None:
    digits = iter(numbers)
    other = "".join(str(next(digits)) if char.isdigit() and char != "0" else char for char in line)
    template = LineTemplate(line, position(line), slots(line))
    counters, values = like(template, other) or ({}, [])
    expected_counters, expected = look(other)
    assert counters == expected_counters
    assert sorted(map(repr, values)) == sorted(map(repr, expected))


def test_not_a_number_fits_and_another_unit_does_not() -> None:
    line = "step 10 loss 2.5 mem 9.8G"
    template = LineTemplate(line, position(line), slots(line))
    assert like(template, "step 11 loss nan mem 9.8G") is not None
    assert like(template, "step 11 loss 2.5 mem 980M") is None
    assert like(template, "step 11 loss 2.5") is None


def test_the_last_fitting_shape_comes_first_and_learning_ends() -> None:
    templates = LineTemplates()
    for number in range(200):
        line = f"step {number} {'x' * number} loss 2.5"
        templates.learn(line, position(line), slots(line))
    assert templates.read("step 5 " + "x" * 63 + " loss 2.5") is not None
    assert templates.read("step 5 " + "x" * 150 + " loss 2.5") is None
    assert LineTemplates().read("step 5 loss 2.5") is None
