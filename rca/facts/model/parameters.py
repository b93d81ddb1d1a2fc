"""What tables and logs describe one by one: the parameters of the model and the columns of the data."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from rca.events import Event, EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.curves import config_number

CATALOGUE: Mapping[str, str] = {
    "parameters.described": "number of parameters of which statistics were printed or saved",
    "parameters.untouched_share": "share of trainable matrices that start at zero and still are exactly zero",
    "parameters.unchanged_share": "share of trainable parameters with the same norm to all digits in two tables",
    "parameters.gradient_fault_share": "share of parameters whose gradient breaks at the step when the first one does",
    "parameters.gradient_fault_isolated": "a few gradients break while the others of that step are ordinary",
    "parameters.gradients_gone_share": "share of parameters whose gradient norm fell below a millionth of its start",
    "parameters.gradients_gone_step": "median step at which they had fallen that low",
    "parameters.gradients_zero_share": "share of trainable parameters whose gradient was exactly zero from the start",
    "init.std_max": "largest standard deviation of a weight matrix before or at the start of training",
    "init.std_stated": "standard deviation that the configuration or the program says weights are drawn with",
    "init.std_over_stated": "largest printed standard deviation over the stated one",
    "inputs.constant_columns": "numeric columns of the training data with a single value or no spread",
    "inputs.missing_columns": "columns of the training data in which values are missing",
    "inputs.constant_share": "share of the described columns that are constant",
}

STARTS_AT_ZERO = re.compile(r"lora_B|lora_up|lora_embedding_B|adapter_up|zero_conv|zero_proj", re.I)
"""Matrices that adapters initialise with zeros (LoRA: Hu et al. 2021; ControlNet: Zhang et al. 2023); one update
changes every one of them."""
_NO_MATRIX = re.compile(r"norm|\bln\b|\bln[._]|bias|\bscale|gamma|beta|running_", re.I)
_VOCABULARY = re.compile(r"(?:^|[._])(?:emb\w*|wte|tok\w*_emb\w*|lm_head|head|output|shared)(?:\.\d+)?\.weight$", re.I)
SMALLEST_VOCABULARY = 1000
"""Word-piece vocabularies begin at about a thousand entries."""
ENORMOUS = 1e6
"""Times the median gradient norm of the step: no clipping or scale brings such a gradient back into order."""
GONE = 1e-6
"""Share of the first norms: below it stands float32 rounding (AutoTrainer: 1e-3 of the norm of the last layer)."""
_FEWEST = 3


def _parameters(events: EventTable) -> tuple[Event, ...]:
    return events.named("model.parameter", kind="artifact")


def _value(event: Event, name: str) -> float | None:
    value = event.attr(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _by_name(rows: Sequence[Event], name: str) -> dict[str, list[tuple[float, Event]]]:
    """Return the values of one statistic of each parameter, in the order of the steps."""
    found: dict[str, list[tuple[float, Event]]] = defaultdict(list)
    for row in rows:
        value = _value(row, name)
        if value is not None:
            found[str(row.attr("name"))].append((value, row))
    for items in found.values():
        items.sort(key=lambda item: (-1 if item[1].step is None else item[1].step, item[1].event_id))
    return found


def untouched(events: EventTable) -> Iterator[Fact]:
    """Did every trainable matrix move?"""
    rows = [row for row in _parameters(events) if row.attr("trainable") is not False]
    if not rows:
        return
    count = len({str(row.attr("name")) for row in rows})
    yield from emit(
        "parameters.described", count, f"Statistics of {count} parameters were found.", events=[rows[0].event_id]
    )
    sizes = {**_by_name(rows, "absmax"), **_by_name(rows, "magnitude"), **_by_name(rows, "norm")}
    norms = {name: items for name, items in sizes.items() if not _NO_MATRIX.search(name)}
    last = {name: items[-1] for name, items in norms.items()}
    zero_born = {name: item for name, item in last.items() if STARTS_AT_ZERO.search(name)}
    if len(zero_born) >= _FEWEST:
        still = [item[1].event_id for item in zero_born.values() if item[0] == 0.0]
        says = f"{len(still)} of {len(zero_born)} adapter matrices that start at zero still are exactly 0."
        yield from emit("parameters.untouched_share", len(still) / len(zero_born), says, events=still)
    twice = {name: items for name, items in norms.items() if _places(items) >= 2 and items[0][0] > 0}
    if len(twice) >= _FEWEST:
        same = [items[-1][1].event_id for items in twice.values() if len({value for value, _ in items}) == 1]
        says = f"The norms of {len(same)} of {len(twice)} weight matrices do not change in any digit."
        yield from emit("parameters.unchanged_share", len(same) / len(twice), says, events=same)


def _places(items: Sequence[tuple[float, Event]]) -> int:
    """Count the steps, or the files, in which a parameter was described; ranks of one step count once."""
    return len(
        {
            (row.source, row.step) if row.step is None else (None, row.step)
            for _value, row in items
            if row.rank in {None, 0}
        }
    )


def gradient_faults(events: EventTable) -> Iterator[Fact]:
    """When the first gradient breaks, are all parameters hit, or a few of them?"""
    for step, rows in _steps(_parameters(events)):
        norms = {str(row.attr("name")): (norm, row) for row in rows if (norm := _value(row, "grad_norm")) is not None}
        good = [norm for norm, _row in norms.values() if math.isfinite(norm) and norm > 0]
        if len(norms) < _FEWEST or not good:
            continue
        usual = median(good)
        bad = {name: row for name, (norm, row) in norms.items() if not math.isfinite(norm) or norm > ENORMOUS * usual}
        if not bad:
            continue
        at = "" if step is None else f" at step {step}"
        says = (
            f"{len(bad)} of {len(norms)} parameters have a non-finite or enormous gradient{at}, the first of them "
            f"{next(iter(bad))}; the others have a norm of {number(usual)}."
        )
        seen = [row.event_id for row in bad.values()]
        share = len(bad) / len(norms)
        yield from emit("parameters.gradient_fault_share", share, says, events=seen)
        yield from emit("parameters.gradient_fault_isolated", share <= 0.5, says, events=seen)
        return


def _steps(rows: Sequence[Event]) -> Iterator[tuple[int | None, list[Event]]]:
    """Yield the rows of one file and step after the other."""
    groups: dict[tuple[str, int], list[Event]] = defaultdict(list)
    for row in rows:
        groups[row.source, -1 if row.step is None else row.step].append(row)
    for (_source, step), found in sorted(groups.items(), key=lambda item: (item[0][1], item[0][0])):
        yield (None if step < 0 else step), found


def vanishing(events: EventTable) -> Iterator[Fact]:
    """Do the gradients of the single parameters die away?"""
    rows = [row for row in _parameters(events) if row.attr("trainable") is not False]
    curves = {name: items for name, items in _by_name(rows, "grad_norm").items() if len(items) >= 5}
    if len(curves) < _FEWEST or not all(math.isfinite(value) for items in curves.values() for value, _row in items):
        return
    born_dead = [name for name, items in curves.items() if not any(value for value, _row in items)]
    says = f"The gradients of {len(born_dead)} of {len(curves)} parameters are exactly 0 at every logged step."
    yield from emit(
        "parameters.gradients_zero_share", len(born_dead) / len(curves), says, events=_ends(curves, born_dead)
    )
    alive = {name: items for name, items in curves.items() if name not in set(born_dead)}
    starts = {name: max(value for value, _row in items[:3]) for name, items in alive.items()}
    gone = [name for name, items in alive.items() if starts[name] > 0 and items[-1][0] <= GONE * starts[name]]
    says = f"The gradient norms of {len(gone)} of {len(curves)} parameters fell below a millionth of their first values"
    if not gone:
        yield from emit("parameters.gradients_gone_share", 0.0, says + ".", events=_ends(curves, list(alive)[:1]))
        return
    steps = [
        row.step
        for name in gone
        for row in [next(row for value, row in alive[name] if value <= GONE * starts[name])]
        if row.step is not None
    ]
    when = int(median(steps)) if steps else None
    says += "." if when is None else f", in the median by step {when}."
    yield from emit("parameters.gradients_gone_share", len(gone) / len(curves), says, events=_ends(curves, gone))
    yield from emit("parameters.gradients_gone_step", when, says, unit="step", events=_ends(curves, gone))


def _ends(curves: Mapping[str, Sequence[tuple[float, Event]]], names: Sequence[str]) -> list[int]:
    return [curves[name][-1][1].event_id for name in names]


def initial_scale(events: EventTable) -> Iterator[Fact]:
    """How wide are the weights before the first step, and how wide were they to be?"""
    stated = _stated(events)
    if stated is not None:
        says = f"Weights are said to be drawn with a standard deviation of {number(stated[0])}."
        yield from emit("init.std_stated", stated[0], says, events=[stated[1]])
    stds = [
        (value, row)
        for row in _parameters(events)
        if (value := _value(row, "std")) is not None
        and not _NO_MATRIX.search(str(row.attr("name")))
        and (row.step is None or row.step <= 1)
    ]
    if len({str(row.attr("name")) for _value_, row in stds}) < 2:
        return
    top, row = max(stds, key=lambda item: item[0])
    says = f"The widest weight before training is {row.attr('name')} with a standard deviation of {number(top)}."
    yield from emit("init.std_max", top, says, events=[row.event_id])
    if stated is not None and stated[0] > 0:
        says = f"{says[:-1]}, where {number(stated[0])} is stated."
        yield from emit("init.std_over_stated", top / stated[0], says, unit="x", events=[row.event_id, stated[1]])


def _stated(events: EventTable) -> tuple[float, int] | None:
    for event in events.named("init.stated_std", kind="log"):
        value = event.attr("std")
        if isinstance(value, (int, float)) and 0 < value < 100:
            return float(value), event.event_id
    setting = config_number(events, "initializer_range")
    found = events.config("initializer_range")
    return None if setting is None or found is None else (setting, found.event_id)


def vocabulary_rows(events: EventTable) -> int | None:
    """Return the rows of the embedding or of the head of a language model, from printed shapes."""
    for row in _parameters(events):
        sides = str(row.attr("shape") or "").split("x")
        if _VOCABULARY.search(str(row.attr("name"))) and len(sides) == 2 and all(side.isdecimal() for side in sides):
            rows, width = map(int, sides)
            if rows >= SMALLEST_VOCABULARY and rows > width:
                return rows
    return None


def constant_columns(events: EventTable) -> Iterator[Fact]:
    """Columns of the inputs without any spread: a normalisation divides by zero there."""
    rows = [row for row in events.named("data.column", kind="artifact") if _value(row, "std") is not None]
    if len(rows) < _FEWEST:
        return
    constant = [row for row in rows if _value(row, "std") == 0 and _value(row, "unique") in {None, 0.0, 1.0}]
    names = ", ".join(str(row.attr("name")) for row in constant[:4])
    says = f"{len(constant)} of {len(rows)} numeric columns have no spread" + (f": {names}." if constant else ".")
    seen = [row.event_id for row in constant or rows[:1]]
    yield from emit("inputs.constant_columns", len(constant), says, events=seen)
    yield from emit(
        "inputs.constant_share",
        len(constant) / len(rows),
        f"{says} ({percent(len(constant) / len(rows))})",
        events=seen,
    )


def missing_values(events: EventTable) -> Iterator[Fact]:
    """Columns of the inputs in which values are missing, as a table of the data tells them."""
    rows = [row for row in events.named("data.column", kind="artifact") if _value(row, "missing") is not None]
    gaps = [row for row in rows if (_value(row, "missing") or 0) > 0]
    if not rows:
        return
    names = ", ".join(f"{row.attr('name')} ({row.attr('missing')})" for row in gaps[:4])
    says = f"Values are missing in {len(gaps)} of {len(rows)} columns" + (f": {names}." if gaps else ".")
    yield from emit("inputs.missing_columns", len(gaps), says, events=[row.event_id for row in gaps or rows[:1]])


FACTS: tuple[FactFunction, ...] = (
    untouched,
    gradient_faults,
    vanishing,
    initial_scale,
    constant_columns,
    missing_values,
)
