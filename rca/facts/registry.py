"""All fact functions and all fact names.

A facts module offers two constants: `FACTS: tuple[FactFunction, ...]`, its pure functions over the event table, and
`CATALOGUE: Mapping[str, str]`, fact name -> one line of meaning with the unit. Both are collected here, so that rule
files can be checked against the names that exist. Names must not repeat between modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rca.events import EventTable
from rca.facts import (
    allocator_table,
    approach,
    attempts,
    audio_rate,
    baseline,
    chronology,
    collectives,
    data_passes,
    device_health,
    device_outliers,
    device_scaling,
    divergence,
    environment,
    evaluated_split,
    evaluation,
    generation_settings,
    gradient,
    host,
    host_activity,
    host_memory,
    inference,
    layer_gradients,
    learning_rate,
    lengths,
    listed_files,
    loss,
    loss_parts,
    loss_scale,
    lr_schedule,
    memory,
    memory_arithmetic,
    memory_snapshot,
    model_folder,
    model_tokens,
    non_finite,
    oom,
    parameters,
    plateau,
    preparation,
    profiler_table,
    quality,
    ranks,
    recorded_collectives,
    reference_curve,
    repeated_inputs,
    restarts,
    run,
    samples,
    scheduler,
    score_history,
    score_trend,
    scripts,
    serving,
    sibling_runs,
    silence,
    spikes,
    split_groups,
    stacks,
    step_parts,
    telemetry,
    throughput,
    trace,
    trace_ranks,
    transcripts,
    truncation,
    unchanged,
)
from rca.facts.interface import Fact, FactFunction, Facts

MODULES = (
    run,
    data_passes,
    device_scaling,
    chronology,
    silence,
    stacks,
    attempts,
    restarts,
    collectives,
    recorded_collectives,
    loss,
    loss_parts,
    non_finite,
    divergence,
    approach,
    audio_rate,
    plateau,
    preparation,
    spikes,
    sibling_runs,
    gradient,
    learning_rate,
    loss_scale,
    lr_schedule,
    evaluation,
    evaluated_split,
    generation_settings,
    oom,
    memory,
    host_activity,
    scheduler,
    host_memory,
    memory_arithmetic,
    memory_snapshot,
    allocator_table,
    environment,
    host,
    model_folder,
    model_tokens,
    inference,
    layer_gradients,
    lengths,
    listed_files,
    parameters,
    samples,
    split_groups,
    score_history,
    score_trend,
    serving,
    throughput,
    ranks,
    reference_curve,
    repeated_inputs,
    telemetry,
    device_health,
    device_outliers,
    trace,
    trace_ranks,
    transcripts,
    truncation,
    unchanged,
    profiler_table,
    step_parts,
    quality,
    scripts,
    baseline,
)

ALL: tuple[FactFunction, ...] = tuple(function for module in MODULES for function in module.FACTS)
CATALOGUE: Mapping[str, str] = MappingProxyType(
    {name: meaning for module in MODULES for name, meaning in module.CATALOGUE.items()}
)


def extract(events: EventTable) -> Facts:
    """Compute all facts of an event table; what a function raises is not caught here."""
    found: dict[str, Fact] = {}
    for function in ALL:
        found.update({fact.name: fact for fact in function(events)})
    return found
