"""What differs from a healthy run of the same job, as facts that causes can rest on.

They come from a comparison, not from the event table alone, so no function of the table computes them. A comparison
that is worth nothing (the baseline failed itself, or is another job) gives none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from rca.baseline import Baseline, CurveDifference, Difference
from rca.events import EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "baseline.config_changes": "settings that are not as in the healthy run",
    "baseline.changed_settings": "their names, in alphabetical order, separated by commas",
    "baseline.only_change": "the one thing that is not as in the healthy run, when all else that was compared is equal",
    "baseline.lr_ratio": "learning rate over that of the healthy run",
    "baseline.batch_ratio": "samples per device and step over those of the healthy run",
    "baseline.effective_batch_ratio": "samples per optimizer step over those of the healthy run",
    "baseline.sequence_ratio": "sequence length over that of the healthy run",
    "baseline.warmup_removed": "the healthy run warms the learning rate up, this one does not",
    "baseline.clipping_removed": "the healthy run clips the gradient, this one does not",
    "baseline.precision_change": "precision of the healthy run and of this one, where they differ (`bf16 -> fp16`)",
    "baseline.optimizer_changes": "settings of the optimizer other than its learning rate that differ",
    "baseline.workers_ratio": "loader processes over those of the healthy run",
    "baseline.world_size_ratio": "processes over those of the healthy run",
    "baseline.package_change_count": "packages whose version is not that of the healthy run",
    "baseline.package_changes": "their names with both versions",
    "baseline.packages_missing": "packages of the healthy run that the list of this run lacks",
    "baseline.driver_changed": "another NVIDIA driver than in the healthy run",
    "baseline.cuda_changed": "PyTorch was built for another CUDA than in the healthy run",
    "baseline.gpu_changed": "another kind of GPU than in the healthy run",
    "baseline.variable_changes": "environment variables that are not as in the healthy run",
    "baseline.loss_ratio": "loss over that of the healthy run at the last common steps",
    "baseline.loss_parts_at_step": "step from which the loss stays apart from that of the healthy run (step)",
    "baseline.loss_alike": "the loss follows that of the healthy run at all common steps",
    "baseline.eval_loss_ratio": "validation loss over that of the healthy run at the last common steps",
    "baseline.grad_norm_ratio": "gradient norm over that of the healthy run at the last common steps",
    "baseline.grad_norm_parts_at_step": "step from which the gradient norm stays apart (step)",
    "baseline.step_time_ratio": "time of a step over that of the healthy run",
    "baseline.data_time_ratio": "time that a step waits for data over that of the healthy run",
    "baseline.throughput_ratio": "throughput over that of the healthy run",
    "baseline.memory_ratio": "device memory over that of the healthy run at the same steps",
    "baseline.utilization_ratio": "utilisation of the device over that of the healthy run",
    "baseline.clock_ratio": "clock of the device over that of the healthy run",
    "baseline.temperature_ratio": "temperature of the device over that of the healthy run",
    "baseline.new_error_templates": "kinds of log lines that speak of something wrong and that the healthy run lacks",
    "baseline.shared_messages": "known messages that both runs say",
}
FACTS: tuple[FactFunction, ...] = ()

_RATIOS = {
    "learning_rate": ("baseline.lr_ratio", "learning rate"),
    "batch_size": ("baseline.batch_ratio", "batch of one device"),
    "seq_length": ("baseline.sequence_ratio", "sequence length"),
    "num_workers": ("baseline.workers_ratio", "number of loader processes"),
    "processes": ("baseline.world_size_ratio", "number of processes"),
}
"""Setting or property -> fact and what it is called."""
_CHANGED = {
    "NVIDIA driver": "baseline.driver_changed",
    "CUDA of the PyTorch build": "baseline.cuda_changed",
    "GPU": "baseline.gpu_changed",
}
_OPTIMIZER = frozenset(
    {"optimizer", "adam_beta1", "adam_beta2", "adam_eps", "momentum", "weight_decay", "lr_scheduler"}
)
_PRECISION = ("precision", "fp16", "bf16", "torch_dtype")
_CURVES = {
    "loss": "baseline.loss_ratio",
    "eval_loss": "baseline.eval_loss_ratio",
    "grad_norm": "baseline.grad_norm_ratio",
    "step_time": "baseline.step_time_ratio",
    "data_time": "baseline.data_time_ratio",
    "throughput": "baseline.throughput_ratio",
    "memory_allocated": "baseline.memory_ratio",
    "gpu_utilization": "baseline.utilization_ratio",
    "sm_clock": "baseline.clock_ratio",
    "gpu_temperature": "baseline.temperature_ratio",
}
LONG_ENOUGH = 20
"""Common steps from which "the loss is alike" says something."""


def baseline_facts(baseline: Baseline, events: EventTable) -> Iterator[Fact]:
    """Return the facts of a comparison that counts; `events` are those of the run, to show where it says so."""
    if not baseline.used:
        return
    yield from _counts(baseline, events)
    yield from _settings(baseline, events)
    yield from _surroundings(baseline, events)
    for line in baseline.curves:
        yield from _curve(line, events)
    yield from _messages(baseline)


def _counts(baseline: Baseline, events: EventTable) -> Iterator[Fact]:
    compared = [item for item in baseline.differences if item.group == "configuration"]
    names = ", ".join(sorted(item.name for item in compared))
    if compared or baseline.unchanged:
        says = f"{len(compared)} settings are not as in the healthy run" + (f": {names[:300]}." if names else ".")
        shown = [event for item in compared for event in _said(item, events)]
        yield from emit("baseline.config_changes", len(compared), says, events=shown)
        if compared:
            yield from emit("baseline.changed_settings", names[:2000], says, events=shown)
    if len(baseline.differences) == 1 and baseline.unchanged:
        (only,) = baseline.differences
        says = f"{_both(only)}; all else that was compared is equal."
        yield from emit("baseline.only_change", only.name, says, events=_said(only, events))


def _settings(baseline: Baseline, events: EventTable) -> Iterator[Fact]:
    settings = {item.name: item for item in baseline.differences if item.group != "packages"}
    for name, (fact, words) in _RATIOS.items():
        item = settings.get(name)
        if name in baseline.same:
            says = f"The {words} is that of the healthy run."
            yield from emit(
                fact, 1.0, says, events=[event.event_id for event in events.named(name, kind="config")[-1:]]
            )
        if item is not None and item.ratio is not None:
            says = f"The {words} is {number(item.ratio)} times that of the healthy run: {_both(item)}."
            yield from emit(fact, item.ratio, says, events=_said(item, events))
    yield from _effective_batch(settings, events)
    for key, fact, verb in (
        ("warmup_steps", "baseline.warmup_removed", "warms the learning rate up"),
        ("warmup_ratio", "baseline.warmup_removed", "warms the learning rate up"),
        ("max_grad_norm", "baseline.clipping_removed", "clips the gradient"),
    ):
        item = settings.get(key)
        if item is not None and _positive(item.baseline) and not _positive(item.value):
            says = f"The healthy run {verb}, this one does not: {_both(item)}."
            yield from emit(fact, True, says, events=_said(item, events))
    precision = next((settings[key] for key in _PRECISION if key in settings), None)
    if precision is not None and precision.value is not None and precision.baseline is not None:
        change = f"{precision.baseline} -> {precision.value}"
        yield from emit("baseline.precision_change", change, f"{_both(precision)}.", events=_said(precision, events))
    changed = [settings[name] for name in sorted(_OPTIMIZER & settings.keys())]
    if changed:
        says = f"{'; '.join(_both(item) for item in changed)}."
        shown = [event for item in changed for event in _said(item, events)]
        yield from emit("baseline.optimizer_changes", len(changed), says, events=shown)


def _effective_batch(settings: Mapping[str, Difference], events: EventTable) -> Iterator[Fact]:
    """The product of batch, accumulation and processes, or the setting that says it outright."""
    whole = settings.get("global_batch_size")
    parts = [settings[key] for key in ("batch_size", "gradient_accumulation_steps", "processes") if key in settings]
    if whole is not None and whole.ratio is not None:
        parts = [whole]
    known = [item.ratio for item in parts if item.ratio is not None]
    if parts and len(known) == len(parts):
        ratio = math.prod(known)
        says = f"An optimizer step sees {number(ratio)} times as many samples as in the healthy run."
        shown = [event for item in parts for event in _said(item, events)]
        yield from emit("baseline.effective_batch_ratio", ratio, says, events=shown)


def _surroundings(baseline: Baseline, events: EventTable) -> Iterator[Fact]:
    listed = [item for item in baseline.differences if item.group == "packages"]
    gone = [item for item in listed if item.value is None]
    if gone:
        names = ", ".join(item.name for item in gone)
        says = f"{len(gone)} packages of the healthy run are not listed here: {names[:300]}."
        yield from emit("baseline.packages_missing", len(gone), says)
    packages = [item for item in listed if None not in (item.value, item.baseline)]
    if packages:
        changes = ", ".join(f"{item.name} {item.baseline} -> {item.value}" for item in packages)
        says = f"{len(packages)} packages have another version than in the healthy run: {changes[:300]}."
        shown = [event for item in packages for event in _said(item, events)]
        yield from emit("baseline.package_change_count", len(packages), says, events=shown)
        yield from emit("baseline.package_changes", changes[:2000], says, events=shown)
    for item in baseline.differences:
        if item.group == "system" and item.name in _CHANGED:
            yield from emit(_CHANGED[item.name], True, f"{_both(item)}.")
    variables = [item for item in baseline.differences if item.group == "configuration" and item.name.isupper()]
    if variables:
        says = f"{'; '.join(_both(item) for item in variables[:6])}."
        yield from emit("baseline.variable_changes", len(variables), says)


def _curve(line: CurveDifference, events: EventTable) -> Iterator[Fact]:
    shown = _at(line, events)
    fact = _CURVES.get(line.name)
    if fact is not None and line.ratio is not None:
        yield from emit(fact, line.ratio, line.says, events=shown)
    if line.x_name != "step":
        return
    if line.name in {"loss", "grad_norm"} and line.parts_at is not None:
        yield from emit(f"baseline.{line.name}_parts_at_step", line.parts_at, line.says, unit="step", events=shown)
    if line.name == "loss" and line.points >= LONG_ENOUGH:
        yield from emit("baseline.loss_alike", line.parts_at is None, line.says, events=shown)


def _messages(baseline: Baseline) -> Iterator[Fact]:
    wrong = [
        item
        for item in baseline.messages
        if item.kind == "template" and item.status == "new" and item.severity == "error"
    ]
    says = f"{len(wrong)} kinds of lines speak of something wrong and are new" + (
        f", the first: {wrong[0].text[:160]}" if wrong else "."
    )
    yield from emit("baseline.new_error_templates", len(wrong), says)
    both = [item for item in baseline.messages if item.kind == "signature" and item.status == "both"]
    names = ", ".join(item.name for item in both[:6])
    says = f"{len(both)} known messages are said by the healthy run as well" + (f": {names}." if names else ".")
    yield from emit("baseline.shared_messages", len(both), says)


def _said(item: Difference, events: EventTable) -> tuple[int, ...]:
    """The event in which this run says its value."""
    kind = "package" if item.group == "packages" else "config"
    found = [event for event in events.named(item.name, kind=kind) if event.source == item.source]
    return (found[-1].event_id,) if found else ()


def _at(line: CurveDifference, events: EventTable) -> tuple[int, ...]:
    """The point of this run's curve at which the curves part, or its last one."""
    series = events.metric(line.name)
    if series is None or not len(series):
        return ()
    later = np.flatnonzero(series.step >= (math.inf if line.parts_at is None else line.parts_at))
    return (int(series.event_id[later[0] if len(later) else -1]),)


def _both(item: Difference) -> str:
    """`learning_rate is 1.0, in the healthy run 0.003`."""
    here = "not set" if item.value is None else item.value
    there = "not set" if item.baseline is None else item.baseline
    return f"{item.name} is {here}, in the healthy run {there}"


def _positive(value: str | None) -> bool:
    try:
        return value is not None and float(value) > 0
    except ValueError:
        return value is not None and value.strip().lower() not in {"", "none", "null", "false", "no"}
