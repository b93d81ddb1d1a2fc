"""Checks of one condition: do its names exist, can its comparison ever be met, does anything in it go unread."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rca.rules.compare import ORDERINGS, number, split_test
from rca.rules.findings import Level, unknown
from rca.rules.load import Knowledge, conditions
from rca.rules.patterns import groups, patterns_of, refusal, says_nothing
from rca.rules.schema import Condition

Problem = tuple[Level, str, str]
"""Level, key in the condition, sentence."""

_COMPARED = {"fact", "config", "package"}
_SAID = {"signature", "log", "exception"}
_ALWAYS = {"message", "count"}
"""What `where:` may compare of any line; an exception also has its frames."""


@dataclass(frozen=True)
class Words:
    """The names that conditions may use."""

    knowledge: Knowledge
    facts: Mapping[str, str]
    """Name -> one line of meaning."""
    common_name: Callable[[str], str] = str
    """Setting as a framework calls it -> the name under which it is known."""

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """Fact -> `bool`, `number` or `text`, where its meaning says so or most rules agree."""
        votes: dict[str, Counter[str]] = {}
        for cause in self.knowledge.causes.values():
            for condition in conditions(cause):
                if condition.fact is not None and (kind := _kind(condition)) is not None:
                    votes.setdefault(condition.fact, Counter())[kind] += 1
        agreed = {name: count.most_common(1)[0][0] for name, count in votes.items() if _agreed(count)}
        return agreed | {name: kind for name, text in self.facts.items() if (kind := _said_kind(text)) is not None}


def check_condition(condition: Condition, words: Words) -> Iterator[Problem]:
    """Yield what is wrong with one condition, not with those inside it."""
    yield from _names(condition, words)
    for key, pattern in patterns_of(condition):
        reason = refusal(pattern) or (says_nothing(pattern) if key == "log" else None)
        if reason is not None:
            yield "error", key, reason
    yield from _unread(condition)
    if condition.kind in _COMPARED:
        yield from _comparison(condition)
    if condition.fact is not None and condition.value is not None:
        yield from _fact(condition, words)
    yield from _captures(condition, words)
    inner = condition.not_
    if inner is not None and inner.kind in {"fact", "config"} and inner.value is None:
        name = getattr(inner, inner.kind)
        yield "error", "not", f"this is never met: where {name} is unknown there is no data, and no data meets nothing"


def _names(condition: Condition, words: Words) -> Iterator[Problem]:
    for key, names in (("signature", (condition.signature,)), ("order", condition.order or ())):
        for name in names:
            sentence = None if name is None else unknown(name, words.knowledge.signatures, where="the signature")
            if sentence is not None:
                yield "error", key, sentence
    sentence = None if condition.fact is None else unknown(condition.fact, words.facts, where="the fact")
    if sentence is not None:
        yield "error", "fact", sentence
    common = None if condition.config is None else words.common_name(condition.config)
    if common != condition.config:
        yield (
            "error",
            "config",
            f"the setting {condition.config!r} is known as {common!r} in every framework; write that",
        )


def _unread(condition: Condition) -> Iterator[Problem]:
    kind = condition.kind
    if kind not in _COMPARED and (condition.op is not None or condition.value is not None):
        yield "error", "op", f"a {kind} condition does not read `op` and `value`; compare captures with `where:`"
    if kind not in _SAID and condition.where:
        yield "error", "where", f"a {kind} condition does not read `where:`; only signature, log and exception do"
    if kind not in _SAID and condition.rank is not None:
        yield "error", "rank", f"a {kind} condition does not read `rank:`; only signature, log and exception do"
    if kind in {"all", "any"} and not getattr(condition, kind):
        yield "error", kind, f"`{kind}:` is empty"


def _comparison(condition: Condition) -> Iterator[Problem]:
    op, value = condition.op, condition.value
    if value is None and op not in {None, "exists"}:
        yield "error", "op", f"`op: {op}` needs a `value:` to compare with"
    elif value is not None and op == "exists":
        yield "error", "value", "`op: exists` reads no `value:`; leave one of the two out"
    elif isinstance(value, tuple) and op != "in":
        yield "error", "value", f"a list is met with `op: in`, never with `op: {op or '=='}`"
    elif op in ORDERINGS and condition.kind != "package" and not _ordered(value):
        yield "error", "value", f"`op: {op}` orders numbers; {value!r} is none, so this is never met"


def _fact(condition: Condition, words: Words) -> Iterator[Problem]:
    name, kind = str(condition.fact), words.kinds.get(str(condition.fact))
    meaning, used = words.facts.get(name, ""), _kind(condition)
    if condition.op in ORDERINGS and not _ordered(condition.value):
        return
    if kind is not None and used not in {None, kind}:
        yield "error", "value", f"the fact {name} is {_KINDS[kind]}; {condition.value!r} is {_KINDS[str(used)]}"
    elif meaning.startswith("share") and _beyond_share(condition):
        yield "error", "value", f"the fact {name} is a share between 0 and 1, so this is never met"
    choices = _choices(meaning)
    if choices and condition.op in {None, "==", "in"}:
        for item in condition.value if isinstance(condition.value, tuple) else (condition.value,):
            sentence = unknown(str(item), choices, where=f"the value of {name}")
            if sentence is not None:
                yield "error", "value", f"{sentence} (there are {', '.join(choices)})"


def _captures(condition: Condition, words: Words) -> Iterator[Problem]:
    known = _ALWAYS | ({"frames", "raised_in", "type", "worker"} if condition.exception is not None else set())
    signature = words.knowledge.signatures.get(str(condition.signature))
    pattern = condition.log if signature is None else signature.pattern
    known |= groups(pattern) if pattern is not None else set()
    for key, test in condition.where.items() if condition.kind in _SAID else ():
        globbed = condition.signature is not None and signature is None
        if key not in known and not globbed:
            sentence = unknown(key, known, where="the capture")
            yield "error", "where", f"{sentence} (there are {', '.join(sorted(known))})"
        op, wanted = split_test(test)
        if op in ORDERINGS and number(wanted) is None:
            yield "error", "where", f"{key}: {test!r} orders numbers; {wanted!r} is none, so this is never met"


_KINDS = {"bool": "true or false", "number": "a number", "text": "a text"}


def _kind(condition: Condition) -> str | None:
    """Return what a condition takes its fact for."""
    value = condition.value[0] if isinstance(condition.value, tuple) and condition.value else condition.value
    if value is None or condition.op == "matches":
        return None
    return "bool" if isinstance(value, bool) else "number" if number(value) is not None else "text"


def _agreed(votes: Counter[str]) -> bool:
    return votes.total() > 2 and votes.most_common(1)[0][1] >= 0.8 * votes.total()


def _said_kind(meaning: str) -> str | None:
    if _choices(meaning):
        return "text"
    unit = re.search(r"\((?:steps?|s|ms|us|GiB|GiB a step|bytes|tokens|x|%|W|MHz|degrees Celsius)\)$", meaning)
    return "number" if unit or meaning.startswith(("share ", "number of ")) else None


def _choices(meaning: str) -> tuple[str, ...]:
    """Return the words of a meaning like `phase at the failure: load | train | eval`."""
    words = tuple(part.strip() for part in meaning.rsplit(": ", 1)[-1].split(" | "))
    return words if len(words) > 1 and all(re.fullmatch(r"[\w-]+", word) for word in words) else ()


def _beyond_share(condition: Condition) -> bool:
    value = number(condition.value)
    return value is not None and ((condition.op == ">" and value >= 1) or (condition.op in {">=", "=="} and value > 1))


def _ordered(value: Any) -> bool:
    return not isinstance(value, (bool, tuple)) and number(value) is not None
