"""A score over labelled incidents as text."""

from __future__ import annotations

from rca.evaluate import CaseOutcome, Score


def row(outcome: CaseOutcome) -> str:
    """Return one line about one incident."""
    mark = "ok  " if outcome.right else "top3" if outcome.in_top_three else "MISS"
    verdict = outcome.verdict if outcome.right else f"{outcome.verdict}  (truth {outcome.truth})"
    tested = "".join(f"  [{item}]" for item in outcome.experiments)
    return f"{mark}  {outcome.case:<40.40} {outcome.probability:4.0%}  {verdict}{tested}"


def summary(score: Score) -> str:
    """Return the totals, the table by domain, the reliability table and the confusions."""
    lines = [
        "",
        f"{score.cases} cases: right cause first {score.top1:.0%}, among the first three {score.top3:.0%}",
        f"healthy runs given a cause: {score.false_alarms} of {score.healthy}; "
        f"unknown although a cause is labelled: {score.abstained}",
        f"expected calibration error {score.calibration_error:.3f}",
        "",
        f"{'domain':<16}{'cases':>6}{'first':>7}{'top 3':>7}",
        *(f"{item.domain:<16}{item.cases:>6}{item.top1:>7}{item.top3:>7}" for item in score.domains),
        "",
        f"{'stated probability':<20}{'cases':>6}{'stated':>8}{'right':>8}",
        *(
            f"{item.low:.0%} to {item.high:.0%}".ljust(20) + f"{item.cases:>6}{item.stated:>8.0%}{item.observed:>8.0%}"
            for item in score.reliability
        ),
    ]
    if score.confusion:
        lines += ["", "wrong verdicts (truth -> verdict)"]
        lines += [f"  {number} x {truth} -> {verdict}" for truth, verdict, number in score.confusion]
    return "\n".join(lines)
