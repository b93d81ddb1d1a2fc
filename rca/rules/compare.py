"""How a rule compares what it wants with what a run shows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from rca.rules.patterns import compiled

ORDERINGS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_UNITS = {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def compare(value: Any, op: str, wanted: Any) -> bool:
    """Compare a value of a run with what a rule wants; values of unlike kinds are never equal and never ordered."""
    if op == "in":
        return any(_equal(value, item) for item in (wanted if isinstance(wanted, (tuple, list)) else (wanted,)))
    if op == "matches":
        return compiled(str(wanted)).search(str(value)) is not None
    if op in {"==", "!="}:
        return _equal(value, wanted) is (op == "==")
    left, right = number(value), number(wanted)
    return left is not None and right is not None and ORDERINGS[op](left, right)


def split_test(test: str | int | float | bool) -> tuple[str, Any]:
    """Return the operator and the value of a `where:` entry: `">= 8 GiB"`; a bare value means equality."""
    if isinstance(test, str):
        for op in ("matches", ">=", "<=", "!=", "==", ">", "<"):
            if test.startswith(op):
                return op, test[len(op) :].strip()
    return "==", test


def number(value: Any) -> float | None:
    """Return a value as a number: `8 GiB` in bytes; None for what is none."""
    if isinstance(value, (int, float)):
        return float(value)
    text = str(value).strip()
    try:
        return float(text)
    except ValueError:
        digits, _, unit = text.partition(" ")
        scale = _UNITS.get(unit.lower())
        try:
            return None if scale is None else float(digits) * scale
        except ValueError:
            return None


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return _truth(value) is not None and _truth(value) is _truth(wanted)
    left, right = number(value), number(wanted)
    if left is not None and right is not None:
        return left == right
    return str(value).strip().lower() == str(wanted).strip().lower()


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"true": True, "yes": True, "on": True, "1": True, "1.0": True, "false": False, "no": False, "off": False,
            "0": False, "0.0": False}.get(str(value).strip().lower())  # fmt: skip
