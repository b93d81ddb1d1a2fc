"""The program that repeats an experiment, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from rca.diagnosis import Arm, Experiment
from rca.errors import ExperimentError
from rca.experiments.interface import NOTHING, Material, RunProfile
from rca.experiments.judges import MOST
from rca.experiments.memory.question import MemoryQuestion, question_of
from rca.experiments.repro.memory import kept_program, memory_program
from rca.experiments.repro.probe import token_cost_program
from rca.experiments.repro.render import shortened
from rca.experiments.repro.twin import twin_program
from rca.experiments.twin.config import TwinConfig, changed, differences, is_quantile, reference_of, twin_of
from rca.rules.schema import ExperimentRule

RAN = frozenset({"confirmed", "mitigates", "refuted", "inconclusive", "not_reproduced"})
_NONE = "script that repeats it"
"""Label of the reason in the details of an experiment that has no script."""


class Request(NamedTuple):
    """An experiment that ran, and what it ran with."""

    rule: ExperimentRule
    profile: RunProfile
    found: Experiment
    material: Material


def with_script(
    found: Experiment, rule: ExperimentRule, profile: RunProfile, *, material: Material = NOTHING
) -> Experiment:
    """Return the experiment with its script, or with the reason why it has none among its details."""
    write = _WRITERS.get(rule.kind)
    if found.verdict not in RAN or found.script or write is None:
        return found
    try:
        return found.model_copy(update={"script": write(Request(rule, profile, found, material))})
    except ExperimentError as error:
        return found.model_copy(update={"details": (*found.details, (_NONE, f"none: {error}"))})


def _twin(request: Request) -> str:
    found, control = request.found, request.found.control
    if request.material.twin is not None or request.material.data is not None:
        raise ExperimentError("the arms trained on what --twin or --data named; repeat it with the same command")
    if control is None or not control.seeds:
        raise ExperimentError("the arms are not recorded")
    configs = {"control": _config(control, {})}
    best = found.reference
    reference = reference_of(configs["control"]) if best is None else _config(best, control.settings)
    shown = found.treatment is not None
    if found.treatment is not None:
        treated = _config(found.treatment, control.settings)
    else:
        treated = changed(configs["control"], _plain(request.rule))
    if treated != configs["control"]:
        configs["treatment"] = treated
    configs["reference"] = reference
    limit = 20 * configs["control"].chance / MOST
    arms = [arm for arm in (control, found.treatment) if arm is not None]
    planted = configs["control"] != _own(request.profile)
    return twin_program(
        configs,
        seeds=control.seeds,
        title=_title(request),
        parts=(
            ("Question", found.question),
            ("Change", _change(found, configs)),
            ("Planted in the control", request.rule.planted if planted else ""),
            (f"Found ({found.verdict.replace('_', ' ')})", shortened(found.reason, 420)),
            ("Expect", _expected(arms)),
            ("Not run for the report", "" if shown or "treatment" not in configs else "the treatment"),
            ("Shown on", shortened(found.scope, 240)),
        ),
        device=found.device,
        hopeless=any(not math.isfinite(loss) or loss > limit for arm in arms for _, loss in arm.curve),
    )


def _change(found: Experiment, configs: dict[str, TwinConfig]) -> str:
    """The change in words, and as the settings say it."""
    old, new = configs["control"], configs.get("treatment")
    names = differences(old, new) if new is not None else ()
    told = ", ".join(f"{name} {getattr(old, name)} -> {getattr(new, name)}" for name in names)
    return f"{found.change} ({told})" if told else f"{found.change}, which is what the control has already"


def _plain(rule: ExperimentRule) -> dict[str, Any]:
    """The change, as far as it does not hang on what was measured in the control."""
    return {name: value for name, value in rule.change.items() if not is_quantile(value)}


def _config(arm: Arm, base: dict[str, Any]) -> TwinConfig:
    try:
        return TwinConfig.model_validate({**base, **arm.settings})
    except ValidationError as error:
        raise ExperimentError(f"the settings of the arm `{arm.name}` are not those of a twin") from error


def _own(profile: RunProfile) -> TwinConfig | None:
    try:
        return twin_of(profile).config
    except ExperimentError:
        return None


def _expected(arms: Sequence[Arm]) -> str:
    """The figures of the report that the program prints again."""
    told = "; ".join(f"{arm.name} {' '.join(f'{value:.4f}' for value in arm.values)}" for arm in arms)
    seeds = ", ".join(map(str, arms[0].seeds))
    return f"share of the learnable gap lost, seeds {seeds}: {told}"


def _title(request: Request) -> str:
    run = request.material.folder
    of = f" on the run `{shortened(run.resolve().name, 60)}`" if run is not None else ""
    return f"{request.found.title}: the experiment `{request.found.id}` of rca{of}, in one program."


def _memory(request: Request) -> str:
    found = request.found
    if found.control is None or found.treatment is None:
        raise ExperimentError("the arms are not recorded")
    try:
        steps = [MemoryQuestion.model_validate(arm.settings) for arm in (found.control, found.treatment)]
    except ValidationError as error:
        raise ExperimentError("the settings of the arms are not those of a step") from error
    told = "; ".join(f"{arm.name} {arm.values[0]:.3f} GiB" for arm in (found.control, found.treatment))
    return memory_program(
        *steps,
        capacity=float(request.profile.device_capacity_bytes or 0),
        title=_title(request),
        parts=(
            ("Question", found.question),
            ("Change", found.change),
            (f"Found ({found.verdict.replace('_', ' ')})", shortened(found.reason, 420)),
            ("Expect", f"{told}, within a percent; the report continues traces of 2 and 4 layers, this traces all"),
        ),
    )


def _probe(request: Request) -> str:
    rule, found, profile = request.rule, request.found, request.profile
    parts = (
        ("Question", found.question),
        (f"Found ({found.verdict.replace('_', ' ')})", shortened(found.reason, 420)),
        ("Shown on", found.scope),
    )
    if rule.probe == "token_cost":
        return token_cost_program(twin_of(profile).config, title=_title(request), parts=parts)
    if rule.probe == "kept_bytes":
        observed = profile.growth_gib_per_step or 0.0
        return kept_program(question_of(profile), observed=observed, title=_title(request), parts=parts)
    raise ExperimentError(f"it reads the run's own files; `rca experiment {rule.id} RUN_DIR` repeats it")


_WRITERS: dict[str, Callable[[Request], str]] = {"twin": _twin, "memory": _memory, "probe": _probe}
