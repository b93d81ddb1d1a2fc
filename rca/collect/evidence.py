"""Candidates to hypotheses: every condition becomes a sentence with the place that shows it."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from rca.diagnosis import Evidence, Fix, Hypothesis
from rca.events import Event, EventTable
from rca.hypotheses.match import FactLike
from rca.hypotheses.score import NONE, Candidate, Found
from rca.leads import ContextLine
from rca.rules.load import walk
from rca.rules.schema import Cause, Condition
from rca.rules.schema import Fix as Remedy
from rca.rules.snippets import fitted

ContextLookup = Callable[[Sequence[tuple[str, int, int | None]]], Mapping[tuple[str, int], tuple[ContextLine, ...]]]
"""(source, line, byte offset) of many lines -> the lines around each."""

SHOWN = 12
"""Hypotheses kept in the diagnosis; the rest is below a probability anyone would act on."""
UNANSWERED = 6
"""Open questions shown of one hypothesis, the weightiest first."""
_COMBINED = frozenset({"all", "any", "not"})
_SHARES = ("_share", ".improvement", ".drop", "_drop", "eval.rise", ".accuracy_gap")
"""How the names of facts end that are shares of 1; readers expect them in per cent."""
_COMPARING = ("baseline.", "runs.", "scaling.")
"""Facts that only the comparison of several runs yields."""
_VALUES = re.compile(r"^(?:\w+ \| )+\w+: |: (?:\w+ \| )+\w+$| \([\w/%]{1,8}\)$")
"""The values that a fact may have, or its unit: for authors of rules, not for readers."""
_LEANS = re.compile(r"(?:that|they|these|this|those|it)\b")
"""Begin of a meaning that leans on the one before it in the catalogue."""
_SAID = frozenset({"step", "steps"})
"""Units that the sentence around the value says itself: `at step {eval.best_step}`."""
_STOPS = re.compile("…[.…]+")
_WORD = re.compile(r"[^\W\d_]{2}")
_PLACEHOLDER = re.compile(r"\{([a-zA-Z0-9_.]+)\}")


def hypotheses(
    candidates: Sequence[Candidate],
    events: EventTable,
    facts: Mapping[str, FactLike],
    *,
    context: ContextLookup,
    meanings: Mapping[str, str],
) -> tuple[Hypothesis, ...]:
    """Return the leading candidates with their evidence, places and surrounding lines.

    `meanings` says in a line what each fact is, for what could not be computed.
    """
    kept = [item for item in candidates if item.cause.id != NONE][:SHOWN]
    places = {
        (event.source, event.line, event.offset)
        for candidate in kept[:6]
        for found in candidate.found
        if found.answer.outcome == "met" and (event := _shown(found, events)) is not None and event.line is not None
    }
    around = context(sorted(places, key=lambda place: (place[0], place[1])))
    return tuple(_hypothesis(candidate, events, facts, around=around, meanings=meanings) for candidate in kept)


def shown_by(
    candidate: Candidate, events: EventTable, facts: Mapping[str, FactLike], *, context: ContextLookup
) -> tuple[Evidence, ...]:
    """Return what speaks for a candidate, the weightiest first, with places and surrounding lines."""
    against = {rule.id for rule in candidate.cause.contradicts}
    met = [item for item in candidate.found if item.answer.outcome == "met" and item.rule.id not in against]
    places = [
        (event.source, event.line, event.offset)
        for found in met
        if (event := _shown(found, events)) is not None and event.line is not None
    ]
    around = context(sorted(set(places), key=lambda place: (place[0], place[1])))
    rows = [_evidence(candidate.cause, found, events, facts, around=around) for found in met]
    return tuple(sorted(rows, key=lambda row: -row.weight))


def fill(template: str, values: Mapping[str, Any], facts: Mapping[str, FactLike]) -> str:
    """Replace `{name}` by the fact or capture of that name, or by dots where it has no value."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in facts:
            around = template[: match.start()], template[match.end() :]
            return _plain(name, facts[name].value) + _unit(facts[name].unit, *around)
        return _plain(name, values[name]) if name in values else "…"

    return _PLACEHOLDER.sub(value, template)


