"""What `-v` and `-vv` add to the summary for the terminal: labels with texts, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from rca.diagnosis import Diagnosis, Evidence, Fix, Round
from rca.report.findings import risk
from rca.report.measures import one_line, percent, seconds, signed, size
from rca.report.outline import Outline, place
from rca.report.words import count, paragraph, say, shown, strength, word

More = Iterator[tuple[str, str]]


def said(item: Evidence, *, verbose: int) -> str:
    """A piece of evidence with its place; how strong it is where more is asked for, in nats where all is."""
    where = place(item)
    weight = [strength(item.weight)] if verbose else []
    weight += [say("evidence.nats", weight=signed(item.weight))] if verbose > 1 else []
    aside = say("list.clause").join(part for part in (where, *weight) if part)
    return f"{item.says} ({aside})" if aside else item.says


def about(fix: Fix) -> str:
    """What to change, why it helps and what it risks."""
    return paragraph(fix.action, fix.why, f"({risk(fix)})" if risk(fix) else "")


def more(diagnosis: Diagnosis, plan: Outline, verbose: int) -> More:
    """Return what stands before the last lines: candidates, skipped files, warnings; then all that was looked at."""
    if verbose:
        yield from _candidates(plan)
        yield from _files(diagnosis, "skipped")
        for warning in diagnosis.warnings:
            yield say("text.warning"), warning
    if verbose > 1:
        for item in plan.lead.hypothesis.no_data if plan.lead else ():
            yield say("text.no_data"), f"{item.says} {item.decides}".strip()
        for round_ in diagnosis.log:
            yield say("text.round", number=round_.number), _round(round_)
        yield from _files(diagnosis, "read")
        times = ", ".join(f"{word('stage', name)} {seconds(value)}" for name, value in diagnosis.timings.items())
        if times:
            yield say("text.times"), times


def _candidates(plan: Outline) -> More:
    for candidate in plan.others:
        hypothesis = candidate.hypothesis
        for_ = max(hypothesis.evidence_for, key=lambda item: item.weight, default=None)
        against = min(hypothesis.evidence_against, key=lambda item: item.weight, default=None)
        standing = say("hypothesis." + hypothesis.status) + say("text.stop")
        parts = [
            say(
                "answer.probability",
                probability=f"{hypothesis.cause} {percent(hypothesis.probability)}",
                words=standing,
            )
        ]
        parts += [say("evidence.for") + say("colon") + said(for_, verbose=0)] if for_ else []
        parts += [say("evidence.against") + say("colon") + said(against, verbose=0)] if against else []
        yield say("text.candidate"), " ".join(parts)


def _files(diagnosis: Diagnosis, status: Literal["read", "skipped"]) -> More:
    for source in diagnosis.sources:
        if source.status == status:
            told = source.why or say("list.clause").join(
                part for part in (shown(source.kind), size(source.bytes), count(source.lines, "line")) if part
            )
            yield say("text." + status), f"{source.path}: {one_line(told)}"


def _round(round_: Round) -> str:
    ruled_out = ", ".join(round_.ruled_out)
    parts = (
        f"{round_.chosen}:" if round_.chosen else "",
        round_.why,
        f"{say('round.prediction')} {round_.prediction}" if round_.prediction else "",
        f"{say('round.result')} {round_.result}" if round_.result else "",
        f"{say('round.ruled_out')} {ruled_out}." if ruled_out else "",
    )
    return " ".join(part for part in parts if part)
