"""Lines of the terminal are measured in columns."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from rca.report.wrapping import columns, cut, padded, wrapped

CHINESE = "损失缩放因子不断下降的同时 loss 本身就是非有限值，因此是前向计算溢出（上限 65504），任何缩放因子都无济于事。"


@pytest.mark.parametrize("width", [20, 41, 80])
def test_no_line_is_longer_and_nothing_is_lost(width: int) -> None:
    lines = wrapped(CHINESE, width, first="   = 因为: ", rest=" " * 10)
    assert max(map(cell_len, lines)) <= width
    assert len(lines) == 1 or min(map(cell_len, lines[:-1])) > width - 12
    assert "".join(lines).replace(" ", "") == ("   = 因为: " + CHINESE).replace(" ", "")


def test_a_mark_stays_with_its_character() -> None:
    lines = [line for width in range(12, 60) for line in wrapped(CHINESE, width)]
    assert [line for line in lines if line[0] in "，。）" or line[-1] == "（"] == []


def test_words_stay_whole() -> None:
    assert wrapped("abc 见 rank_3.log:1182", 10) == ["abc 见", "rank_3.log:1182"]
    assert wrapped("plain words only", 11, first="> ", rest="  ") == ["> plain", "  words", "  only"]
    assert wrapped("", 10) == wrapped("", 10, first="见") == []


def test_columns_and_cuts() -> None:
    assert (columns("ab"), columns("损失"), columns("a损")) == (2, 4, 3)
    assert (cut("损失缩放", 8), cut("损失缩放", 7), cut("损失缩放", 6)) == ("损失缩放", "损失缩…", "损失…")
    assert padded("损", 4) == "损  "
