"""An experiment by arithmetic: does the step fit the card with the change and without it, and what else would help."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rca.diagnosis import Arm, Effect, Experiment, ExperimentVerdict, Table
from rca.errors import ExperimentError
from rca.experiments.entry import entry
from rca.experiments.interface import RunProfile
from rca.experiments.memory.arithmetic import Peak, peak_of, room
from rca.experiments.memory.question import GIB, MemoryQuestion, apply, question_of, traced
from rca.experiments.memory.search import Search
from rca.experiments.memory.table import gib, in_words, parts, question_words, what_if
from rca.experiments.memory.verdicts import TASKS, Case, Finding, judge
from rca.experiments.workbench import JobDied, Task, Workbench, unfinished
from rca.rules.load import remedies
from rca.rules.schema import ExperimentRule

FOR_TABLE = 15.0
"""Seconds that must be left for the what-if table: some ten traces of a second each, two at a time."""


@dataclass(frozen=True)
class Tracer:
    """Traces steps in the child."""

    bench: Workbench
    until: float

    def __call__(self, questions: Sequence[MemoryQuestion]) -> list[Mapping[str, float]]:
        """Return one trace a step; ExperimentError where one cannot be traced."""
        tasks = [
            Task("memory", question.model_dump(mode="json"), cpu_seconds=60.0, family=question.family)
            for question in questions
        ]
        answers = self.bench.run(tasks, deadline=self.until)
        failed = next((answer for answer in answers if answer.error), None)
        if failed is not None:
            raise unfinished("the step could not be traced at these sizes", failed)
        return [answer.result for answer in answers]


@dataclass(frozen=True)
class MemoryExperiment:
    """One rule on the arithmetic of one step."""

    rule: ExperimentRule
    profile: RunProfile
    bench: Workbench
    until: float

    def carry_out(self) -> Experiment:
        """Predict the peaks and judge; every way to end is a verdict."""
        started = time.perf_counter()
        try:
            case = self._case()
            found = judge(case)
        except ExperimentError as error:
            verdict: ExperimentVerdict = "error" if isinstance(error, JobDied) else "not_testable"
            return self._report(Finding(verdict, _sentence(str(error))), started=started)
        if case.control.total <= case.room:
            return self._report(found, started=started, case=case)
        table, sentence = self._what_if(case.question)
        if sentence and found.verdict in {"confirmed", "mitigates"}:
            found = found._replace(reason=f"{found.reason} {sentence}")
        return self._report(found, started=started, case=case, table=table)

    def _case(self) -> Case:
        rule, profile = self.rule, self.profile
        if rule.symptoms and not set(rule.symptoms) & set(profile.symptoms):
            raise ExperimentError("the run did not end for want of device memory")
        if not profile.device_capacity_bytes:
            raise ExperimentError(
                "the capacity of the device is not recorded; the whole out-of-memory message or nvidia-smi tells it"
            )
        question = question_of(profile)
        tasks = TASKS.get(rule.metric)
        if tasks is None:
            raise ExperimentError(f"memory arithmetic has no metric `{rule.metric}`; it has {', '.join(TASKS)}")
        if question.task not in tasks:
            raise ExperimentError(
                f"the memory ran out in {profile.oom_phase or 'training'}; this is about another step"
            )
        treated = apply(question, dict(rule.change))
        tracer = Tracer(self.bench, self.until)
        steps = list(dict.fromkeys((question, treated)))
        peaks = dict(zip(steps, _peaks(tracer, steps), strict=True))
        return Case(
            rule=rule,
            profile=profile,
            question=question,
            treated=treated,
            control=peaks[question],
            changed=peaks[treated],
            again=lambda other: _peaks(tracer, [other])[0],
        )

    def _what_if(self, question: MemoryQuestion) -> tuple[Table | None, str]:
        """Return the table and its sentence; neither when there is no time left or a remedy cannot be traced."""
        if time.monotonic() + FOR_TABLE > self.until:
            return None, ""
        capacity = float(self.profile.device_capacity_bytes or 0)
        try:
            rows = Search(question, capacity, Tracer(self.bench, self.until), remedies()).rows()
        except ExperimentError:
            return None, ""
        return what_if(rows, capacity), in_words(rows, capacity)

    def _report(
        self, found: Finding, *, started: float, case: Case | None = None, table: Table | None = None
    ) -> Experiment:
        rule = self.rule
        return entry(
            rule,
            control=_arm("control", case.question, case.control) if case else None,
            treatment=_arm("treatment", case.treated, case.changed) if case else None,
            effect=_effect(case) if case else None,
            verdict=found.verdict,
            reason=found.reason,
            scope=_scope(case.question) if case else "",
            not_carried_over=_LEFT_OUT if case else (),
            details=self._details(case) if case else (),
            table=table,
            seconds=round(time.perf_counter() - started, 2),
            device="cpu",
        )

    def _details(self, case: Case) -> tuple[tuple[str, str], ...]:
        profile = self.profile
        known = {
            "observed: allocated when it failed": profile.allocated_bytes,
            "observed: tried to allocate": profile.tried_bytes,
            "observed: reserved but unallocated": profile.reserved_unallocated_bytes,
            "observed: held by other processes": profile.others_bytes,
            "capacity": profile.device_capacity_bytes,
        }
        peaks = {"predicted, as the run": case.control, "predicted, with the change": case.changed}
        return (
            *((label, f"{value / GIB:.2f} GiB") for label, value in known.items() if value),
            *((label, f"{gib(peak.total)} GiB ({parts(peak)})") for label, peak in peaks.items()),
            ("when most is taken", _moment(case.control.moment)),
        )


_LEFT_OUT = (
    "fragmentation and the caching of the allocator",
    "workspaces of the libraries and the driver's context (a reserve of 4 % and 0.6 GiB stands for them)",
    "other processes on the card",
)


def _peaks(tracer: Tracer, questions: Sequence[MemoryQuestion]) -> list[Peak]:
    keys = list(dict.fromkeys(map(traced, questions)))
    traces = dict(zip(keys, tracer(keys), strict=True))
    return [peak_of(question, traces[traced(question)]) for question in questions]


def _effect(case: Case) -> Effect:
    saved = (case.control.total - case.changed.total) / GIB
    over = (case.control.total - room(case.question, case.capacity)) / GIB
    return Effect(
        metric="predicted peak memory, GiB",
        meaning="control - treatment; deterministic arithmetic, within 1 % of what the CPU allocator was seen to hold",
        value=round(saved, 3),
        low=round(0.99 * saved, 3),
        high=round(1.01 * saved, 3),
        recovered=round(max(0.0, min(1.0, saved / over)), 4) if over > 0 else None,
    )


def _scope(question: MemoryQuestion) -> str:
    return (
        f"memory arithmetic, nothing was run: {question_words(question)}; traced at 2 and 4 layers without data and "
        "continued to full depth"
    )


def _moment(moment: str) -> str:
    places = {"top": "backward pass, last layers", "middle": "backward pass", "bottom": "backward pass, first layers"}
    named = {
        "start": "end of the forward pass",
        "head": "begin of the backward pass, at the loss and the head",
        "end": "end of the backward pass",
    }
    return named.get(moment) or places.get(moment.rpartition(" ")[2], moment)


def _arm(name: str, question: MemoryQuestion, peak: Peak) -> Arm:
    return Arm(name=name, settings=question.model_dump(mode="json"), values=(round(peak.total / GIB, 3),))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
