"""Experiments on what the user supplied: a model of the user's own, or the run's samples, in place of the twin's."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from rca.diagnosis import Experiment
from rca.errors import ExperimentError
from rca.experiments.checks.files import is_sample_file, listing, side_of
from rca.experiments.interface import Material, RunProfile
from rca.experiments.twin.arms import BrokenReference, OutOfTime
from rca.experiments.twin.config import FAMILIES, Twin, TwinConfig, changed, reference_of, twin_of
from rca.experiments.twin.experiment import TwinExperiment
from rca.experiments.twin.report import Finding, report
from rca.experiments.twin.sample_stream import unsuited
from rca.experiments.twin.samples import Samples, load
from rca.experiments.twin.supplied import USER, SuppliedBench, program
from rca.experiments.workbench import TIME_OVER, Task, Workbench
from rca.rules.schema import ExperimentRule

APPLIES = frozenset({
    *("lr", "warmup", "decay", "decay_steps", "optimizer", "beta1", "beta2", "eps", "momentum", "weight_decay", "clip"),
    *("batch", "accumulation", "accumulation_mean", "zero_grad", "skip_bad_batches", "seed"),
    *("precision", "scaler", "init_scale", "growth_interval", "loss_factor"),
})  # fmt: skip
"""Settings of how a model is trained, whatever it is; the others belong to the twin's own models, data and loss.

How the weights are drawn and which of them train is up to the user's function, and not known here.
"""
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
"""Ladder of learning rates; the best of it is the recipe that a user's model is measured by."""
_RECIPE = {"optimizer": "adamw", "clip": 1.0, "warmup": 10, "skip_bad_batches": True}


def with_supplied(
    rule: ExperimentRule, profile: RunProfile, bench: Workbench, until: float, material: Material
) -> Experiment:
    """Carry out an experiment of kind `twin` on the user's model (`material.twin`) or samples (`material.data`)."""
    started = time.perf_counter()
    try:
        if material.twin is not None:
            return _with_model(rule, profile, bench, until, material)
        if material.data is not None:
            return _with_samples(rule, profile, bench, until, material.data)
    except (OutOfTime, _Unsuited) as error:
        finding = Finding("not_testable", _sentence(error))
    except BrokenReference as error:
        finding = Finding("invalid", _sentence(error))
    except ExperimentError as error:
        finding = Finding("error", _sentence(error))
    else:
        return TwinExperiment(rule, profile, bench, until).carry_out()
    return report(rule, finding, twin=None, data="", device=bench.device, seconds=time.perf_counter() - started)


class _Unsuited(ExperimentError):
    """What was supplied cannot answer the question."""


def _with_model(
    rule: ExperimentRule, profile: RunProfile, bench: Workbench, until: float, material: Material
) -> Experiment:
    other = sorted(set(rule.change) - APPLIES)
    if other:
        raise _Unsuited(
            f"the change ({', '.join(other)}) is one of the twin's own model, data or loss, which a model of the "
            "user's own does not have"
        )
    base = twin_of(profile.model_copy(update={"family": None, "hidden_size": None})).config
    fields = {name: value for name, value in base.model_dump().items() if name in APPLIES}
    config = TwinConfig(family=USER, **fields)
    if changed(config, {name: value for name, value in rule.change.items() if name == "batch"}).batch < config.batch:
        raise _Unsuited("a batch smaller than those that the user's function makes cannot be had")
    supplied = {
        "program": program(material.twin or ""),
        "data": None if material.data is None else str(material.data.resolve()),
        "settings": {**base.model_dump(mode="json"), "run": profile.model_dump(mode="json", exclude_none=True)},
    }
    own = SuppliedBench(bench, supplied)
    lost = (
        "the width map of the learning rate (the user's model trains at the rate of the run)",
        "planted faults (the user's model has to fail with the run's own settings)",
    )
    found = TwinExperiment(
        rule.model_copy(update={"reproduces": {}}),
        profile,
        own,
        until,
        twin=Twin(config, 1.0, True, lost),
        reference=_best(own, config, until),
        data="the batches of its own",
    ).carry_out()
    return found.model_copy(
        update={"details": (*found.details, ("the model", "built by the function named by --twin"))}
    )


def _best(bench: SuppliedBench, config: TwinConfig, until: float) -> TwinConfig:
    """Return the best of the ladder for the user's model. Raises BrokenReference when none has a finite end."""
    plain = TwinConfig(family=USER, batch=config.batch, accumulation=config.accumulation, seed=config.seed)
    ladder = [plain.model_copy(update={**_RECIPE, "lr": rate}) for rate in RATES]
    answers = bench.run([_task(item, bench.device) for item in ladder], deadline=until)
    failed = next((answer.error for answer in answers if answer.error), "")
    if failed:
        raise OutOfTime if failed == TIME_OVER else ExperimentError(f"the user's model did not train: {failed}")
    losses = [answer.result["eval_loss"] for answer in answers]
    if not any(math.isfinite(loss) for loss in losses):
        raise BrokenReference("the user's model has no finite loss at any learning rate; nothing can be measured by it")
    return ladder[min(range(len(ladder)), key=lambda at: losses[at] if math.isfinite(losses[at]) else math.inf)]


def _task(config: TwinConfig, device: str) -> Task:
    payload: Mapping[str, Any] = {"config": config.model_dump(mode="json"), "seed": 0, "device": device}
    return Task("train", payload, family=config.family)


def _with_samples(rule: ExperimentRule, profile: RunProfile, bench: Workbench, until: float, place: Path) -> Experiment:
    path = _file(place.resolve())
    samples = _loaded(path, path.stat().st_mtime_ns)
    twin = twin_of(profile.model_copy(update=_known_from(samples, profile)))
    why = unsuited(samples, twin.config)
    if why:
        raise _Unsuited(why)
    lost = tuple(item for item in twin.not_carried_over if not item.startswith("the data ("))
    reference = reference_of(twin.config).model_copy(update={"skip_bad_batches": True})
    found = TwinExperiment(
        rule,
        profile,
        SuppliedBench(bench, {"data": str(path)}),
        until,
        twin=twin._replace(not_carried_over=lost),
        reference=reference,
        data=samples.words,
    ).carry_out()
    return found.model_copy(update={"details": (*found.details, ("carried over", samples.words))})


def _known_from(samples: Samples, profile: RunProfile) -> dict[str, Any]:
    """What the samples say about the sizes of the twin."""
    known: dict[str, Any] = {}
    if samples.classes is not None:
        known["num_labels"] = int(samples.classes.max()) + 1
    if samples.kind == "tokens":
        known["vocab_size"] = samples.distinct + 3
    elif profile.family not in FAMILIES and samples.features is not None:
        known["family"] = "cnn" if samples.features.ndim > 2 else "mlp"
    return known


@lru_cache(maxsize=1)
def _loaded(path: Path, _modified: int) -> Samples:
    return load(path)


def _file(place: Path) -> Path:
    """Return the file to learn from: the one named, or the first for training in the folder named."""
    if place.is_file():
        return place
    names = [file.path for file in listing(place).files if is_sample_file(file.path, named=True)]
    usable = [name for name in names if side_of(name) != "held out"]
    first = sorted(usable, key=lambda name: (side_of(name) != "train", name))
    if not first:
        raise _Unsuited("the folder that --data names holds no file with samples")
    return place / first[0]


def _sentence(error: ExperimentError) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
