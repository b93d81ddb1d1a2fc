"""What is told of evidence and of experiments in every format: each finding once, and what was expected before."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rca.diagnosis import Diagnosis, Evidence, Experiment, Fix
from rca.report.words import say, word

_LONG = 40
"""Characters from which a finding is not told twice."""
_COLON = re.compile(": |：")


def told_once(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Evidence, the weightiest first; a finding that several pieces quote after a colon stands in the first alone."""
    told: list[str] = []
    shown = []
    for item in sorted(evidence, key=lambda entry: -entry.weight):
        colon = _COLON.search(item.says)
        finding = item.says[colon.end() :] if colon else item.says
        repeated = len(finding) >= _LONG and any(finding in text for text in told)
        told.append(item.says)
        if not repeated:
            shown.append(item)
        elif colon:
            stop = "。" if colon.group() == "：" else "."
            shown.append(item.model_copy(update={"says": item.says[: colon.start()] + stop}))
    return tuple(shown)


def risk(fix: Fix) -> str:
    """What a change may cost; nothing where a rule says that there is none."""
    return "" if fix.risk.rstrip(".。").lower() == say("fix.no_risk").rstrip(".。").lower() else fix.risk


def verdict_words(experiment: Experiment) -> str:
    """The verdict of an experiment, and that its fault was planted where it was: that is less than a reproduction."""
    verdict = say("experiment." + experiment.verdict)
    return say("text.planted", verdict=verdict) if experiment.planted else verdict


def found(result: str) -> str:
    """What a round found, its verdict in words: `not_testable: The step ...` begins with a word of the data."""
    verdict, colon, rest = result.partition(": ")
    return f"{word('experiment', verdict)}{say('colon')}{rest}" if colon else result


def expectations(diagnosis: Diagnosis, experiment: str) -> tuple[tuple[str, float, float, float], ...]:
    """What was expected of an experiment before it ran: (cause, share confirmed, refuted, open); `other` in words."""
    rows = next((r.expected for r in diagnosis.log if r.chosen == experiment and r.expected), ())
    return tuple((say("round.other") if row[0] == "other" else row[0], *row[1:]) for row in rows)
