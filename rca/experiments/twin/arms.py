"""Arms of an experiment: which twins to train with which seeds, and what each arm did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from rca.diagnosis import Arm
from rca.errors import ExperimentError
from rca.experiments.judges import LOWEST, lost_gap
from rca.experiments.symptoms import UNSTABLE, Evaluation, shown
from rca.experiments.twin.config import TwinConfig
from rca.experiments.workbench import TIME_OVER, Task, Workbench

ABOVE_START = 1.5
"""Loss over the first loss from which a training is no longer an ordinary one."""
LEAST_LEARNT = 0.2
"""Share of the chance loss that the reference arm must learn away; less means that the engine is broken."""


@dataclass(frozen=True)
class Outcome:
    """What one arm did with one seed."""

    seed: int
    eval_loss: float
    lost_gap: float
    symptoms: frozenset[str]
    losses: tuple[float | None, ...]
    finite: bool
    """All recorded training losses are finite."""
    raw: dict[str, Any]


@dataclass(frozen=True)
class TrainedArm:
    """One arm over its seeds."""

    name: str
    config: TwinConfig
    outcomes: tuple[Outcome, ...]

    @property
    def values(self) -> tuple[float, ...]:
        """`g` of each seed."""
        return tuple(outcome.lost_gap for outcome in self.outcomes)

    @property
    def mean(self) -> float:
        """Mean `g`."""
        return fmean(self.values)

    @property
    def words(self) -> tuple[str, ...]:
        """Symptoms that at least half of the seeds showed."""
        seen = [word for outcome in self.outcomes for word in outcome.symptoms]
        return tuple(sorted({word for word in seen if seen.count(word) >= len(self.outcomes) / 2}))

    @property
    def norms(self) -> tuple[float, ...]:
        """Gradient norms of all seeds, before clipping, while the training was ordinary."""
        return tuple(norm for outcome in self.outcomes for norm in _ordinary(outcome))

    @property
    def unstable(self) -> bool:
        """Whether it did worse than learn slowly or not at all."""
        return bool(set(self.words) & UNSTABLE)

    def summary(self, base: TwinConfig | None = None) -> Arm:
        """Return the arm for the report; `base` limits the settings to those that differ from it."""
        settings = self.config.model_dump(mode="json")
        if base is not None:
            settings = {name: value for name, value in settings.items() if value != getattr(base, name)}
        return Arm(
            name=self.name,
            settings=settings,
            seeds=tuple(outcome.seed for outcome in self.outcomes),
            values=tuple(round(value, 4) for value in self.values),
            curve=self._curve(),
        )

    def _curve(self) -> tuple[tuple[float, float], ...]:
        points = []
        for step in range(max(len(outcome.losses) for outcome in self.outcomes)):
            here = [outcome.losses[step] for outcome in self.outcomes if step < len(outcome.losses)]
            kept = [loss for loss in here if loss is not None]
            if kept:
                points.append((float(step), _rounded(fmean(kept))))
        return tuple(points)


def train(
    bench: Workbench,
    arms: Sequence[tuple[str, TwinConfig]],
    seeds: Sequence[int],
    *,
    reference: TwinConfig,
    until: float,
) -> list[TrainedArm]:
    """Train every arm with every seed, and the reference arm to measure them by.

    Raises ExperimentError when a job fails, when `until` (monotonic clock) comes first, or when the reference arm does
    not learn.
    """
    configs = [reference, *(config for _, config in arms)]
    tasks = [_task(config, seed, bench.device) for seed in seeds for config in configs]
    results = _results(bench, tasks, until=until)
    rows = [results[start : start + len(configs)] for start in range(0, len(results), len(configs))]
    for seed, row in zip(seeds, rows, strict=True):
        best, chance = row[0]["eval_loss"], row[0]["chance"]
        if not math.isfinite(best) or best > (1 - LEAST_LEARNT) * chance:
            raise BrokenReference(
                f"the reference arm did not learn (loss {best:.2f} of {chance:.2f} for a model that knows nothing, "
                f"seed {seed}); no statement is possible with this twin"
            )
    return [
        TrainedArm(name, config, tuple(_outcome(row[index + 1], row[0]) for row in rows))
        for index, (name, config) in enumerate(arms)
    ]


def train_further(
    bench: Workbench, arm: TrainedArm, seeds: Sequence[int], *, good: TrainedArm, until: float
) -> TrainedArm:
    """Train an arm with further seeds only, measured by what the reference arm `good` reached on average.

    That tells how much the arm differs from itself, in half the time. Raises ExperimentError as `train` does.
    """
    results = _results(bench, [_task(arm.config, seed, bench.device) for seed in seeds], until=until)
    best = fmean(outcome.eval_loss for outcome in good.outcomes)
    further = tuple(_outcome(result, {"eval_loss": best, "chance": result["chance"]}) for result in results)
    return replace(arm, outcomes=(*arm.outcomes, *further))


def _results(bench: Workbench, tasks: Sequence[Task], *, until: float) -> list[dict[str, Any]]:
    answers = bench.run(tasks, deadline=until)
    failed = next((answer.error for answer in answers if answer.error), "")
    if failed == TIME_OVER:
        raise OutOfTime
    if failed:
        raise ExperimentError(f"an arm did not finish: {failed}")
    return [answer.result for answer in answers]


class BrokenReference(ExperimentError):
    """The known-good recipe does not learn on this twin."""


class OutOfTime(ExperimentError):
    """The time for experiments was over before the arms had finished."""

    def __init__(self) -> None:
        super().__init__(
            "the time for experiments was over before its arms had finished; a larger --budget or an idle machine helps"
        )


def _task(config: TwinConfig, seed: int, device: str) -> Task:
    payload = {"config": config.model_dump(mode="json"), "seed": seed, "device": device}
    seconds = 30.0 if config.precision == "fp32" else 60.0
    return Task("train", payload, cpu_seconds=seconds, family=config.family)


def _outcome(result: dict[str, Any], reference: dict[str, Any]) -> Outcome:
    lost = lost_gap(result["eval_loss"], reference["eval_loss"], reference["chance"])
    losses = tuple(result["losses"])
    return Outcome(
        seed=result["seed"],
        eval_loss=result["eval_loss"],
        lost_gap=max(LOWEST, lost),
        symptoms=shown(
            losses,
            lost_gap=lost,
            chance=result["chance"],
            skipped=result["skipped"],
            evaluation=Evaluation(
                loss=result["eval_loss"],
                best=reference["eval_loss"],
                watched=tuple(loss for _, loss in result.get("watched", ())),
                norms=tuple(result.get("grad_norms", ())),
                layer_ratio=result.get("layer_ratio"),
            ),
        ),
        losses=losses,
        finite=all(loss is None or math.isfinite(loss) for loss in losses),
        raw=result,
    )


def _ordinary(outcome: Outcome) -> Sequence[float]:
    """Norms up to the step at which the loss is no longer a number, or well above where it began."""
    losses = [loss for loss in outcome.losses if loss is not None]
    end = next(
        (step for step, loss in enumerate(losses) if not loss <= ABOVE_START * losses[0]),
        len(losses),
    )
    norms: Sequence[float] = outcome.raw.get("grad_norms", ())
    return norms[:end]


def _rounded(value: float) -> float:
    return float(f"{value:.5g}") if math.isfinite(value) else value
