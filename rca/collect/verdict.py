"""The answer: which hypothesis leads, or `none`, or `unknown`, with its probability in words."""

from __future__ import annotations

from collections.abc import Sequence

from rca.diagnosis import Evidence, Failure, Hypothesis, Verdict
from rca.hypotheses.decide import decide
from rca.hypotheses.score import NONE, UNKNOWN
from rca.rules.schema import Calibration, Cause

_SURROUNDINGS = frozenset({"environment", "hardware"})
_FAR = 20
"""A rival that is less likely by more than this factor is not asked about."""
_WORDS = ((0.97, "almost certain"), (0.9, "very likely"), (0.7, "likely"), (0.5, "more likely than not"))


def in_words(probability: float) -> str:
    """Return the probability as the words used in every format."""
    return next((words for bound, words in _WORDS if probability >= bound), "possible")


def verdict(
    hypotheses: Sequence[Hypothesis],
    *,
    unknown: float,
    healthy: float,
    healthy_cause: Cause | None,
    failure: Failure | None,
    calibration: Calibration,
    well: Sequence[Evidence] = (),
) -> Verdict:
    """Return the answer; `unknown` and `healthy` are the probabilities of these two outcomes.

    `well` is what shows that nothing failed, for a run that turns out healthy.
    """
    best = max(hypotheses, key=lambda item: item.probability, default=None)
    kind, probability = decide(
        leading=best.probability if best is not None else 0.0,
        unknown=unknown,
        healthy=healthy,
        calibration=calibration,
    )
    if kind == NONE and healthy_cause is not None:
        return Verdict(
            cause=NONE,
            title=healthy_cause.title,
            sentence=healthy_cause.sentence,
            probability=probability,
            words=in_words(probability),
            status="none",
            reasons=tuple(well),
        )
    if kind or best is None:
        what = "" if failure is None else f" What was observed: {failure.what.rstrip('.')}."
        return Verdict(
            cause=UNKNOWN,
            title="Unknown cause",
            sentence=f"No known cause explains this run well enough to be named.{what}",
            probability=probability,
            words=in_words(probability),
            status="unknown",
            next_step=best.decide[0] if best is not None and best.decide else "",
        )
    confirmed = best.status == "confirmed"
    return Verdict(
        cause=best.cause,
        title=best.title,
        sentence=best.sentence,
        probability=best.probability,
        words=in_words(best.probability),
        status="confirmed" if confirmed else "suspected",
        domain=best.domain,
        next_step="" if confirmed or not best.decide else best.decide[0],
    )


def environment_findings(hypotheses: Sequence[Hypothesis], chosen: Verdict) -> tuple[str, ...]:
    """Return what is wrong with machine or software although it is not the answer: the first thing to rule out."""
    return tuple(
        f"{item.title}: {item.evidence_for[0].says}"
        for item in hypotheses
        if item.domain in _SURROUNDINGS and item.cause != chosen.cause and item.evidence_for
    )


def missing(hypotheses: Sequence[Hypothesis], chosen: Verdict) -> tuple[str, ...]:
    """Return what would have decided the case: steps of the leading candidates while none of them is confirmed."""
    if chosen.status in {"confirmed", "none"}:
        return ()
    rivals = [item for item in hypotheses if item.explained_by is None][:3]
    near = [item for item in rivals if item.probability * _FAR >= rivals[0].probability]
    return tuple(dict.fromkeys(step for item in near for step in item.decide))[:6]
