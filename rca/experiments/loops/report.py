"""What a loop experiment found, in words and figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rca.diagnosis import Arm, Effect, Experiment, ExperimentVerdict
from rca.experiments.entry import entry
from rca.experiments.loops.config import STEP_MS, LoopConfig, Setting
from rca.experiments.loops.judging import Contrast, Figures, label, mean, number
from rca.experiments.loops.script import program
from rca.rules.schema import ExperimentRule

_TIMES = frozenset({"seconds_per_step", "wait_share"})
_SCOPES = {
    "load": f"torch's data loader beside a step of {STEP_MS:g} ms; reading and computing are waits in the proportions "
    "of the run",
    "pad": "lengths put into batches, counted",
    "step": "a training step of a tiny model of the run's class, its operations counted at two depths and continued to "
    "the run's; no times were measured",
    "hold": "steps at the run's sizes, traced without data at two depths and continued to the run's",
    "peak": "a step at the run's sizes, traced without data at two depths and continued to the run's",
    "compile": "a small function captured by the compiler of the installed torch; nothing is generated",
    "generate": "answers of a tiny decoder with random weights, their arithmetic counted",
    "decode": "texts of a tiny decoder that learnt a synthetic language with known rules",
    "score": "right text weighed by a tiny decoder that learnt a synthetic language",
    "align": "prompts continued by a tiny decoder that learnt a synthetic language",
    "repeat": "one input repeated through a tiny model of the run's class with random weights",
}
_LEFT_OUT = {
    "load": ("the files and their decoding: only how long reading takes", "pinned memory and copies to a device"),
    "pad": (),
    "step": ("the time that a wait or a launch costs on a device", "the program's own operations beside the recipe"),
    "hold": ("fragmentation and the caching of the allocator",),
    "peak": ("the state of the optimizer", "fragmentation and the caching of the allocator"),
    "compile": ("the program's own code: only the kind of change that fails its guards",),
    "generate": ("the sizes of the model", "the time of memory traffic, which beams and caches also cost"),
    "decode": ("the trained weights and the real language",),
    "score": ("the trained weights with their outliers", "the real language"),
    "align": ("the trained weights and the real language",),
    "repeat": ("the trained weights and the real inputs",),
}


class LoopArm(NamedTuple):
    """One arm: its settings and what it did."""

    config: LoopConfig
    figures: Figures


class LoopFinding(NamedTuple):
    """A verdict and the arms behind it."""

    verdict: ExperimentVerdict
    reason: str
    control: LoopArm | None = None
    treatment: LoopArm | None = None
    found: Contrast | None = None
    planted: bool = False
    setting: Setting | None = None


def report(rule: ExperimentRule, finding: LoopFinding, *, seconds: float) -> Experiment:
    """Return the entry of the diagnosis."""
    control, found, loop = finding.control, finding.found, rule.loop
    timed = loop is not None and loop.timed
    effect = None
    if found is not None and loop is not None:
        how = "control / treatment" if loop.compares == "ratio" else "control - treatment"
        effect = Effect(
            metric=loop.figure,
            meaning=f"{how}; {'a time, ' if timed else ''}{found.pairs} pair{'s' * (found.pairs > 1)}",
            value=round(found.value, 4),
            low=round(found.low, 4),
            high=round(found.high, 4),
        )
    return entry(
        rule,
        control=_arm("control", control, rule.metric, timed=timed),
        treatment=_arm("treatment", finding.treatment, rule.metric, timed=timed, base=control),
        effect=effect,
        verdict=finding.verdict,
        reason=finding.reason,
        planted=finding.planted,
        scope=_scope(rule, finding),
        not_carried_over=(*_LEFT_OUT[control.config.loop], *(finding.setting.notes if finding.setting else ()))
        if control
        else (),
        details=tuple(_details(finding)),
        seconds=round(seconds, 2),
        device="cpu",
        script=_script(rule, finding),
    )


def _script(rule: ExperimentRule, finding: LoopFinding) -> str:
    control, treatment = finding.control, finding.treatment
    if control is None or finding.setting is None:
        return ""
    arms = {"control": control.config} | ({"treatment": treatment.config} if treatment else {})
    told = {name: mean(control.figures, name) for name in control.figures[0] if name not in _TIMES}
    return program(rule, arms, finding.setting, said=finding.reason, figures=told)


def _arm(name: str, arm: LoopArm | None, metric: str, *, timed: bool, base: LoopArm | None = None) -> Arm | None:
    if arm is None:
        return None
    other = LoopConfig(loop=arm.config.loop) if base is None else base.config
    settings: dict[str, Any] = {
        key: value for key, value in arm.config.model_dump(mode="json").items() if value != getattr(other, key)
    }
    values = () if timed else tuple(round(one[metric], 4) for one in arm.figures)
    return Arm(name=name, settings=settings, seeds=tuple(range(len(arm.figures))), values=values)


def _scope(rule: ExperimentRule, finding: LoopFinding) -> str:
    if finding.control is None:
        return ""
    text = f"a small loop on the CPU: {_SCOPES[finding.control.config.loop]}"
    if finding.planted:
        text += (
            f"; the fault was planted ({rule.planted}): shown is that it makes this symptom and that the change takes "
            "it away, not that the run has it"
        )
    return text


def _details(finding: LoopFinding) -> Iterator[tuple[str, str]]:
    for name, arm in (("control", finding.control), ("treatment", finding.treatment)):
        for figure in arm.figures[0] if arm else ():
            kind = "time, " if figure in _TIMES else ""
            yield f"{kind}{name}: {label(figure)}", number(mean(arm.figures, figure)) if arm else ""
