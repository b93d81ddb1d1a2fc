"""The comparison with a healthy run, in every format."""

from __future__ import annotations

import math

from rca.baseline import Baseline, CurveDifference, Difference, MessageDifference
from rca.diagnosis import Diagnosis
from rca.report.charts import _curves as curves
from rca.report.html import HtmlReport
from rca.report.json_report import JsonReport
from rca.report.markdown import MarkdownReport
from rca.report.text import TextReport
from rca.report.trim import STEPS, _shorter

from .page import Page
from .samples import healthy, lr_too_high

HOSTILE = "</td><script>alert(1)</script>"
NEW = MessageDifference(kind="template", status="new", name="it <*>", severity="error", text=HOSTILE, count=3)


def compared(diagnosis: Diagnosis | None = None, **changes: object) -> Diagnosis:
    line = CurveDifference(
        name="loss",
        label="Training loss",
        points=200,
        value=math.nan,
        baseline=2.5,
        parts_at=400,
        says="Training loss is NaN at the last common steps, 2.5 in the healthy run; they part at step 400.",
        healthy=tuple((float(step), 10 - step / 100) for step in range(0, 900, 2)),
    )
    baseline = Baseline(
        name="nightly-12",
        path="nightly-12",
        files=3,
        used=True,
        unchanged=12,
        differences=(
            Difference(group="configuration", name="learning_rate", value="0.03", baseline="0.003", ratio=10.0),
            Difference(group="configuration", name="note", value=HOSTILE, baseline=None),
            Difference(group="packages", name="torch", value=None, baseline="2.4.0"),
        ),
        curves=(line,),
        messages=(NEW, NEW.model_copy(update={"status": "both", "kind": "signature", "name": "nccl.warn"})),
    )
    chosen = diagnosis or lr_too_high()
    return chosen.model_copy(update={"baseline": baseline.model_copy(update=changes)})


def test_the_page_shows_both_values_of_everything_that_differs() -> None:
    page = Page(HtmlReport().render(compared()))
    section = next(element for element in page.elements if element.attributes.get("id") == "baseline")
    assert section.tag == "section"
    text = " ".join(" ".join(element.text) for element in page.elements)
    for part in ("nightly-12", "learning_rate", "0.003", "not set", "they part at step 400", "nccl.warn"):
        assert part in text
    scripts = [e for e in page.elements if e.tag == "script" and e.attributes.get("type") != "application/json"]
    assert not [script for script in scripts if "alert" in " ".join(script.text)]
    assert any(element.attributes.get("href") == "#baseline" for element in page.elements)


def test_a_page_without_a_baseline_does_not_speak_of_one() -> None:
    assert not [e for e in Page(HtmlReport().render(healthy())).elements if e.attributes.get("id") == "baseline"]
    assert "unlike" not in TextReport().render(healthy())
    assert "Unlike" not in MarkdownReport().render(healthy())


def test_what_makes_the_comparison_worthless_is_said() -> None:
    note = "The baseline failed itself (memory.leak, 80%)."
    diagnosis = compared(used=False, notes=(note,))
    assert note in TextReport(width=400).render(diagnosis)
    assert "failed itself" in MarkdownReport().render(diagnosis)
    assert "failed itself" in HtmlReport().render(diagnosis)


def test_the_healthy_curve_is_dashed_in_the_colour_of_its_own_and_no_longer_than_it() -> None:
    (chart,) = curves(compared())[:1]
    lines = [layer for layer in chart.spec["vconcat"][0]["layer"] if layer["mark"].get("type") == "line"]
    colours, dashes = (lines[0]["encoding"][name]["scale"] for name in ("color", "strokeDash"))
    place = colours["domain"].index("training loss, healthy run")
    assert colours["range"][place] == colours["range"][colours["domain"].index("training loss")]
    assert dashes["range"][place] != dashes["range"][0]
    drawn = [row["x"] for row in lines[0]["data"]["values"] if row["s"].endswith("healthy run")]
    assert max(drawn) <= 448


def test_the_terminal_names_the_differences_within_its_width() -> None:
    text = TextReport().render(compared())
    assert "= unlike nightly-12: learning_rate 0.03 (0.003)" in text
    assert max(len(line) for line in text.splitlines() if not line.startswith(" " * 10)) <= 80


def test_markdown_holds_a_table_in_which_nothing_is_markup() -> None:
    text = MarkdownReport().render(compared())
    assert "| `learning_rate` | `0.03` | `0.003` |" in text
    assert "<script>" not in text.replace(f"`{HOSTILE}`", "")


def test_json_and_the_shorter_versions_keep_it() -> None:
    diagnosis = compared()
    again = Diagnosis.model_validate_json(JsonReport().render(diagnosis))
    assert again.baseline is not None
    assert again.baseline.differences == diagnosis.baseline.differences  # type: ignore[union-attr]
    shorter = _shorter(diagnosis, STEPS[-1])
    assert shorter.baseline is not None
    assert len(shorter.baseline.curves[0].healthy) <= STEPS[-1].points + 2
