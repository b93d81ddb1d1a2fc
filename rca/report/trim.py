"""Shortening a diagnosis until its page is small enough to attach and to open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rca.baseline import Baseline
from rca.diagnosis import Diagnosis, Evidence, Experiment, Hypothesis, TimelineEntry
from rca.leads import Unexplained
from rca.report.chart_specs.curves import downsample
from rca.report.words import say

GOAL = 2_000_000
"""Bytes above which the page is shortened: a page of 2.6 MB took 2.9 s longer to open (measured)."""
LIMIT = 8_000_000
"""Bytes no page exceeds: trackers refuse attachments above 10 MB by default (Jira)."""


class Measure(NamedTuple):
    """How much of each list and text is kept."""

    entries: int
    points: int
    items: int
    characters: int


STEPS = (Measure(2_000, 400, 600, 4_096), Measure(1_000, 240, 400, 2_000), Measure(400, 160, 200, 1_000))
LAST = 16
"""Items of any list in the last resort; with texts of at most LAST_TEXT characters the page stays far below LIMIT."""
LAST_TEXT = 240


def fit_to(diagnosis: Diagnosis, page: Callable[[Diagnosis], str], *, goal: int = GOAL) -> str:
    """The longest version of the page that is small enough; the last resort is the answer in any case."""
    for measure in (None, *STEPS):
        version = diagnosis if measure is None else _shorter(diagnosis, measure)
        if len(version.model_dump_json()) <= goal:
            text = page(version)
            if len(text.encode()) <= goal:
                return text
    notice = say("trim.notice", what=say("trim.everything"))
    bare = diagnosis.model_copy(update={"warnings": (notice, *diagnosis.warnings)})
    return page(Diagnosis.model_validate(_bare(bare.model_dump())))


def _shorter(diagnosis: Diagnosis, measure: Measure) -> Diagnosis:
    """A shorter version with a notice of what is missing."""
    items, chars = measure.items, measure.characters
    what = [say("trim.contexts"), say("trim.timeline"), say("trim.points"), say("trim.scripts")]
    what += [say("trim.settings", count=items), say("trim.sources", count=items), say("trim.texts")]
    return diagnosis.model_copy(
        update={
            "hypotheses": tuple(
                _hypothesis(h, lead=n == 0, chars=chars) for n, h in enumerate(diagnosis.hypotheses[:20])
            ),
            "experiments": tuple(_experiment(item, most=8 * chars) for item in diagnosis.experiments[:20]),
            "log": diagnosis.log[:50],
            "timeline": tuple(
                entry.model_copy(update={"text": entry.text[:chars]})
                for entry in nearest(diagnosis.timeline, measure.entries)
            ),
            "series": tuple(
                s.model_copy(update={"points": tuple(downsample(s.points, measure.points // 2)[: 2 * measure.points])})
                for s in diagnosis.series[:40]
            ),
            "settings": tuple(s.model_copy(update={"value": s.value[:chars]}) for s in diagnosis.settings[:items]),
            "baseline": None if diagnosis.baseline is None else _baseline(diagnosis.baseline, measure),
            "sources": tuple(
                s.model_copy(update={"why": s.why[:chars], "warnings": tuple(w[:chars] for w in s.warnings[:5])})
                for s in sorted(diagnosis.sources, key=lambda source: source.status == "read")[:items]
            ),
            "breakdowns": tuple(b.model_copy(update={"top": b.top[:20]}) for b in diagnosis.breakdowns[:4]),
            "environment_findings": diagnosis.environment_findings[:items],
            "missing": diagnosis.missing[:items],
            "unexplained": _unexplained(diagnosis.unexplained, chars),
            "warnings": (
                say("trim.notice", what=", ".join(what)),
                *(warning[:chars] for warning in diagnosis.warnings[:items]),
            ),
        }
    )


def _experiment(experiment: Experiment, *, most: int) -> Experiment:
    """Without its script where that is long: half a program is none."""
    return experiment if len(experiment.script) <= most else experiment.model_copy(update={"script": ""})


def _baseline(baseline: Baseline, measure: Measure) -> Baseline:
    return baseline.model_copy(
        update={
            "differences": baseline.differences[: measure.items],
            "curves": tuple(
                line.model_copy(update={"healthy": tuple(downsample(line.healthy, measure.points // 2))})
                for line in baseline.curves
            ),
            "messages": baseline.messages[: measure.items],
        }
    )


def _bare(value: Any) -> Any:
    """Any part of a diagnosis with its lists and texts cut to the last resort."""
    if isinstance(value, str):
        return value if len(value) <= LAST_TEXT else value[: LAST_TEXT - 1] + "…"
    if isinstance(value, dict):
        return {key: "" if key == "script" else _bare(item) for key, item in list(value.items())[: 4 * LAST]}
    if isinstance(value, (list, tuple)):
        return tuple(_bare(item) for item in value[:LAST])
    return value


def nearest(timeline: tuple[TimelineEntry, ...], count: int) -> tuple[TimelineEntry, ...]:
    """The entries closest to the first failure, in their order; three quarters of them before it."""
    if len(timeline) <= count:
        return timeline
    failing = [n for n, entry in enumerate(timeline) if entry.role == "initiating" or entry.severity == "fatal"]
    centre = failing[0] if failing else len(timeline) - 1
    start = max(0, min(centre - 3 * count // 4, len(timeline) - count))
    return timeline[start : start + count]


def _unexplained(found: Unexplained | None, chars: int) -> Unexplained | None:
    if found is None:
        return None
    lines = (line.model_copy(update={"text": line.text[:chars], "context": ()}) for line in found.lines)
    return found.model_copy(update={"lines": tuple(lines)})


def _hypothesis(hypothesis: Hypothesis, *, lead: bool, chars: int) -> Hypothesis:
    def shorter(items: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
        context = {} if lead else {"context": ()}
        return tuple(e.model_copy(update={**context, "text": e.text[:chars]}) for e in items[:40])

    return hypothesis.model_copy(
        update={
            "evidence_for": shorter(hypothesis.evidence_for),
            "evidence_against": shorter(hypothesis.evidence_against),
            "no_data": shorter(hypothesis.no_data),
        }
    )
