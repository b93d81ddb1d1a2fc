"""What belongs where: the order and grouping that all formats share."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from rca.baseline import Difference, MessageDifference
from rca.diagnosis import Diagnosis, Evidence, Experiment, Failure, Hypothesis, TimelineEntry
from rca.leads import OddLine
from rca.report.measures import moment, numbers_list
from rca.report.words import count, replaced, say

RAN = frozenset({"confirmed", "mitigates", "refuted", "inconclusive", "not_reproduced"})
"""Verdicts of experiments whose arms were carried out and judged."""


class Candidate(NamedTuple):
    """A hypothesis with the hypotheses that it explains."""

    hypothesis: Hypothesis
    symptoms: tuple[Hypothesis, ...]


class Outline(NamedTuple):
    """A diagnosis arranged for reading."""

    lead: Candidate | None
    """The hypothesis of the verdict; None when the verdict is `unknown` or `none`."""
    others: tuple[Candidate, ...]
    tried: tuple[Experiment, ...]
    """Experiments that ran, those of the leading cause first."""
    untried: tuple[Experiment, ...]


def outline(diagnosis: Diagnosis) -> Outline:
    """Group symptoms under their cause and experiments by whether they ran."""
    by_cause = {hypothesis.cause: hypothesis for hypothesis in diagnosis.hypotheses}
    heads = [h for h in diagnosis.hypotheses if h.explained_by not in by_cause or h.explained_by == h.cause]
    candidates = [
        Candidate(head, tuple(h for h in diagnosis.hypotheses if h is not head and _root(h, by_cause) == head.cause))
        for head in heads
    ]
    lead = next((c for c in candidates if c.hypothesis.cause == diagnosis.verdict.cause), None)
    tests_lead = {e.id for e in diagnosis.experiments if diagnosis.verdict.cause in e.tests}
    ordered = sorted(diagnosis.experiments, key=lambda e: e.id not in tests_lead)
    return Outline(
        lead=lead,
        others=tuple(candidate for candidate in candidates if candidate is not lead),
        tried=tuple(e for e in ordered if e.verdict in RAN),
        untried=tuple(e for e in ordered if e.verdict not in RAN),
    )


def _root(hypothesis: Hypothesis, by_cause: dict[str, Hypothesis]) -> str:
    """The cause at the end of the chain of explanations; a circle ends where it closes."""
    seen = {hypothesis.cause}
    while (above := hypothesis.explained_by) in by_cause and above not in seen:
        seen.add(above)
        hypothesis = by_cause[above]
    return hypothesis.cause


def place(item: Evidence | TimelineEntry | Failure | OddLine | Difference | MessageDifference) -> str:
    """`rank_3.log:1182`, or nothing."""
    return f"{item.source}:{item.line}" if item.source and item.line is not None else item.source


def circumstances(item: Evidence | TimelineEntry | Failure | OddLine) -> str:
    """Rank, host, step and time in one short line; what is missing is left out."""
    return say("list.clause").join(circumstance_list(item))


def circumstance_list(item: Evidence | TimelineEntry | Failure | OddLine) -> list[str]:
    """Rank, host, step and time, each a text; what is missing is left out."""
    said = getattr(item, "ranks", ())
    parts = [
        say("ranks", ranks=numbers_list(said))
        if len(said) > 1
        else say("rank", rank=item.rank)
        if item.rank is not None
        else "",
        item.host or "",
        say("step", step=item.step) if item.step is not None else "",
        moment(item.time),
    ]
    return [part for part in parts if part]


_NO_TEXT = re.compile(
    r"tfevents|(?:^|/)nccl_trace|\.trace\.json|\.(?:safetensors|gguf|pt|pth|bin|pb|parquet|npz|npy|ckpt)(?:$|\.)"
)
_PAGERS = {".gz": "zless", ".bz2": "bzless", ".xz": "xzless", ".zst": "zstdless"}


def pager_command(item: Evidence | OddLine) -> str:
    """The command that shows the place in its file; nothing for files that a pager cannot show."""
    if not item.source or item.line is None or _NO_TEXT.search(item.source):
        return ""
    pager = next((tool for ending, tool in _PAGERS.items() if item.source.endswith(ending)), "less")
    path = f"./{item.source}" if item.source[0] in "-+" else item.source
    return f"{pager} +{item.line} {shlex.quote(path)}"


def odd_intro(diagnosis: Diagnosis) -> str:
    """What stands above the lines that stand out, or why there are none."""
    if diagnosis.unexplained is not None and diagnosis.unexplained.lines:
        return say("odd.intro")
    return say(
        "odd.none" if any("log" in source.kind and source.lines for source in diagnosis.sources) else "odd.no_log"
    )


def reading_summary(diagnosis: Diagnosis) -> str:
    """`14 files read, 1 skipped`; of a shortened diagnosis, which lists skipped files first, as many as there were."""
    skipped = sum(source.status == "skipped" for source in diagnosis.sources)
    read = max(diagnosis.run.files, len(diagnosis.sources)) - skipped
    told = [say("reading", files=count(read, "file")), *([say("reading.skipped", count=skipped)] if skipped else ())]
    return say("list.clause").join(told)


def redaction(diagnosis: Diagnosis) -> str:
    """What was replaced, and how often, in one sentence."""
    mode, counts = diagnosis.redaction.mode, diagnosis.redaction.counts
    if mode == "none":
        return say("redaction.none")
    if not any(counts.values()):
        return say("redaction.nothing", mode=mode)
    what = say("list.item").join(replaced(kind, amount) for kind, amount in sorted(counts.items()))
    return say("redaction.some", mode=mode, what=what)
