"""Progress bars and printed dicts on their own."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rca.ingest.training_metrics.bars import bar
from rca.ingest.training_metrics.dicts import is_summary, logged_steps, metric_dict


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" 45%|####5     | 45/100 [00:10<00:12,  4.41it/s]", ("train", 45, 100, 4.41, "it/s")),
        ("  0%|          | 0/600 [00:00<?, ?it/s]", ("train", 0, 600, None, "it/s")),
        ("Epoch 3:  41%|####      | 87/212 [00:11<00:16,  7.61it/s, v_num=3]", ("train", 87, 212, 7.61, "it/s")),
        ("Loading checkpoint shards: 100%|#####| 3/3 [00:21<00:00,  7.03s/it]", ("other", 3, 3, 7.03, "s/it")),
        (
            "Loading safetensors checkpoint shards:  33% Completed | 1/3 [00:00<00:00, 31.41it/s]",
            (None, 0, 0, None, None),
        ),
        (
            "Tokenizing: 100%|##########| 5200/5200 [00:06<00:00, 803.22 examples/s]",
            ("other", 5200, 5200, 803.22, "examples/s"),
        ),
        ("Map:  50%|#####     | 1.2k/2.4k [00:06<00:06, 803 examples/s]", ("other", 1200, 2400, 803.0, "examples/s")),
        ("Evaluating:   8%|8         | 400/4881 [03:51<43:07,  1.73it/s]", ("eval", 400, 4881, 1.73, "it/s")),
        ("100%|██████████| 1250/1250 [2:07:05<00:00,  6.10s/it]", ("train", 1250, 1250, 6.1, "s/it")),
        ("|   0  N/A  45%| no bar |", (None, 0, 0, None, None)),
    ],
)
def test_bar(text: str, expected: tuple[str | None, int, int, float | None, str | None]) -> None:
    found = bar(text)
    if expected[0] is None:
        assert found is None or found.kind == "other"
        return
    assert found is not None
    assert (found.kind, found.done, found.total, found.rate, found.unit) == expected


@given(st.text(alphabet="0123456789%|/[]<>,:. kMGitsE#=-", max_size=300))
def test_any_bar(text: str) -> None:
    found = bar(text)
    assert found is None or found.done >= 0


def test_a_dict_needs_a_metric() -> None:
    assert metric_dict("{'loss': 2.0, 'name': 'x', 'epoch': 1}") == {"loss": 2.0, "epoch": 1.0}
    assert metric_dict("x {'a': 1, 'b': 2}") is None
    assert metric_dict("no dict") is None
    assert math.isnan((metric_dict("{'eval_loss': nan}") or {})["eval_loss"])
    assert is_summary({"train_runtime": 1.0, "train_loss": 2.0})


@pytest.mark.parametrize(
    ("bars", "count", "expected"),
    [
        ([(0, 1), (1, 2), (2, 3)], 3, [1, 2, 3]),
        ([(0, 0), (5, 50), (10, 100)], 10, list(range(10, 110, 10))),
        ([(0, 0), (4, 50), (9, 100)], 10, list(range(10, 110, 10))),
        ([(0, 200), (2, 220), (4, 240)], 4, [210, 220, 230, 240]),
        ([(4, 4200)], 4, None),
        ([], 4, None),
        ([(0, 0), (3, 10), (3, 500)], 3, None),
    ],
)
def test_steps_of_dicts_between_bars(bars: list[tuple[int, int]], count: int, expected: list[int] | None) -> None:
    assert logged_steps(bars, count) == expected
