"""An experiment on a small loop: the run's own settings first, then one of them changed."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rca.diagnosis import Experiment, ExperimentVerdict
from rca.errors import ExperimentError
from rca.experiments.entry import change_words
from rca.experiments.interface import RunProfile
from rca.experiments.loops.config import LoopConfig, Setting, changed, loop_of
from rca.experiments.loops.judging import contrast, decide, mean, number, reproduction
from rca.experiments.loops.report import LoopArm, LoopFinding, report
from rca.experiments.twin.report import words
from rca.experiments.workbench import JobDied, Task, Workbench, unfinished
from rca.rules.schema import ExperimentRule, LoopRule

_REPEATS = 5
"""Repetitions where chance or the clock has a part; everything else is a count."""


@dataclass(frozen=True)
class LoopExperiment:
    """One rule on one loop."""

    rule: ExperimentRule
    profile: RunProfile
    bench: Workbench
    until: float
    """Monotonic clock."""

    def carry_out(self) -> Experiment:
        """Run the arms and judge; every way to end is a verdict."""
        started = time.perf_counter()
        try:
            finding = self._test()
        except ExperimentError as error:
            verdict: ExperimentVerdict = "error" if isinstance(error, JobDied) else "not_testable"
            finding = LoopFinding(verdict, f"Not tested: {error}.")
        return report(self.rule, finding, seconds=time.perf_counter() - started)

    def _test(self) -> LoopFinding:
        rule, loop = self.rule, self._loop()
        self._refuse(loop)
        config, setting = loop_of(self.profile, loop)
        configs = [config, changed(config, rule.change)]
        # A fault is planted only where the run shows the symptom: otherwise there is nothing to explain.
        asked = not rule.symptoms or bool(set(rule.symptoms) & set(self.profile.symptoms))
        if rule.reproduces and asked:
            faulty = changed(config, rule.reproduces)
            configs += [faulty, changed(faulty, rule.change)]
        arms = self._run(configs, setting)
        said = []
        for index, (control, treatment) in enumerate(zip(arms[::2], arms[1::2], strict=True)):
            planted = index > 0
            seen = reproduction(loop, control.figures, self.profile)
            if seen.shown:
                return self._compare(control, treatment, planted=planted, asked=asked, setting=setting)
            which = f"with the planted fault ({rule.planted})" if planted else "with the run's own settings"
            said.append(f"{which}, {seen.says}" if seen.says else which)
        showed = words(self.profile.symptoms) if self.profile.symptoms else "nothing that it could reproduce"
        reason = f"The run shows {showed}. The loop does not show what this experiment is about: {'; '.join(said)}."
        return LoopFinding(rule.when_healthy, reason, arms[0], setting=setting)

    def _loop(self) -> LoopRule:
        if self.rule.loop is None:
            raise ExperimentError(f"the experiment `{self.rule.id}` does not say which loop it runs (`loop:`)")
        return self.rule.loop

    def _refuse(self, loop: LoopRule) -> None:
        for name, value in self.rule.excludes.items():
            if getattr(self.profile, name, None) == value:
                raise ExperimentError(f"the run has {name.replace('_', ' ')} = {value}, under which it says nothing")
        missing = [name.replace("_", " ") for name in loop.requires if getattr(self.profile, name, None) is None]
        if missing:
            raise ExperimentError(f"the run did not record {', '.join(missing)}")

    def _run(self, configs: list[LoopConfig], setting: Setting) -> list[LoopArm]:
        """Run different arms once each, alternating in one job."""
        different = list(dict.fromkeys(configs))
        family = setting.twin.family if setting.twin else setting.question.family if setting.question else ""
        payload = {
            "arms": [config.model_dump(mode="json") for config in different],
            "setting": setting.payload(),
            "repeats": _REPEATS if any(map(_by_chance, different)) else 1,
        }
        answer = self.bench.run([Task("loop", payload, cpu_seconds=90.0, family=family)], deadline=self.until)[0]
        if answer.error:
            raise unfinished("the loop did not finish", answer)
        figures = dict(zip(different, answer.result, strict=True))
        return [LoopArm(config, figures[config]) for config in configs]

    def _compare(
        self, control: LoopArm, treatment: LoopArm, *, planted: bool, asked: bool, setting: Setting
    ) -> LoopFinding:
        rule, loop = self.rule, self._loop()
        found = contrast(loop, rule.metric, control.figures, treatment.figures)
        verdict: ExperimentVerdict = decide(loop, found)
        which = f"the planted fault ({rule.planted})" if planted else "the run's own settings"
        if control.config == treatment.config:
            treated = change_words(rule)
            said = f"{treated[:1].upper()}{treated[1:]}: the run has that already, so it is not the reason."
            return LoopFinding("refuted", said, control, None, None, planted, setting)
        if loop.timed:
            said = f"With {which} the loop waits as the run does; with {change_words(rule)} {_in_words(loop, verdict)}."
        else:
            one, other = mean(control.figures, rule.metric), mean(treatment.figures, rule.metric)
            how = (
                f"{number(found.value)} times less"
                if loop.compares == "ratio" and other > 0
                else f"a difference of {number(one - other)}"
            )
            said = (
                f"With {which} the {loop.figure} is {number(one)}; with {change_words(rule)} it is {number(other)}: "
                f"{how}."
            )
        if not asked:
            said += f" But the run itself shows none of {words(rule.symptoms)}."
            return LoopFinding("not_reproduced", said, control, treatment, found, planted, setting)
        if verdict == "mitigates":
            said += " It helps, but not enough to be the cause alone."
        return LoopFinding(verdict, said, control, treatment, found, planted, setting)


def _by_chance(config: LoopConfig) -> bool:
    return config.loop in {"load", "pad"} or (config.loop == "decode" and config.sampling)


def _in_words(loop: LoopRule, verdict: ExperimentVerdict) -> str:
    """A time in words: two runs of one experiment must read the same."""
    return {
        "confirmed": f"the {loop.figure} is at least {number(loop.at_least)} times shorter, beyond doubt",
        "mitigates": f"the {loop.figure} is shorter, but not surely {number(loop.at_least)} times",
        "refuted": f"the {loop.figure} is surely less than {number(loop.below)} times shorter",
    }.get(verdict, f"the {loop.figure} varies too much on this machine for a statement")
