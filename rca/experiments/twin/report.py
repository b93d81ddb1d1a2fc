"""What a twin experiment found, in words and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rca.diagnosis import Effect, Experiment, ExperimentVerdict
from rca.experiments.entry import entry
from rca.experiments.judges import Gap
from rca.experiments.twin.arms import TrainedArm
from rca.experiments.twin.config import Twin
from rca.experiments.twin.supplied import USER
from rca.rules.schema import ExperimentRule

_METRIC = "share of the learnable gap lost"
_METRIC_MEANING = (
    "(loss - reference) / (chance - reference) on one clean evaluation batch: 0 as good as a known-good recipe, "
    "1 learnt nothing; the effect is control - treatment"
)


class Finding(NamedTuple):
    """A verdict and the arms behind it."""

    verdict: ExperimentVerdict
    reason: str
    control: TrainedArm | None = None
    treatment: TrainedArm | None = None
    reference: TrainedArm | None = None
    gap: Gap | None = None
    planted: bool = False
    """The fault was planted in the control arm."""


def report(
    rule: ExperimentRule, finding: Finding, *, twin: Twin | None, data: str, device: str, seconds: float
) -> Experiment:
    """Return the entry of the diagnosis."""
    control, found = finding.control, finding.gap
    arms = [arm for arm in (control, finding.treatment, finding.reference) if arm is not None]
    base = control.config if control else None
    effect = None
    if found is not None:
        effect = Effect(
            metric=_METRIC,
            meaning=_METRIC_MEANING,
            value=round(found.mean, 4),
            low=round(found.low, 4),
            high=round(found.high, 4),
            recovered=round(found.recovered, 4),
        )
    return entry(
        rule,
        control=control.summary() if control else None,
        treatment=finding.treatment.summary(base) if finding.treatment else None,
        reference=finding.reference.summary(base) if finding.reference else None,
        effect=effect,
        verdict=finding.verdict,
        reason=finding.reason,
        planted=finding.planted,
        scope=_scope(rule, finding, twin, arms, data=data, device=device) if twin and arms else "",
        not_carried_over=twin.not_carried_over if twin else (),
        details=_details(twin, arms) if twin and arms else (),
        seconds=round(seconds, 2),
        device=device,
    )


def words(symptoms: Sequence[str]) -> str:
    """Return symptom words for a sentence."""
    return ", ".join(word.replace("_", " ").replace("nan", "NaN") for word in symptoms) or "nothing unusual"


def figures(values: Sequence[float]) -> str:
    """Return one figure a seed."""
    return "/".join(f"{value:.2f}" for value in values)


def _scope(
    rule: ExperimentRule, finding: Finding, twin: Twin, arms: Sequence[TrainedArm], *, data: str, device: str
) -> str:
    config = arms[0].config
    size = arms[0].outcomes[0].raw["parameters"]
    mapped = f", width map x{twin.width_map:g}" if twin.width_map != 1 else ""
    model = "the user's own model" if config.family == USER else f"a tiny twin: {config.family}"
    text = (
        f"{model}, {size / 1e6:.2f} M parameters{mapped}, {config.steps} steps on {data}, "
        f"{len(arms[0].outcomes)} seeds, on the {'CPU' if device == 'cpu' else 'GPU'}"
    )
    if config.precision == "fp16" and device == "cpu":
        text += "; fp16 emulated as a GPU computes it"
    if finding.planted:
        text += (
            f"; the fault was planted ({rule.planted or 'see the settings'}): shown is that it makes this symptom and "
            "that the change takes it away, not that the run has it"
        )
    return text


def _details(twin: Twin, arms: Sequence[TrainedArm]) -> tuple[tuple[str, str], ...]:
    config = twin.config
    rows = [
        (
            "learning rate of the twin",
            f"{config.lr:.3g} (hidden matrices and head {config.lr * config.lr_factor:.3g})",
        )
    ]
    for arm in arms:
        losses = ", ".join(f"{outcome.eval_loss:.2f}" for outcome in arm.outcomes)
        rows += [(f"{arm.name}: loss on clean data", losses), (f"{arm.name}: shows", words(arm.words))]
        scales = [outcome.raw["scales"][-1] for outcome in arm.outcomes if outcome.raw["scales"]]
        if scales:
            rows.append((f"{arm.name}: loss scale at the end", ", ".join(f"{scale:.3g}" for scale in scales)))
        dropped = sum(outcome.raw["dropped"] for outcome in arm.outcomes)
        if dropped:
            rows.append((f"{arm.name}: batches dropped", str(dropped)))
    rows.append(("loss of a model that knows nothing", f"{arms[0].outcomes[0].raw['chance']:.2f}"))
    return tuple(rows)
