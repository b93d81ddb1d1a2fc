from __future__ import annotations

import re

import pytest

from rca.diagnosis import Diagnosis, Setting, SourceRecord, TimelineEntry
from rca.report.markdown import LIMIT, MARK, MarkdownReport, summary
from rca.report.markdown_marks import code, escaped, fenced

from .samples import lr_too_high


def test_fits_every_tracker(sample: Diagnosis) -> None:
    text = MarkdownReport().render(sample)
    assert len(text) < 30_000
    assert text.startswith(MARK)
    assert text.count("<details>") == text.count("</details>")
    assert "![" not in text
    assert sum(line.startswith("```") for line in (x.strip() for x in text.splitlines())) % 2 == 0


def test_long_reports_lose_the_least_important_parts_and_say_so() -> None:
    diagnosis = lr_too_high()
    long = diagnosis.model_copy(
        update={
            "timeline": tuple(
                TimelineEntry(id=str(n), kind="log", name="x" * 80, source="s" * 90, text="t" * 150)
                for n in range(3000)
            ),
            "sources": tuple(
                SourceRecord(path="p" * 190 + str(n), why="w" * 380, status="skipped") for n in range(900)
            ),
            "warnings": ("w" * 390,) * 400,
            "settings": tuple(
                Setting(group="system", name="n" * 190, value="v" * 190, baseline="b" * 190) for _ in range(60)
            ),
        }
    )
    text = MarkdownReport().render(long)
    assert len(text) <= LIMIT
    assert "What to change" in text
    assert "shortened" in text


def test_summary_is_the_answer_alone(sample: Diagnosis) -> None:
    text = summary(sample)
    assert escaped(sample.verdict.sentence) in text
    assert len(text) < 6_000
    assert "<details>" not in text


@pytest.mark.parametrize(
    "hostile",
    [
        "<img src=x onerror=alert(1)>",
        "[click](javascript:alert(1))",
        "# heading",
        "| a | b |",
        "@everyone #12",
        "**bold** __x__ ~~y~~",
        "`code` ```fence```",
        "&lt;b&gt;",
        "line\nbreak\r\n> quote",
    ],
)
def test_prose_cannot_become_markup(hostile: str) -> None:
    shown = escaped(hostile)
    assert "\n" not in shown
    assert not re.search(r"(?<!\\)[`*_\[\]#|~>]", shown)
    assert "<" not in shown
    assert not re.search(r"@\w", shown)


@pytest.mark.parametrize("text", ["a`b", "``", "`", "a``b```c", "|", "x" * 500, "a\nb"])
def test_code_spans_hold_any_text(text: str) -> None:
    shown = code(text)
    fence = re.match("`+", shown)
    assert fence is not None
    assert shown.endswith(fence[0])
    assert fence[0] not in shown[len(fence[0]) : -len(fence[0])].replace(fence[0] + "`", "")
    assert "|" not in shown
    assert "\n" not in shown


def test_fences_are_longer_than_what_they_hold() -> None:
    lines = fenced("a\n````\n</details>\n", "py<thon>").splitlines()
    assert lines[0] == "`````python"
    assert lines[-1] == "`````"


def test_an_experiment_says_that_its_fault_was_planted_and_no_command_is_cut() -> None:
    diagnosis = lr_too_high()
    first, *rest = diagnosis.experiments

    def told(**changed: object) -> str:
        experiments = (first.model_copy(update=changed), *rest)
        return MarkdownReport().render(diagnosis.model_copy(update={"experiments": experiments}))

    assert "confirmed on a planted fault.**" in told(planted=True)
    assert "planted" not in told(planted=False)
    assert f"`{'x' * 299}`" in told(repro="x" * 299)
    assert "xxx" not in told(repro="x" * 2_000)
