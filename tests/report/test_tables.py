from __future__ import annotations

import pytest

from rca.diagnosis import Diagnosis, Experiment, Table
from rca.report.html import HtmlReport
from rca.report.markdown import MarkdownReport
from rca.report.table_text import table_text
from rca.report.tables import arm_figures, figure_columns, first_with
from rca.report.text import TextReport

TABLE = Table(
    title="Predicted peak memory in GiB, on a device with 80.0 (76.2 usable)",
    columns=("Change", "Weights", "Activations", "Peak", "Fits", "What it asks of you"),
    rows=(
        ("as the run", "12.6", "70.1", "82.7", "no", ""),
        ("gradient | checkpointing", "12.6", "3.4", "16.0", "fits", "about a third more arithmetic a step"),
        ("a change whose name is so long that it needs more than one line", "1.0", "2.0", "3.0", "fits", "nothing"),
    ),
    marked=1,
    paste="gradient_checkpointing=True\nsecond_line=1",
    note="Not in it: fragmentation.",
)


def holding(sample: Diagnosis, *, times: int = 1) -> Diagnosis:
    """The sample with experiments that hold the table."""
    found = [
        Experiment(
            id=f"e{number}", title=f"Try {number}", question="?", prediction="p", verdict="confirmed", table=TABLE
        )
        for number in range(times)
    ]
    return sample.model_copy(update={"experiments": tuple(found)})


def test_columns_of_figures_are_known_by_their_cells() -> None:
    assert figure_columns(TABLE) == (False, True, True, True, False, False)
    assert figure_columns(TABLE.model_copy(update={"rows": ()})) == (False,) * 6


def test_the_page_marks_the_row_to_choose_and_shows_the_table_once(sample: Diagnosis) -> None:
    page = HtmlReport().render(holding(sample, times=2))
    body = page.split('<script type="application/json"')[0]
    assert body.count("<caption>Predicted peak memory in GiB") == 1
    assert body.count('<tr class="best">') == 1
    assert '<td class="num">16.0</td>' in body
    assert "cheapest that fits" in body
    assert "second_line=1" in body
    assert "stands under Try 0" in body


def test_markdown_holds_the_table_with_bars_escaped(sample: Diagnosis) -> None:
    lines = MarkdownReport().render(holding(sample, times=2)).splitlines()
    rows = [line for line in lines if "checkpointing**" in line]
    assert len(rows) == 1
    assert rows[0].count(" | ") == 5
    assert "(cheapest that fits)" in rows[0]
    assert "gradient_checkpointing=True" in lines


def test_the_summary_has_the_lines_to_paste(sample: Diagnosis) -> None:
    lines = TextReport().render(holding(sample, times=2)).splitlines()
    assert lines.count("          gradient_checkpointing=True") == 1
    assert "          second_line=1" in lines


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_terminal_gets_no_line_that_is_too_long(width: int) -> None:
    lines = table_text(TABLE, width=width).splitlines()
    assert max(map(len, lines)) <= width
    marked = [line for line in lines if line.startswith(">")]
    assert len(marked) == 1
    assert "16.0" in marked[0]
    assert ("about a third" in marked[0]) == (width == 120)


def test_a_table_belongs_to_the_first_that_holds_it(sample: Diagnosis) -> None:
    experiments = holding(sample, times=2).experiments
    assert first_with(TABLE, experiments) is experiments[0]
    assert first_with(TABLE.model_copy(update={"note": ""}), experiments) is None


def test_figures_of_the_arms_stand_beside_each_other() -> None:
    details = (("chance", "5.55"), ("treatment: loss", "2.1"), ("control: loss", "5.5"), ("control: shows", "NaN"))
    found = arm_figures(details)
    assert found.arms == ("control", "treatment")
    assert found.rows == (("loss", "5.5", "2.1"), ("shows", "NaN", ""))
    assert found.others == (("chance", "5.55"),)
