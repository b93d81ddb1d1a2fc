"""All fact functions and all fact names.

A facts module offers two constants: `FACTS: tuple[FactFunction, ...]`, its pure functions over the event table, and
`CATALOGUE: Mapping[str, str]`, fact name -> one line of meaning with the unit. Both are collected here, so that rule
files can be checked against the names that exist. Names must not repeat between modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rca.events import EventTable
from rca.facts import baseline
from rca.facts.collectives import recorded_collectives, stacks, unfinished
from rca.facts.data import (
    audio_rate,
    class_indices,
    lengths,
    listed_files,
    preparation,
    samples,
    scripts,
    shown_pairs,
    split_groups,
)
from rca.facts.evaluation import evaluated_split, held_out, overfitting, quality, score_history, score_trend, unchanged
from rca.facts.failure import attempts, chronology, restarts, run, silence
from rca.facts.interface import Fact, FactFunction, Facts
from rca.facts.machine import (
    device_health,
    device_outliers,
    device_scaling,
    environment,
    host,
    host_activity,
    scheduler,
    telemetry,
)
from rca.facts.memory import allocator_table, device_memory, host_memory, memory_arithmetic, memory_snapshot, oom
from rca.facts.model import loaded_weights, model_folder, model_tokens, parameters, state_keys
from rca.facts.serving import generation_settings, inference, repeated_inputs, server_load, transcripts, truncation
from rca.facts.speed import compilations, profiler_table, rank_spread, ranks, step_parts, throughput, trace, trace_ranks
from rca.facts.training import (
    approach,
    data_passes,
    divergence,
    gradient,
    layer_gradients,
    learning_rate,
    loss,
    loss_parts,
    loss_scale,
    lr_schedule,
    non_finite,
    plateau,
    policy,
    recipe_batch,
    reference_curve,
    sibling_runs,
    spikes,
    weight_norm,
)

MODULES = (
    run,
    data_passes,
    device_scaling,
    chronology,
    silence,
    stacks,
    attempts,
    restarts,
    unfinished,
    recorded_collectives,
    loss,
    loss_parts,
    non_finite,
    divergence,
    approach,
    audio_rate,
    plateau,
    policy,
    preparation,
    spikes,
    weight_norm,
    sibling_runs,
    gradient,
    learning_rate,
    loss_scale,
    lr_schedule,
    recipe_batch,
    held_out,
    overfitting,
    evaluated_split,
    generation_settings,
    oom,
    device_memory,
    host_activity,
    scheduler,
    host_memory,
    memory_arithmetic,
    memory_snapshot,
    allocator_table,
    environment,
    host,
    loaded_weights,
    model_folder,
    model_tokens,
    inference,
    layer_gradients,
    class_indices,
    lengths,
    listed_files,
    parameters,
    state_keys,
    samples,
    shown_pairs,
    split_groups,
    score_history,
    score_trend,
    server_load,
    throughput,
    compilations,
    ranks,
    rank_spread,
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
