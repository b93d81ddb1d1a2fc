from __future__ import annotations

from collections.abc import Callable

import pytest

from rca.diagnosis import Diagnosis, Series, SourceRecord, TimelineEntry
from rca.report.html import HtmlReport
from rca.report.trim import GOAL, LIMIT, fit_to, nearest

from .page import Page
from .samples import lr_too_high, oom_on_many_ranks


def entries(count: int, *, failing: int | None = None) -> tuple[TimelineEntry, ...]:
    return tuple(
        TimelineEntry(
            id=f"e{n}",
            kind="log",
            name="x",
            source="a.log",
            line=n,
            text="x" * 300,
            role="initiating" if n == failing else None,
        )
        for n in range(count)
    )


def test_small_reports_are_not_touched() -> None:
    seen: list[Diagnosis] = []

    def page(diagnosis: Diagnosis) -> str:
        seen.append(diagnosis)
        return "small"

    assert fit_to(lr_too_high(), page) == "small"
    assert seen == [lr_too_high()] or seen[0] is not None
    assert len(seen) == 1
    assert seen[0].warnings == lr_too_high().warnings


def test_large_reports_shrink_and_say_so() -> None:
    large = lr_too_high().model_copy(update={"timeline": entries(30_000, failing=20_000)})
    html = HtmlReport().render(large)
    assert len(html.encode()) <= GOAL
    page = Page(html)
    assert "shortened" in "".join(page.all("section", id="inputs")[0].text)
    assert page.all("tr", id="tl-e20000")


def test_nothing_is_too_large_in_the_end() -> None:
    diagnosis = lr_too_high()
    lead = diagnosis.hypotheses[0]
    evidence = tuple(
        e.model_copy(update={"id": f"{e.id}-{n}", "says": "s" * 20_000}) for n in range(300) for e in lead.evidence_for
    )
    huge = diagnosis.model_copy(
        update={
            "hypotheses": (lead.model_copy(update={"evidence_for": evidence}),) * 30,
            "sources": tuple(SourceRecord(path="p" * 4_000, warnings=("w" * 4_000,) * 5) for _ in range(2_000)),
            "series": tuple(Series(name=f"m{n}", label="m" * 3_000, points=((0.0, 1.0),) * 2_000) for n in range(200)),
            "warnings": ("w" * 100_000,) * 100,
        }
    )
    html = HtmlReport().render(huge)
    assert len(html.encode()) < LIMIT
    assert "shortened" in html
    Page(html)


def test_nearest_keeps_more_before_the_failure_than_after() -> None:
    kept = nearest(entries(1_000, failing=500), 100)
    assert len(kept) == 100
    before = [e for e in kept if (e.line or 0) < 500]
    assert len(before) == 75
    assert nearest(entries(1_000), 10)[-1].line == 999
    assert len(nearest(entries(5), 10)) == 5


def test_a_shortened_list_of_files_does_not_change_how_many_were_read() -> None:
    sources = [SourceRecord(path=f"rank_{n:05d}.log", kind="log", lines=9) for n in range(9000)]
    sources.append(SourceRecord(path="z.bin", status="skipped", why="It is a program."))
    base = lr_too_high()
    run = base.run.model_copy(update={"files": len(sources)})
    page = HtmlReport().render(base.model_copy(update={"sources": tuple(sources), "run": run}))
    assert "9,000 files read, 1 skipped" in page
    assert "z.bin" in page
    assert "rank_08000.log" not in page


def huge_text() -> Diagnosis:
    diagnosis = lr_too_high()
    lead = diagnosis.hypotheses[0]
    evidence = lead.evidence_for[0].model_copy(update={"says": "s" * 5_000_000, "text": "t" * 5_000_000})
    return diagnosis.model_copy(update={"hypotheses": (lead.model_copy(update={"evidence_for": (evidence,)}),)})


def many_experiments() -> Diagnosis:
    diagnosis = lr_too_high()
    first = diagnosis.experiments[0]
    tried = tuple(first.model_copy(update={"id": f"e{n}", "title": f"Try {n}"}) for n in range(2_000))
    return diagnosis.model_copy(update={"experiments": tried})


def many_curves() -> Diagnosis:
    points = tuple((float(step), float(step)) for step in range(400))
    series = tuple(Series(name=f"m{n}", label=f"metric {n}", points=points) for n in range(2_000))
    return lr_too_high().model_copy(update={"series": series})


def many_ranks() -> Diagnosis:
    diagnosis = oom_on_many_ranks()
    entry = diagnosis.timeline[0]
    count = 20_000
    run = diagnosis.run.model_copy(
        update={"ranks": tuple(range(count)), "hosts": tuple(f"node{n}" for n in range(count))}
    )
    timeline = tuple(entry.model_copy(update={"id": f"r{n}", "rank": n}) for n in range(count))
    return diagnosis.model_copy(update={"timeline": timeline, "run": run})


@pytest.mark.parametrize("large", [huge_text, many_experiments, many_curves, many_ranks])
def test_whatever_there_is_too_much_of_is_shortened(large: Callable[[], Diagnosis]) -> None:
    diagnosis = large()
    html = HtmlReport().render(diagnosis)
    assert len(html.encode()) <= GOAL
    page = Page(html)
    assert "shortened" in "".join(page.all("section", id="inputs")[0].text)
    assert page.text_of("h1") == diagnosis.verdict.sentence


def test_a_usual_report_is_far_smaller(sample: Diagnosis) -> None:
    assert len(HtmlReport().render(sample).encode()) < 500_000