def _unit(unit: str, before: str, after: str) -> str:
    """The unit behind a number, unless the sentence around it says it: `{lead_s} s before`, `a factor of {jump}`."""
    said = unit in _SAID or bool(re.match(rf"\s*{re.escape(unit)}(?!\w)", after))
    said |= unit == "x" and (after.startswith(" times") or before.endswith("factor of "))
    return f" {unit}" if unit and not said else ""


def _plain(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_bytes") and isinstance(value, (int, float)):
        return f"{value / 2**30:.2f} GiB"
    if "." in name and name.endswith(_SHARES) and isinstance(value, (int, float)) and 0 <= value <= 1:
        return f"{100 * value:.3g}%"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def _hypothesis(
    candidate: Candidate,
    events: EventTable,
    facts: Mapping[str, FactLike],
    *,
    around: Mapping[tuple[str, int], tuple[ContextLine, ...]],
    meanings: Mapping[str, str],
) -> Hypothesis:
    cause = candidate.cause
    met = [found for found in candidate.found if found.answer.outcome == "met"]
    against = {rule.id for rule in cause.contradicts}
    silent = sorted(
        (found for found in candidate.found if found.rule.id not in against and _open(found, events, facts)),
        key=lambda item: -item.rule.weight,
    )
    rows = [(found.rule.id in against, _evidence(cause, found, events, facts, around=around)) for found in met]
    values = {name: value for found in candidate.found for name, value in found.answer.values.items()}
    return Hypothesis(
        cause=cause.id,
        title=cause.title,
        sentence=fill(cause.sentence, values, facts),
        summary=cause.summary,
        domain=cause.domain,
        probability=candidate.probability,
        prior=cause.prior,
        score=candidate.score,
        status="explained" if candidate.explained_by else "suspected",
        evidence_for=tuple(row for contradicts, row in rows if not contradicts),
        evidence_against=tuple(row for contradicts, row in rows if contradicts),
        no_data=_told_once(_unanswered(cause, found, events, facts, meanings) for found in silent)[:UNANSWERED],
        explained_by=candidate.explained_by,
        experiments=cause.experiments,
        fixes=tuple(_fix(fix, events, facts) for fix in _ordered(cause.fixes, {found.rule.id for found in met})),
        decide=cause.decide,
        falsepositives=cause.falsepositives,
        references=tuple((reference.title, reference.url) for reference in cause.references),
    )


def _ordered(fixes: Sequence[Remedy], met: AbstractSet[str]) -> list[Remedy]:
    """Fixes that are meant for what was seen first, else in the order of the cause."""
    return sorted(fixes, key=lambda fix: met.isdisjoint(fix.when))


def _fix(fix: Remedy, events: EventTable, facts: Mapping[str, FactLike]) -> Fix:
    """A fix with the numbers of this run in its snippet, as far as the run tells them."""

    def value(name: str) -> float | str | None:
        if (setting := name.removeprefix("config.")) != name:
            event = events.config(setting)
            return None if event is None else event.text if event.value is None else event.value
        return facts[name].value if name in facts else None

    return Fix(**{**fix.model_dump(exclude={"when"}), "snippet": fitted(fix.snippet, value)})


def _open(found: Found, events: EventTable, facts: Mapping[str, FactLike]) -> bool:
    """Whether a condition is a question that is left open, by more than a comparison that nobody asked for."""
    if found.answer.outcome != "no_data":
        return False
    asked = _asked(found, facts)
    everything = [item for item in walk(found.rule) if item.kind not in _COMBINED]
    return len(asked) == len(everything) or any(_lacks(item, events, facts) for item in asked)


def _asked(found: Found, facts: Mapping[str, FactLike]) -> list[Condition]:
    """The single questions of a condition; those that compare runs only where there are several."""
    absent = tuple(prefix for prefix in _COMPARING if not any(name.startswith(prefix) for name in facts))
    return [
        item
        for item in walk(found.rule)
        if item.kind not in _COMBINED and not (item.fact or "").startswith(absent or ("\0",))
    ]


def _lacks(item: Condition, events: EventTable, facts: Mapping[str, FactLike]) -> bool:
    if item.fact is not None:
        return item.fact not in facts
    if item.config is not None:
        return events.config(item.config) is None
    return not (events.packages if item.package is not None else events.has_text)


def _told_once(items: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Without what was said before in the same words, such as one question with several bounds."""
    told: dict[tuple[str, str], Evidence] = {}
    for item in items:
        told.setdefault((item.says, item.decides), item)
    return tuple(told.values())


def _unanswered(
    cause: Cause, found: Found, events: EventTable, facts: Mapping[str, FactLike], meanings: Mapping[str, str]
) -> Evidence:
    asked = _asked(found, facts)
    lacking = [item for item in asked if _lacks(item, events, facts)]
    subjects = [subject for condition in lacking or asked if (subject := _subject(condition, meanings))]
    wanted = "; ".join(dict.fromkeys([text for text in subjects if not _LEANS.match(text)] or subjects))
    says = _STOPS.sub("…", fill(found.rule.says, {}, facts))
    return Evidence(
        id=_identity(cause, found, None),
        says=says if _WORD.search(says) else f"{wanted[:1].upper()}{wanted[1:]}.",
        weight=0.0,
        kind=found.rule.kind,
        decides=wanted if _WORD.search(says) else "",
    )


def _subject(condition: Condition, meanings: Mapping[str, str]) -> str:
    """What a condition asks for, as a reader would record it."""
    if condition.fact is not None:
        return _VALUES.sub("", meanings.get(condition.fact, condition.fact))
    if condition.config is not None:
        return f"the setting {condition.config}"
    if condition.package is not None:
        return f"the version of {condition.package}"
    return "log text" if condition.kind in {"signature", "log", "exception", "order"} else ""


def _identity(cause: Cause, found: Found, event: Event | None) -> str:
    key = "\0".join([cause.id, found.rule.id, event.source if event else "", str(event.line if event else "")])
    return "ev-" + hashlib.sha256(key.encode()).hexdigest()[:10]


def _shown(found: Found, events: EventTable) -> Event | None:
    """The event that shows an answer best: the first one that stands in a text line, else the first."""
    shown = [events.get(event) for event in found.answer.events[:4]]
    return next((event for event in shown if event.line is not None and event.text), shown[0] if shown else None)


def _evidence(
    cause: Cause,
    found: Found,
    events: EventTable,
    facts: Mapping[str, FactLike],
    *,
    around: Mapping[tuple[str, int], tuple[ContextLine, ...]],
) -> Evidence:
    rule, answer = found.rule, found.answer
    event = _shown(found, events)
    says = fill(rule.says, answer.values, facts)
    identity = _identity(cause, found, event)
    numbers = str(answer.values.get("fact_says") or "")
    if event is None:
        return Evidence(id=identity, says=says, weight=found.weight, kind=rule.kind, text=numbers)
    ranks = {item.rank for number in answer.events[:64] if (item := events.get(number)).rank is not None}
    return Evidence(
        id=identity,
        says=says,
        weight=found.weight,
        kind=rule.kind,
        source=event.source,
        line=event.line,
        rank=event.rank,
        host=event.host,
        step=event.step,
        time=iso(event.time),
        text=numbers or event.text or event.name,
        context=around.get((event.source, event.line or 0), ()),
        count=max(1, len(answer.events)),
        ranks=tuple(sorted(rank for rank in ranks if rank is not None)),
    )


def iso(microseconds: int | None) -> str | None:
    """Return an ISO 8601 time in UTC."""
    if microseconds is None:
        return None
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=microseconds)
    return moment.isoformat(timespec="milliseconds" if microseconds % 1_000_000 else "seconds").replace("+00:00", "Z")
