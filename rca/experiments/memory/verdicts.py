"""What the arithmetic says about each suspicion of memory: verdicts with their numbers, by the metric of the rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rca.diagnosis import ExperimentVerdict
from rca.experiments.interface import RunProfile
from rca.experiments.memory.arithmetic import Peak, room
from rca.experiments.memory.question import GIB, MemoryQuestion, Task, apply
from rca.experiments.memory.table import gib, parts
from rca.rules.schema import ExperimentRule

OUTLIER = 1.5
"""Length of the failing batch over the median from which the length, not the batch size, is the odd one."""
STATIC_TOO_LARGE = 0.92
"""Weights, gradients and optimizer state above this share of the capacity: no batch fits."""
STATIC_ROOMY = 0.7
"""Below this share it is the batch, not the model, that fills the card."""
WRONG_BY = 0.25
"""Difference between observed and predicted bytes from which the arithmetic does not describe the run."""
MATTERS = 0.02
"""Share of the card that others, or unusable gaps, must hold to count."""
TASKS: dict[str, tuple[Task, ...]] = {
    "fits": ("train",),
    "does_not_fit": ("train", "generate", "serve"),
    "fits_alone": ("train", "evaluate", "generate"),
    "fits_unfragmented": ("train", "evaluate", "generate"),
    "fits_with_less_cache": ("generate", "serve"),
}
"""Metric of a rule -> the steps that it can speak about."""


class Case(NamedTuple):
    """Everything that a verdict looks at."""

    rule: ExperimentRule
    profile: RunProfile
    question: MemoryQuestion
    treated: MemoryQuestion
    control: Peak
    changed: Peak
    again: Callable[[MemoryQuestion], Peak]
    """Peak of another step."""

    @property
    def capacity(self) -> float:
        """Bytes of the card."""
        return float(self.profile.device_capacity_bytes or 0)

    @property
    def room(self) -> float:
        """Bytes that the step may take."""
        return room(self.question, self.capacity)


class Finding(NamedTuple):
    """A verdict and its sentence."""

    verdict: ExperimentVerdict
    reason: str


def judge(case: Case) -> Finding:
    """Return the verdict by the metric of the rule."""
    found = _JUDGES[case.rule.metric](case)
    strange = disagreement(case.profile, case.question, case.control)
    if not strange:
        return found
    verdict = found.verdict if found.verdict == "not_reproduced" else "inconclusive"
    return Finding(verdict, f"{found.reason} {strange}")


def disagreement(profile: RunProfile, question: MemoryQuestion, peak: Peak) -> str:
    """Return a sentence where observed and predicted bytes cannot belong to the same step, else an empty text.

    A run that fails has not reached its peak: it must hold its weights (after its first step the optimizer state
    too), and it cannot hold more than the peak.
    """
    seen = profile.allocated_bytes
    if not seen:
        return ""
    least = peak.weights + (peak.optimizer if (profile.failure_step or 0) > 1 and question.training else 0.0)
    if seen > peak.total * (1 + WRONG_BY):
        expected = f"at most {gib(peak.total)} GiB"
    elif least > seen * (1 + WRONG_BY) and profile.oom_phase not in _LOADING:
        expected = f"at least {gib(least)} GiB of weights and optimizer state"
    else:
        return ""
    return (
        f"The run had {gib(seen)} GiB allocated where the arithmetic expects {expected}: the picture that it has of "
        "the run is wrong (a size, a type, sharding, or something kept that it does not know), not the run."
    )


_LOADING = ("load", "startup")


def _said(case: Case) -> str:
    return (
        f"Predicted peak {gib(case.control.total)} GiB of {gib(case.capacity)} ({gib(case.room)} usable): "
        f"{parts(case.control)}."
    )


def _with_change(case: Case) -> str:
    return f"With the change {gib(case.changed.total)} GiB."


def _fits(case: Case) -> Finding:
    """A smaller batch or length: is it what does not fit?"""
    said = _said(case)
    if case.profile.oom_phase == "load":
        return Finding("refuted", f"{said} The memory ran out while the model was loaded, before the first batch.")
    if case.control.total <= case.room:
        return Finding("not_reproduced", f"{said} By this arithmetic the step fits: something else holds the memory.")
    if case.question == case.treated:
        return Finding("refuted", f"{said} The run is already at the smallest value; the change cannot be made.")
    said = f"{said} {_with_change(case)}"
    odd_length = (case.profile.sequence_outlier or 1.0) >= OUTLIER
    share = case.control.static / case.capacity
    if case.changed.total > case.room:
        return _further(case, said, share)
    if "seq" in case.rule.change and not odd_length:
        return Finding(
            "mitigates", f"{said} It fits then, but the length was no outlier: a smaller batch fits as well."
        )
    if "batch" in case.rule.change and odd_length:
        times = case.profile.sequence_outlier or 1.0
        return Finding(
            "mitigates", f"{said} It fits then, but the failing batch was {times:.1f} times as long as usual."
        )
    if share >= STATIC_ROOMY:
        return Finding("mitigates", f"{said} It fits then, but {share:.0%} of the card is taken whatever the batch is.")
    return Finding("confirmed", f"{said} It fits then.")


def _further(case: Case, said: str, share: float) -> Finding:
    """The change once is not enough: does it help when repeated, down to one?"""
    name = next(iter(case.rule.change))
    if share > STATIC_TOO_LARGE:
        return Finding(
            "refuted", f"{said} {share:.0%} of the card is taken before the first activation: no batch fits."
        )
    smaller = case.treated
    while (following := apply(smaller, dict(case.rule.change))) != smaller:
        smaller = following
        if share >= STATIC_ROOMY:
            continue
        peak = case.again(smaller)
        if peak.total <= case.room:
            value = getattr(smaller, name)
            reason = f"{said} Once is not enough; with {name} {value} the peak is {gib(peak.total)} GiB and it fits."
            return Finding("confirmed", reason)
    return Finding("refuted", f"{said} It does not fit even with {name} {getattr(smaller, name)}.")


def _does_not_fit(case: Case) -> Finding:
    """The smallest batch: is it the model that does not fit?"""
    said = f"{_said(case)} {_with_change(case)}"
    if case.profile.oom_phase == "load":
        held = f"{said} The memory ran out while the model was loaded."
        if case.control.weights > case.room:
            return Finding("confirmed", f"{held} The weights alone do not fit.")
        return Finding("not_reproduced", f"{held} The weights alone fit: something else holds the memory.")
    if case.control.total <= case.room:
        return Finding("not_reproduced", f"{said} By this arithmetic the step fits: something else holds the memory.")
    if case.changed.total <= case.room:
        return Finding("refuted", f"{said} That fits: it is not the model that is too large.")
    if case.control.static / case.capacity > STATIC_ROOMY:
        return Finding("confirmed", f"{said} Even so it does not fit: no batch size helps.")
    return Finding("inconclusive", f"{said} It does not fit, but most of it belongs to a single sample.")


def _fits_alone(case: Case) -> Finding:
    """The card without the other processes: is it they who take what is missing?"""
    others = float(case.profile.others_bytes or 0)
    said = f"{_said(case)} Other processes hold {gib(others)} GiB."
    if others < MATTERS * case.capacity:
        return Finding("refuted", f"{said} That is next to nothing.")
    if case.control.total > case.room:
        return Finding("refuted", f"{said} The step would not fit on an empty card either.")
    if case.control.total <= case.room - others:
        return Finding("not_reproduced", f"{said} By this arithmetic the step fits beside them.")
    return Finding("confirmed", f"{said} Beside them {gib(case.room - others)} GiB are left, and alone it would fit.")


def _fits_unfragmented(case: Case) -> Finding:
    """The gaps of the allocator made usable: are they what is missing?"""
    gaps, tried = float(case.profile.reserved_unallocated_bytes or 0), float(case.profile.tried_bytes or 0)
    said = f"{_said(case)} Reserved but unallocated: {gib(gaps)} GiB; asked for: {tried / GIB:.2f} GiB."
    if gaps < MATTERS * case.capacity or gaps < tried:
        return Finding("refuted", f"{said} The gaps together are too small for what was asked for.")
    if case.control.total > case.room:
        return Finding("refuted", f"{said} The step would not fit without any gap either.")
    if case.control.total + gaps <= case.room:
        return Finding("not_reproduced", f"{said} By this arithmetic the step fits in spite of the gaps.")
    return Finding("confirmed", f"{said} Without the gaps the step would fit; with them it does not.")


def _fits_with_less_cache(case: Case) -> Finding:
    """Half the context: is it the key-value cache that does not fit?"""
    said = f"{_said(case)} {_with_change(case)}"
    if case.control.total <= case.room:
        return Finding("not_reproduced", f"{said} By this arithmetic it fits: something else holds the memory.")
    if case.control.weights > case.room:
        return Finding("refuted", f"{said} The weights alone do not fit.")
    if case.control.total - case.control.cache > case.room or case.control.cache < case.control.activations:
        return Finding("refuted", f"{said} It is not the cache that fills the card.")
    tokens = (case.room - (case.control.total - case.control.cache)) / (case.control.cache / _tokens(case.question))
    return Finding("confirmed", f"{said} Beside the weights there is room for the cache of {tokens:,.0f} tokens.")


def _tokens(question: MemoryQuestion) -> int:
    return question.batch * (question.seq + question.new_tokens)


_JUDGES: dict[str, Callable[[Case], Finding]] = {
    "fits": _fits,
    "does_not_fit": _does_not_fit,
    "fits_alone": _fits_alone,
    "fits_unfragmented": _fits_unfragmented,
    "fits_with_less_cache": _fits_with_less_cache,
}
