"""Checks of the conditions of a cause against each other: repeated, cancelled, excluded, too weak to matter."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any

from rca.rules.compare import ORDERINGS, compare, number
from rca.rules.findings import Finding, Place, found
from rca.rules.schema import Cause, Condition

_FIELDS = frozenset(Condition.model_fields)
_MOST = 256
"""Combinations of alternatives that are looked at; what has more is taken to be possible."""
_OTHER = "another text"
Demand = tuple[str, str, Any, bool]
"""What is compared, the operator, the value, and whether it must hold."""


def check_logic(cause: Cause, listed: Sequence[Place], *, to_beat: float) -> Iterator[Finding]:
    """Yield conditions of one cause that repeat, cancel or exclude each other, and evidence too weak to name it."""
    yield from _repeated(listed)
    required = [place for place in listed if place.section == "evidence" and place.rule.required]
    if not _possible(place.rule for place in required):
        names = ", ".join(place.rule.id for place in required)
        text = f"what is required excludes itself ({names} cannot all be met), so the cause is never considered"
        yield found("error", required[-1].file, required[-1].loc, text)
        return
    for place in listed:
        if not _possible([place.rule]):
            yield found("error", place.file, place.loc, f"{place.rule.id} excludes itself, so it is never met")
        elif place not in required and not _possible([*(other.rule for other in required), place.rule]):
            text = f"{place.rule.id} is never met where what is required is met, so it never counts"
            yield found("error", place.file, place.loc, text)
    most = _most(cause)
    if cause.evidence and most < to_beat:
        text = f"all evidence together gives {most:.1f} nats of log-odds; {to_beat:.1f} are needed to be named"
        yield found("error", listed[0].file, ("evidence",), text)


def _repeated(listed: Sequence[Place]) -> Iterator[Finding]:
    seen: dict[str, Place] = {}
    for place in listed:
        for loc, condition in place.conditions():
            for key in ("all", "any"):
                parts = [_canonical(part) for part in getattr(condition, key) or ()]
                for index in (index for index, part in enumerate(parts) if part in parts[:index]):
                    yield found(
                        "error", place.file, (*loc, key, index), f"`{key}:` of {place.rule.id} repeats a condition"
                    )
        first = seen.setdefault(_canonical(place.rule), place)
        if first is place:
            continue
        if first.section == place.section:
            text = f"{place.rule.id} asks the same as {first.rule.id}; one of them is enough"
        else:
            text = f"{place.rule.id} asks the same as {first.rule.id} under {first.section}; they cancel each other"
        yield found("error", place.file, place.loc, text)


def _most(cause: Cause) -> float:
    """Return the log-odds of a cause when everything speaks for it."""
    groups: dict[str, float] = {}
    for rule in cause.evidence:
        key = rule.group or rule.id
        groups[key] = max(groups.get(key, 0.0), rule.weight)
    return math.log(cause.prior) + sum(groups.values())


def _canonical(condition: Condition) -> str:
    return json.dumps(condition.model_dump(include=set(_FIELDS), exclude_defaults=True), sort_keys=True, default=str)


def _possible(rules: Iterable[Condition]) -> bool:
    """Whether some run could meet all of the conditions."""
    alternatives = [_alternatives(rule, holds=True) for rule in rules]
    if math.prod(len(choices) for choices in alternatives) > _MOST:
        return True
    return any(_consistent([demand for part in choice for demand in part]) for choice in product(*alternatives))


def _alternatives(condition: Condition, *, holds: bool) -> list[list[Demand]]:
    """Return the ways to meet a condition (or, without `holds`, to miss it), each a list of demands."""
    if condition.not_ is not None:
        return _alternatives(condition.not_, holds=not holds)
    parts = condition.all if condition.any is None else condition.any
    if not parts:
        return [[_demand(condition, holds=holds)]]
    choices = [_alternatives(part, holds=holds) for part in parts]
    if (condition.any is not None) is holds:
        return [way for part in choices for way in part]
    if math.prod(len(part) for part in choices) > _MOST:
        return [[]]
    return [[demand for way in ways for demand in way] for ways in product(*choices)]


def _demand(condition: Condition, *, holds: bool) -> Demand:
    if condition.kind in {"fact", "config"} and condition.value is not None:
        listed = isinstance(condition.value, tuple)
        op = "in" if listed else "==" if condition.op in {None, "exists"} else str(condition.op)
        return (f"{condition.kind} {getattr(condition, condition.kind)}", op, condition.value, holds)
    return (_canonical(condition), "==", True, holds)


def _consistent(demands: Sequence[Demand]) -> bool:
    subjects: dict[str, list[Demand]] = {}
    for demand in demands:
        subjects.setdefault(demand[0], []).append(demand)
    return all(any(_meets(value, group) for value in _samples(group)) for group in subjects.values())


def _samples(demands: Sequence[Demand]) -> list[Any]:
    """Return values that fall on every side of every bound: if none of them fits, nothing does."""
    named = [item for _, _, value, _ in demands for item in (value if isinstance(value, tuple) else (value,))]
    bounds = sorted({bound for item in named if (bound := _bound(item)) is not None})
    between = [(low + high) / 2 for low, high in pairwise(bounds)]
    outside = [bounds[0] - 1, bounds[-1] + 1] if bounds else []
    return [*named, *bounds, *between, *outside, True, False, _OTHER]


def _bound(value: Any) -> float | None:
    return None if isinstance(value, bool) else number(value)


def _meets(value: Any, demands: Sequence[Demand]) -> bool:
    return all(
        _meets_one(value, op, wanted) is holds for _, op, wanted, holds in demands if not _open(value, op, wanted)
    )


def _meets_one(value: Any, op: str, wanted: Any) -> bool:
    return False if op in ORDERINGS and isinstance(value, bool) else compare(value, op, wanted)


def _open(value: Any, op: str, wanted: Any) -> bool:
    """Whether a demand says nothing about a sample: the texts that a pattern wants are not among the samples."""
    return (op == "matches" and value == _OTHER) or (op in ORDERINGS and number(wanted) is None)
