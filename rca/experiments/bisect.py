"""Which of the settings that differ from a healthy run make the twin fail as this run did: the smallest set of them.

The twin of the healthy run trains, the twin of this run fails; in between, delta debugging tries parts of the
difference. What a twin does not carry over (data, code, versions, hardware) is not searched.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from rca.diagnosis import Experiment, ExperimentVerdict, Table
from rca.errors import ExperimentError
from rca.experiments.ddmin import ddmin
from rca.experiments.interface import RunProfile
from rca.experiments.judges import FEWEST
from rca.experiments.symptoms import reproduces
from rca.experiments.twin.arms import BrokenReference, OutOfTime, TrainedArm, train
from rca.experiments.twin.config import Twin, TwinConfig, reference_of, twin_of
from rca.experiments.twin.report import figures, words
from rca.experiments.workbench import Workbench
from rca.rules.schema import ExperimentRule

BISECTION = ExperimentRule(
    id="bisect_config",
    title="Smallest set of settings that makes the difference",
    question="Which of the settings that differ from the healthy run make the twin fail as this run did?",
    kind="twin",
    metric="smallest_set",
    treatment="this run's values of the smallest set of settings that makes the twin fail",
    confirms=(),
    says=(
        "If settings are to blame, the twin trains with those of the healthy run and fails with those of this run, and "
        "a smallest set of the settings that differ is enough to make it fail. If they are not, it trains with both."
    ),
    predicts={},
    cost=20,
    measured=(
        "Seconds of computing for one culprit among four settings of a small dense network; it tests no cause, so it "
        "runs last."
    ),
)
"""The experiment of a comparison with a healthy run."""

_MODEL = ("family", "width", "layers", "heads", "kv_heads", "ff", "vocab", "labels", "seq", "tied", "lr_factor")
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "the model": (*_MODEL, "init_std", "activation", "residual", "norm_eps", "attention"),
    "optimizer": ("optimizer", "momentum"),
    "schedule": ("decay", "decay_steps"),
    "batch": ("batch", "accumulation"),
}
"""Settings that only make sense together."""
_CALLED = {
    "lr": "learning rate",
    "clip": "gradient clipping",
    "eps": "epsilon of Adam",
    "seed": "seed",
    "init_factor": "scale of the initial weights",
    "init_scale": "initial loss scale",
    "growth_interval": "growth interval of the loss scale",
}
_MAY_BE_OFF = ("max_grad_norm", "warmup_steps", "gradient_accumulation_steps", "momentum", "weight_decay", "dropout")
"""What a run does not name when it does not use it; anything else that one run does not name is not a difference."""
_OF_THE_FAILURE = (
    *("learning_rate_at_failure", "learning_rate_peak", "failure_step", "symptom_step", "steps_at_rate"),
    *("lr_warmup_share", "lr_half_share", "lr_decay", "ignored_share", "pretrained"),
)
"""What was seen in the course of a run is no setting."""


class Bisection:
    """The search, with every part of the difference that was tried."""

    def __init__(self, profile: RunProfile, healthy: RunProfile | None, bench: Workbench, until: float) -> None:
        self.profile, self.healthy, self.bench, self.until = profile, healthy, bench, until
        self.tried: list[tuple[tuple[str, ...], TrainedArm, bool]] = []
        self.names: tuple[str, ...] = ()
        self.good = self.bad = TwinConfig()
        self.twin: Twin | None = None

    def carry_out(self) -> Experiment:
        """Search and report; every way to end is a verdict."""
        started = time.perf_counter()
        smallest: tuple[str, ...] = ()
        verdict: ExperimentVerdict
        try:
            verdict, reason, smallest = self._search()
        except OutOfTime as error:
            failing = [part for part, _, failed in self.tried if failed]
            smallest = min(failing, key=len, default=())
            far = f" The smallest set so far: {self._told(smallest)}." if smallest else ""
            verdict, reason = "inconclusive" if smallest else "not_testable", f"{_sentence(error)}{far}"
        except BrokenReference as error:
            verdict, reason = "invalid", _sentence(error)
        except ExperimentError as error:
            verdict, reason = "error", _sentence(error)
        return self._report(verdict, reason, smallest, time.perf_counter() - started)

    def _search(self) -> tuple[ExperimentVerdict, str, tuple[str, ...]]:
        if self.healthy is None:
            return "not_testable", "No healthy run to compare with was given (--baseline DIR).", ()
        if not self.profile.symptoms:
            return "not_testable", "The run left no training curve with a symptom that a twin could reproduce.", ()
        ours, theirs = _settings_of(self.profile, self.healthy)
        self.twin = twin_of(ours)
        self.good, self.bad = twin_of(theirs).config, self.twin.config
        self.names = _differing(self.good, self.bad)
        if not self.names:
            return "no_op", "No setting that a twin carries differs from the healthy run.", ()
        if self._fails(()):
            reason = (
                f"The twin shows {self._seen()} with the settings of the healthy run already: what differs is not what "
                "makes it fail."
            )
            return "refuted", reason, ()
        if not self._fails(self.names):
            reason = (
                f"The run shows {words(self.profile.symptoms)}; with all {len(self.names)} settings of this run that "
                f"differ ({self._told(self.names)}) the twin shows {self._seen()}."
            )
            return "not_reproduced", reason, ()
        smallest = ddmin(self.names, self._fails)
        return "confirmed", self._conclusion(smallest), smallest

    def _conclusion(self, smallest: tuple[str, ...]) -> str:
        others = tuple(name for name in self.names if name not in smallest)
        sentence = (
            f"The twin trains with the settings of the healthy run and fails as this run did with its own. Of "
            f"{len(self.names)} that differ, {self._told(smallest)} {'is' if len(smallest) == 1 else 'are'} enough"
        )
        if not others:
            return f"{sentence}; none of them can be left out."
        known = {part: failed for part, _, failed in self.tried}
        alone = known[others] if others in known else self._fails(others)
        return f"{sentence}; with only the others changed it {'fails, too' if alone else 'trains'}."

    def _fails(self, part: tuple[str, ...]) -> bool:
        """Whether the twin fails as the run did when these settings are those of this run."""
        config = self._with(part)
        arm = train(
            self.bench, [("treatment", config)], tuple(range(FEWEST)), reference=reference_of(config), until=self.until
        )[0]
        shows = [reproduces(self.profile.symptoms, outcome.symptoms, planted=False) for outcome in arm.outcomes]
        failed = sum(shows) * 2 >= len(shows)
        self.tried.append((part, arm, failed))
        return failed

    def _with(self, part: Sequence[str]) -> TwinConfig:
        fields = [field for name in part for field in _GROUPS.get(name, (name,))]
        try:
            return TwinConfig.model_validate(
                {**self.good.model_dump(), **{field: getattr(self.bad, field) for field in fields}}
            )
        except ValidationError as error:
            raise ExperimentError(f"these settings do not go together: {error.errors()[0]['msg']}") from error

    def _seen(self) -> str:
        arm = self.tried[-1][1]
        return f"{words(arm.words) if arm.words else 'ordinary learning'} (loses {figures(arm.values)} of the gap)"

    def _told(self, part: Sequence[str]) -> str:
        return ", ".join(self._change(name) for name in part)

    def _change(self, name: str) -> str:
        """One difference in words: name, value of the healthy run, value of this run."""
        called = _CALLED.get(name, name.replace("_", " "))
        fields = [
            field for field in _GROUPS.get(name, (name,)) if getattr(self.good, field) != getattr(self.bad, field)
        ]
        old, new = ("/".join(_value(getattr(side, field)) for field in fields) for side in (self.good, self.bad))
        return f"{called} ({old} -> {new})"

    def _report(self, verdict: ExperimentVerdict, reason: str, smallest: tuple[str, ...], seconds: float) -> Experiment:
        rule = BISECTION
        arms = {part: arm for part, arm, _ in self.tried}
        control, treatment = arms.get(()), arms.get(smallest) if smallest else None
        rows = tuple(
            (
                self._told(part) or "none (the healthy run)",
                words(arm.words) if arm.words else "ordinary learning",
                figures(arm.values),
                "yes" if failed else "no",
            )
            for part, arm, failed in self.tried
        )
        marked = next((at for at, (part, _, _) in enumerate(self.tried) if smallest and part == smallest), None)
        size = control.outcomes[0].raw["parameters"] / 1e6 if control is not None else 0.0
        return Experiment(
            id=rule.id,
            title=rule.title,
            question=rule.question,
            prediction=rule.says,
            change=self._told(smallest),
            control=control.summary().model_copy(update={"name": "healthy run"}) if control is not None else None,
            treatment=treatment.summary(self.good) if treatment is not None else None,
            verdict=verdict,
            reason=reason,
            scope=(
                f"a tiny twin: {self.good.family}, {size:.2f} M parameters, {self.good.steps} steps on synthetic data, "
                f"{FEWEST} seeds; only settings that a twin carries were searched"
                if control is not None
                else ""
            ),
            not_carried_over=self.twin.not_carried_over if self.twin is not None else (),
            seconds=round(seconds, 2),
            device=self.bench.device,
            table=Table(
                title="Settings taken from this run, the others from the healthy one",
                columns=("settings of this run", "the twin shows", "share of the gap lost", "fails as the run did"),
                rows=rows,
                marked=marked,
                note="Data, code, versions and hardware are not searched.",
            )
            if rows
            else None,
        )


def _settings_of(profile: RunProfile, healthy: RunProfile) -> tuple[RunProfile, RunProfile]:
    """Return both runs as far as their settings go; what only one of them names counts as the same in both."""
    plain: dict[str, Any] = dict.fromkeys(name for name in _OF_THE_FAILURE if name in RunProfile.model_fields)
    sides = []
    for one, other in ((profile, healthy), (healthy, profile)):
        update = {
            name: getattr(other, name)
            for name in RunProfile.model_fields
            if getattr(one, name) is None and name not in _MAY_BE_OFF
        }
        update["learning_rate"] = one.learning_rate or one.learning_rate_peak or other.learning_rate
        sides.append(one.model_copy(update={**update, **plain, "symptoms": profile.symptoms}))
    return sides[0], sides[1]


def _differing(good: TwinConfig, bad: TwinConfig) -> tuple[str, ...]:
    """Names of the settings, or groups of them, in which the twins of the two runs differ."""
    grouped = {field: name for name, fields in _GROUPS.items() for field in fields}
    return tuple(
        dict.fromkeys(
            grouped.get(field, field)
            for field in TwinConfig.model_fields
            if getattr(good, field) != getattr(bad, field)
        )
    )


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _sentence(error: ExperimentError) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
