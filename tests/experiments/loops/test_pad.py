from __future__ import annotations

import pytest

from rca.experiments.loops.config import LoopConfig, Setting
from rca.experiments.loops.pad import lengths_with, pad


@pytest.mark.parametrize("share", [0.1, 0.4, 0.71])
def test_drawn_lengths_pad_as_much_as_asked(share: float) -> None:
    lengths = lengths_with(share, batch=16, maximum=0)
    found = pad(LoopConfig(loop="pad", batch=16), Setting(lengths=lengths))
    assert found["pad_share"] == pytest.approx(share, abs=0.01)


def test_lengths_under_a_maximum() -> None:
    lengths = lengths_with(0.8, batch=16, maximum=512)
    config = LoopConfig(loop="pad", batch=16, padding="max_length")
    assert max(lengths) <= 512
    assert pad(config, Setting(lengths=lengths, maximum=512))["pad_share"] == pytest.approx(0.8, abs=0.02)


def test_even_lengths_need_no_padding() -> None:
    found = pad(LoopConfig(loop="pad", batch=4), Setting(lengths=(7,) * 10))
    assert found == {"pad_share": 0.0, "positions": 1.0}


def test_grouping_never_pads_more() -> None:
    setting = Setting(lengths=tuple(range(1, 200)))
    mixed = pad(LoopConfig(loop="pad", batch=8), setting)
    grouped = pad(LoopConfig(loop="pad", batch=8, grouping="length"), setting)
    assert grouped["positions"] < mixed["positions"]
