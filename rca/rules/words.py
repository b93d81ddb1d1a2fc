"""Conditions and weights in words, for explanations and the reference page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rca.rules.schema import Cause, Condition, Maturity

MATURITIES: Mapping[Maturity, str] = {
    "experimental": "new; it needs twice the odds of other causes to be named",
    "test": "at least three cases on which it fires and three, its nearest rival among them, on which it is silent",
    "stable": "as `test`, and it comes first on the recorded run of a job that really failed in this way",
}
"""What an author promises with each level of maturity."""

_RANKS = {
    "only": "on one rank only",
    "first": "on the rank that failed first",
    "all": "on every rank",
    "outlier": "on a minority of the ranks",
}
_STRENGTHS = ((4.5, "decides"), (2.5, "strong"), (1.0, "supports"), (0.0, "hint"))
_OPERATORS = {"==": "is", "!=": "is not", "in": "is one of", "matches": "matches"}


def strength(weight: float) -> str:
    """Return a weight in nats as a word: hint, supports, strong, decides."""
    return next(word for least, word in _STRENGTHS if weight >= least)


def maturity_note(cause: Cause | None) -> tuple[str, ...]:
    """Return the warning that belongs to a verdict by a rule that is still experimental."""
    if cause is None or cause.maturity != "experimental":
        return ()
    return (f"{cause.id} is an experimental rule ({MATURITIES['experimental']}); read its evidence first",)


def condition_words(condition: Condition) -> str:
    """Return a condition as a phrase, e.g. ``fact `lr.peak` > 0.01``."""
    words = _KINDS[condition.kind](condition)
    tests = [f"{key} {_test(value)}" for key, value in condition.where.items()]
    return (
        words
        + (f" with {', '.join(tests)}" if tests else "")
        + (f" {_RANKS[condition.rank]}" if condition.rank else "")
    )


def _compared(condition: Condition) -> str:
    name = f"{condition.kind} `{getattr(condition, condition.kind)}`"
    op = condition.op or ("exists" if condition.value is None else "==")
    return f"{name} is known" if op == "exists" else f"{name} {_OPERATORS.get(op, op)} {_value(condition.value, op)}"


def _order(condition: Condition) -> str:
    first, second = condition.order or ("", "")
    return f"`{first}` before `{second}`"


def _listed(word: str, parts: Iterable[Condition]) -> str:
    return f"{word} of: " + "; ".join(_inner(part) for part in parts)


def _inner(part: Condition) -> str:
    return f"({condition_words(part)})" if part.kind in {"all", "any"} else condition_words(part)


def _value(value: Any, op: str) -> str:
    if isinstance(value, (tuple, list)):
        return ", ".join(_value(item, "==") for item in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"`{value}`" if op == "matches" else f"{value:g}" if isinstance(value, float) else str(value)


def _test(test: str | int | float | bool) -> str:
    text = str(test)
    for op in ("matches", ">=", "<=", "!=", "==", ">", "<"):
        if text.startswith(op):
            return f"{_OPERATORS.get(op, op)} {_value(text[len(op) :].strip(), op)}"
    return f"is {_value(test, '==')}"


_KINDS: Mapping[str, Callable[[Condition], str]] = {
    "signature": lambda item: f"message `{item.signature}`",
    "log": lambda item: f"log line `{item.log}`",
    "exception": lambda item: f"exception `{item.exception}`",
    "fact": _compared,
    "config": _compared,
    "package": _compared,
    "order": _order,
    "all": lambda item: _listed("all", item.all or ()),
    "any": lambda item: _listed("any", item.any or ()),
    "not": lambda item: "not " + " ".join(_inner(part) for part in (item.not_,) if part),
}


def joined(names: Sequence[str]) -> str:
    """Return names as code, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)
