"""A score over labelled incidents as text."""

from __future__ import annotations

from rca.evaluate import CalibratedScore, CaseOutcome, Score


def row(outcome: CaseOutcome) -> str:
    """Return one line about one incident, and one about a baseline that could not be used."""
    mark = "ok  " if outcome.right else "top3" if outcome.in_top_three else "MISS"
    verdict = outcome.verdict if outcome.right else f"{outcome.verdict}  (truth {outcome.truth})"
    tested = "".join(f"  [{item}]" for item in outcome.experiments)
    told = f"\n      {outcome.without_baseline}" if outcome.without_baseline else ""
    return f"{mark}  {outcome.case:<40.40} {outcome.probability:4.0%}  {verdict}{tested}{told}"


def summary(score: Score) -> str:
    """Return the totals, the table by domain, the reliability table and the confusions."""
    lines = [
        "",
        f"{score.cases} cases: right cause first {score.top1:.0%}, among the first three {score.top3:.0%}",
        f"healthy runs given a cause: {score.false_alarms} of {score.healthy}, called unknown: {score.doubted}; "
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
    if score.withheld is not None:
        lines += [
            "",
            f"with the right cause taken out of the rules ({score.withheld.cases} cases): "
            f"unknown {score.withheld.unknown:.0%}, another cause above 80% {score.withheld.confidently_wrong:.0%}",
        ]
    if score.confusion:
        lines += ["", "wrong verdicts (truth -> verdict)"]
        lines += [f"  {number} x {truth} -> {verdict}" for truth, verdict, number in score.confusion]
    if score.first_run is not None:
        date, right = score.first_run
        lines += ["", f"first run ({date}), before any rule was changed for these cases: right {right:.0%}"]
    if score.calibrated is not None:
        lines += ["", *_calibrated(score.calibrated)]
    return "\n".join(lines)


def _calibrated(found: CalibratedScore) -> list[str]:
    by = found.calibration
    return [
        f"calibration fitted on {by.incidents}: temperature {by.temperature:.2f}, unknown {by.unknown:+.2f} nats",
        f"{'':<24}{'first':>7}{'calibration error':>19}",
        f"{'fitted':<24}{found.fitted_top1:>7.0%}{found.fitted_error:>19.3f}",
        f"{'five-fold held out':<24}{found.held_out_top1:>7.0%}{found.held_out_error:>19.3f}",
    ]
