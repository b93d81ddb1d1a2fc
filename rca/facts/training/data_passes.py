"""How often the data was gone through: a job that ends by itself where its data ends."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.failure.progress import progress
from rca.facts.failure.run import completion, planned_steps
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.curves import config_number

CATALOGUE: Mapping[str, str] = {
    "data.rows": "samples of the training data, as the program counts them",
    "data.passes": "steps taken times samples a step over the samples of the data",
    "data.ended_with_the_data": "the steps end, short of the plan, with a whole number of passes through the data",
    "run.finished_early": "the run says goodbye before nine tenths of its plan, without a word of early stopping",
}

_BATCHES = ("global_batch_size", "prompts_per_step", "rollout_batch_size", "data.train_batch_size")
EARLY = 0.9
_SLACK = 0.03
"""A last incomplete batch, samples dropped as stale, and steps behind the last logged one."""
_STOPPED_ON_PURPOSE = ("run.early_stopped", "megatron.exit_interval")


def finished_early(events: EventTable) -> Iterator[Fact]:
    """Did the run say that it is done although it was not?"""
    planned, done, goodbye = planned_steps(events), progress(events).last_step, completion(events)
    if planned is None or done is None or goodbye is None or any(events.named(name) for name in _STOPPED_ON_PURPOSE):
        return
    says = f"The run says goodbye at step {done} of {planned} ({percent(done / planned)} of the plan)."
    yield from emit("run.finished_early", done < EARLY * planned, says, events=goodbye[-1:])


def passes(events: EventTable) -> Iterator[Fact]:
    """How many passes through the data do the steps make?"""
    rows, batch, done = _rows(events), _batch(events), progress(events).last_step
    if rows is not None:
        yield from emit("data.rows", rows[0], f"The training data has {rows[0]} samples.", events=[rows[1]])
    if rows is None or batch is None or done is None or done <= 0:
        return
    share = done * batch / rows[0]
    says = f"{done} steps of {number(batch)} samples make {number(share)} passes through {rows[0]} samples."
    yield from emit("data.passes", share, says, events=[rows[1]])
    planned = planned_steps(events)
    if planned is not None and done < EARLY * planned:
        whole = max(round(share), 1)
        yield from emit("data.ended_with_the_data", math.isclose(share, whole, rel_tol=_SLACK), says, events=[rows[1]])


def _rows(events: EventTable) -> tuple[int, int] | None:
    for event in events.named("data.rows_stated", kind="log"):
        value = event.attr("rows") or event.attr("loaded")
        if isinstance(value, int) and value > 1:
            return value, event.event_id
    found = events.config("num_train_examples")
    return (int(found.value), found.event_id) if found is not None and found.value and found.value > 1 else None


def _batch(events: EventTable) -> float | None:
    for name in _BATCHES:
        value = config_number(events, name)
        if value is not None and value >= 1:
            return value
    each = config_number(events, "batch_size")
    if each is None or each < 1:
        return None
    return (
        each * (config_number(events, "gradient_accumulation_steps") or 1) * (config_number(events, "world_size") or 1)
    )


FACTS: tuple[FactFunction, ...] = (finished_early, passes)
