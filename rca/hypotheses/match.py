"""Conditions put to a run: met, not met, or no data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

from rca.events import Event, EventTable
from rca.rules.compare import ORDERINGS, compare, split_test
from rca.rules.load import inline_id
from rca.rules.schema import Cause, Condition

Outcome = Literal["met", "not_met", "no_data"]


class FactLike(Protocol):
    """What matching needs of a fact."""

    @property
    def value(self) -> bool | int | float | str:
        """The computed value."""

    @property
    def unit(self) -> str:
        """Its unit."""

    @property
    def events(self) -> tuple[int, ...]:
        """Events that show it."""

    @property
    def says(self) -> str:
        """The sentence with the numbers."""


@dataclass(frozen=True)
class Answer:
    """The outcome of one condition, with the events that show it."""

    outcome: Outcome
    events: tuple[int, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    """Captures and facts by name, to fill the sentence of the evidence."""
    signatures: frozenset[str] = frozenset()
    """Signature ids and exception types that the answer rests on."""


MET, NOT_MET, NO_DATA = Answer("met"), Answer("not_met"), Answer("no_data")


@dataclass(frozen=True)
class View:
    """What conditions are put to."""

    events: EventTable
    facts: Mapping[str, FactLike]
    healthy: View | None = None
    """A healthy run of the same job."""
    ordinary: frozenset[int] = frozenset()
    """Events whose message the healthy run says as well, about as often."""

    @cached_property
    def advice(self) -> frozenset[tuple[str, int | None]]:
        """Lines that are known as harmless warnings or advice: their words are no evidence of anything else."""
        return frozenset(
            (event.source, event.line)
            for event in self.events.of_kind("log")
            if event.role == "benign" and event.severity == "warning"
        )

    @property
    def first_failing_rank(self) -> int | None:
        """Global rank that failed first, where it is known."""
        fact = self.facts.get("failure.rank")
        return None if fact is None else int(fact.value)


def ask(condition: Condition, view: View) -> Answer:
    """Answer one condition."""
    return _ASK[condition.kind](condition, view)


def met_rules(cause: Cause, view: View) -> frozenset[str]:
    """Return the ids of the rules of a cause, for and against it, that are met."""
    return frozenset(rule.id for rule in (*cause.evidence, *cause.contradicts) if ask(rule, view).outcome == "met")


def _signature(condition: Condition, view: View) -> Answer:
    assert condition.signature is not None
    found = _events_named(condition.signature, view)
    return _among([event for event in found if event.role == "benign" or not _is_advice(event, view)], condition, view)


def _log(condition: Condition, view: View) -> Answer:
    assert condition.log is not None
    found = view.events.named(inline_id(condition.log))
    return _among([event for event in found if not _is_advice(event, view)], condition, view)


def _is_advice(event: Event, view: View) -> bool:
    return (event.source, event.line) in view.advice


def _exception(condition: Condition, view: View) -> Answer:
    assert condition.exception is not None
    wanted = condition.exception
    found = [
        event
        for event in view.events.of_kind("exception")
        if event.name == wanted or event.name.rsplit(".", 1)[-1] == wanted or _glob(wanted, event.name)
    ]
    return _among(found, condition, view)


def _among(found: Iterable[Event], condition: Condition, view: View) -> Answer:
    if not view.events.has_text:
        return NO_DATA
    kept = [event for event in found if all(_holds(event, key, test) for key, test in condition.where.items())]
    if not kept or not _rank_fits(kept, condition.rank, view):
        return NOT_MET
    return Answer(
        "met",
        events=tuple(event.event_id for event in kept),
        values=dict(kept[0].attrs or {}) | {"text": kept[0].text},
        signatures=frozenset(event.name for event in kept),
    )


def _rank_fits(events: Sequence[Event], wanted: str | None, view: View) -> bool:
    if wanted is None:
        return True
    ranks = {event.rank for event in events if event.rank is not None}
    everyone = set(view.events.ranks)
    if wanted == "first":
        return view.first_failing_rank in ranks if view.first_failing_rank is not None else len(everyone) <= 1
    if len(everyone) < 2:
        return False
    if wanted == "only":
        return len(ranks) == 1
    if wanted == "all":
        return ranks == everyone
    return 0 < len(ranks) < len(everyone) / 2


def _holds(event: Event, key: str, test: str | int | float | bool) -> bool:
    value = (event.text if key == "message" else None) if event.attr(key) is None else event.attr(key)
    if value is None:
        return False
    op, wanted = split_test(test)
    return compare(value, op, wanted)


def _fact(condition: Condition, view: View) -> Answer:
    assert condition.fact is not None
    fact = view.facts.get(condition.fact)
    if fact is None:
        return NO_DATA
    if not _compared(fact.value, condition):
        return NOT_MET
    return Answer("met", events=fact.events, values={condition.fact: fact.value, "fact_says": fact.says})


def _config(condition: Condition, view: View) -> Answer:
    assert condition.config is not None
    setting = view.events.config(condition.config)
    if setting is None:
        return NO_DATA
    value = setting.attr("value", setting.text if setting.value is None else setting.value)
    if not _compared(value, condition):
        return NOT_MET
    return Answer("met", events=(setting.event_id,), values={condition.config: setting.text, "text": setting.text})


def _package(condition: Condition, view: View) -> Answer:
    assert condition.package is not None
    if not view.events.packages:
        return NO_DATA
    name = condition.package.lower().replace("_", "-")
    version = view.events.packages.get(name)
    if version is None:
        return NOT_MET
    if condition.value is not None and not _version_fits(version, condition):
        return NOT_MET
    shown = tuple(event.event_id for event in view.events.named(name, kind="package"))
    return Answer("met", events=shown, values={condition.package: version})


def _order(condition: Condition, view: View) -> Answer:
    assert condition.order is not None
    if not view.events.has_text:
        return NO_DATA
    before, after = (_events_named(name, view) for name in condition.order)
    if not before or not after or before[0].event_id >= after[0].event_id:
        return NOT_MET
    return Answer(
        "met",
        events=(before[0].event_id, after[0].event_id),
        signatures=frozenset({before[0].name, after[0].name}),
    )


def _all(condition: Condition, view: View) -> Answer:
    answers = [ask(inner, view) for inner in condition.all or ()]
    if any(answer.outcome == "not_met" for answer in answers):
        return NOT_MET
    return NO_DATA if any(answer.outcome == "no_data" for answer in answers) else _joined(answers)


def _any(condition: Condition, view: View) -> Answer:
    answers = [ask(inner, view) for inner in condition.any or ()]
    met = [answer for answer in answers if answer.outcome == "met"]
    if met:
        return _joined(met)
    return NO_DATA if any(answer.outcome == "no_data" for answer in answers) else NOT_MET


def _not(condition: Condition, view: View) -> Answer:
    assert condition.not_ is not None
    inner = ask(condition.not_, view)
    return {"met": NOT_MET, "not_met": MET, "no_data": NO_DATA}[inner.outcome]


def _joined(answers: Sequence[Answer]) -> Answer:
    values: dict[str, Any] = {}
    for answer in reversed(answers):
        values.update(answer.values)
    return Answer(
        "met",
        events=tuple(dict.fromkeys(event for answer in answers for event in answer.events)),
        values=values,
        signatures=frozenset().union(*(answer.signatures for answer in answers)),
    )


_ASK: Mapping[str, Callable[[Condition, View], Answer]] = {
    "signature": _signature,
    "log": _log,
    "exception": _exception,
    "fact": _fact,
    "config": _config,
    "package": _package,
    "order": _order,
    "all": _all,
    "any": _any,
    "not": _not,
}


def _events_named(name: str, view: View) -> Sequence[Event]:
    if not name.endswith("*"):
        return view.events.named(name)
    return [event for event in view.events.of_kind("log") if _glob(name, event.name)]


def _glob(pattern: str, name: str) -> bool:
    return pattern.endswith("*") and name.startswith(pattern[:-1])


def _compared(value: Any, condition: Condition) -> bool:
    op = condition.op or ("exists" if condition.value is None else "==")
    return op == "exists" or compare(value, op, condition.value)


def _version_fits(version: str, condition: Condition) -> bool:
    from packaging.version import InvalidVersion, Version

    op = condition.op or "=="
    if op in {"matches", "in"}:
        return compare(version, op, condition.value)
    try:
        found, wanted = Version(version), Version(str(condition.value))
    except InvalidVersion:
        return compare(version, op, condition.value)
    return ORDERINGS[op](found, wanted) if op in ORDERINGS else (found == wanted) is (op != "!=")
