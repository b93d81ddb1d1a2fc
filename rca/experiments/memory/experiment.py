"""An experiment by arithmetic: does the step fit the card with the change and without it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from rca.diagnosis import Arm, Effect, Experiment, ExperimentVerdict
from rca.errors import ExperimentError
from rca.experiments.interface import RunProfile
from rca.experiments.memory.question import (
    GIB,
    STATIC_ROOMY,
    STATIC_TOO_LARGE,
    MemoryQuestion,
    Peak,
    apply,
    peak_of,
    question_of,
    rows,
    usable,
)
from rca.experiments.twin.report import change_words
from rca.experiments.workbench import Task, Workbench
from rca.rules.schema import ExperimentRule

OUTLIER = 1.5
"""Length of the failing batch over the median from which the length, not the batch size, is the odd one."""
WHAT_IF: dict[str, dict[str, Any]] = {
    "half the batch": {"batch": "x0.5"},
    "half the sequence length": {"seq": "x0.5"},
    "gradient checkpointing": {"checkpointing": True},
    "batch of one": {"batch": 1},
}
"""Rows of the table beside control and treatment."""


@dataclass(frozen=True)
class MemoryExperiment:
    """One rule on the arithmetic of one training step."""

    rule: ExperimentRule
    profile: RunProfile
    bench: Workbench
    until: float

    def carry_out(self) -> Experiment:
        """Predict the peaks and judge; every way to end is a verdict."""
        started = time.perf_counter()
        try:
            refusal = self._refusal()
            if refusal:
                return self._report("not_testable", refusal, started=started)
            question = question_of(self.profile)
            treated = apply(question, self.rule.change)
            cases = {"as the run": question, "with the change": treated}
            for label, change in WHAT_IF.items():
                other = apply(question, change)
                if other not in cases.values():
                    cases[label] = other
            peaks = self._peaks(cases)
            verdict, reason = self._judge(question, treated, peaks)
        except ExperimentError as error:
            return self._report("not_testable", _sentence(str(error)), started=started)
        return self._report(verdict, reason, started=started, peaks=peaks, question=question, treated=treated)

    def _refusal(self) -> str:
        profile = self.profile
        if self.rule.symptoms and not set(self.rule.symptoms) & set(profile.symptoms):
            return "The run did not end for want of device memory."
        if not profile.device_capacity_bytes:
            return "The capacity of the device is not recorded; the whole out-of-memory message or nvidia-smi tells it."
        if profile.oom_phase in {"eval", "generate"}:
            return f"The memory ran out in {profile.oom_phase}; the arithmetic covers training steps."
        return ""

    def _peaks(self, cases: dict[str, MemoryQuestion]) -> dict[str, Peak]:
        tasks = [
            Task("memory", question.model_dump(mode="json"), cpu_seconds=60.0, family=question.family)
            for question in cases.values()
        ]
        answers = self.bench.run(tasks, deadline=self.until)
        failed = next((answer.error for answer in answers if answer.error), "")
        if failed:
            raise ExperimentError(f"the step could not be traced at these sizes: {failed}")
        return {
            label: peak_of(question, answer.result)
            for (label, question), answer in zip(cases.items(), answers, strict=True)
        }

    def _judge(
        self, question: MemoryQuestion, treated: MemoryQuestion, peaks: dict[str, Peak]
    ) -> tuple[ExperimentVerdict, str]:
        capacity = float(self.profile.device_capacity_bytes or 0)
        room = usable(capacity)
        control, changed = peaks["as the run"], peaks["with the change"]
        share = control.static / capacity
        said = (
            f"Predicted peak {_gib(control.total)} of {_gib(capacity)} ({_gib(room)} usable), of which "
            f"{_gib(control.static)} are weights, gradients and optimizer state; with the change {_gib(changed.total)}."
        )
        if control.total <= room:
            return "not_reproduced", f"{said} By this arithmetic the run's step fits: something else holds the memory."
        if self.rule.metric == "does_not_fit":
            if changed.total > room and share > STATIC_ROOMY:
                return "confirmed", f"{said} Even so it does not fit: no batch size helps."
            if changed.total > room:
                return "inconclusive", f"{said} It does not fit, but most of it is activations of a single sample."
            return "refuted", f"{said} That fits: it is not the model that is too large."
        if question == treated:
            return "refuted", f"{said} The run is already at the smallest value; the change cannot be made."
        odd_length = (self.profile.sequence_outlier or 1.0) >= OUTLIER
        if changed.total <= room:
            if "seq" in self.rule.change and not odd_length:
                return "mitigates", f"{said} It fits then, but the length was no outlier: a smaller batch fits as well."
            if "batch" in self.rule.change and odd_length:
                return "mitigates", (
                    f"{said} It fits then, but the failing batch was {self.profile.sequence_outlier:.1f} times as long "
                    "as usual."
                )
            if share >= STATIC_ROOMY:
                return "mitigates", f"{said} It fits then, but {share:.0%} of the card is taken whatever the batch is."
            return "confirmed", f"{said} It fits then."
        return self._further(question, peaks, said, share)

    def _further(
        self, question: MemoryQuestion, peaks: dict[str, Peak], said: str, share: float
    ) -> tuple[ExperimentVerdict, str]:
        """The change once is not enough: does it help when repeated, down to one?"""
        capacity = float(self.profile.device_capacity_bytes or 0)
        name = next(iter(self.rule.change))
        if share > STATIC_TOO_LARGE:
            return "refuted", f"{said} {share:.0%} of the card is taken before the first activation: no batch fits."
        smaller = question
        for _ in range(16):
            following = apply(smaller, self.rule.change)
            if following == smaller:
                break
            smaller = following
            peak = self._peaks({"repeated": smaller})["repeated"]
            peaks[f"{name} {getattr(smaller, name)}"] = peak
            if peak.total <= usable(capacity) and share < STATIC_ROOMY:
                return "confirmed", (
                    f"{said} Once is not enough; with {name} {getattr(smaller, name)} the peak is {_gib(peak.total)} "
                    "and it fits."
                )
        return "refuted", f"{said} It does not fit even with {name} {getattr(smaller, name)}."

    def _report(
        self,
        verdict: ExperimentVerdict,
        reason: str,
        *,
        started: float,
        peaks: dict[str, Peak] | None = None,
        question: MemoryQuestion | None = None,
        treated: MemoryQuestion | None = None,
    ) -> Experiment:
        rule, capacity = self.rule, float(self.profile.device_capacity_bytes or 0)
        peaks = peaks or {}
        control, changed = peaks.get("as the run"), peaks.get("with the change")
        effect = None
        if control is not None and changed is not None:
            saved = (control.total - changed.total) / GIB
            over = (control.total - usable(capacity)) / GIB
            effect = Effect(
                metric="predicted peak memory, GiB",
                meaning="control - treatment; deterministic arithmetic, upper bound up to 10 % above the allocator",
                value=round(saved, 3),
                low=round(0.9 * saved, 3),
                high=round(saved, 3),
                recovered=round(min(1.0, saved / over), 4) if over > 0 else None,
            )
        return Experiment(
            id=rule.id,
            title=rule.title,
            question=rule.question,
            tests=rule.confirms,
            prediction=rule.says,
            change=change_words(rule),
            control=_arm("control", question, control),
            treatment=_arm("treatment", treated, changed),
            effect=effect,
            verdict=verdict,
            reason=reason,
            scope=_scope(question) if peaks else "",
            not_carried_over=_LEFT_OUT if peaks else (),
            details=(*self._observed(), *rows(peaks, capacity)) if peaks else (),
            seconds=round(time.perf_counter() - started, 2),
            device="cpu",
        )

    def _observed(self) -> tuple[tuple[str, str], ...]:
        known = {
            "allocated when it failed": self.profile.allocated_bytes,
            "tried to allocate": self.profile.tried_bytes,
            "capacity": self.profile.device_capacity_bytes,
        }
        return tuple((f"observed: {label}", _gib(value)) for label, value in known.items() if value)


_LEFT_OUT = (
    "fragmentation and the caching of the allocator",
    "workspaces of the libraries and the driver's context (a reserve of 4 % and 0.6 GiB stands for them)",
    "other processes on the card",
)


def _scope(question: MemoryQuestion | None) -> str:
    if question is None:
        return ""
    return (
        f"memory arithmetic, no training: {question.family} with {question.layers} layers of width {question.hidden} "
        f"at batch {question.batch} and length {question.seq}, traced at 2 and 4 layers without data and continued "
        "to full depth; measured 0 to 10 % above a real allocator"
    )


def _arm(name: str, question: MemoryQuestion | None, peak: Peak | None) -> Arm | None:
    if question is None or peak is None:
        return None
    return Arm(name=name, settings=question.model_dump(mode="json"), values=(round(peak.total / GIB, 3),))


def _gib(value: float) -> str:
    size = value / GIB
    return f"{size:.1f} GiB" if math.isfinite(size) else "an unknown size"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
