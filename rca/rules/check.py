"""Looks for what is wrong across rule files: ids, references, examples, cases."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator

from rca.rules.load import Knowledge, conditions
from rca.rules.schema import Cause, Condition
from rca.rules.testing import cases_file, load_cases, signature_failures


def check(knowledge: Knowledge, *, facts: Collection[str]) -> list[str]:
    """Return one sentence a problem, each with its file; `facts` are the names that can be computed."""
    return [
        *_signatures(knowledge),
        *(problem for cause in knowledge.causes.values() for problem in _cause(cause, knowledge, facts)),
        *_experiments(knowledge),
    ]


def _signatures(knowledge: Knowledge) -> Iterator[str]:
    import re2

    for signature in knowledge.signatures.values():
        file = knowledge.files[signature.id]
        try:
            failures = signature_failures(signature)
        except re2.error as error:
            failures = [f"the pattern is not RE2 syntax: {error}"]
        for failure in failures:
            yield f"{file}: {signature.id} {failure}"


def _cause(cause: Cause, knowledge: Knowledge, facts: Collection[str]) -> Iterator[str]:
    file = knowledge.files[cause.id]
    if knowledge.taxonomy and cause.domain in {name.split(".")[0] for name in knowledge.taxonomy}:
        yield from _known(cause.id, knowledge.taxonomy, f"{file}: the id")
    for condition in conditions(cause):
        yield from _condition(condition, knowledge, facts, f"{file}: a condition")
    for name in cause.explains:
        known = {**knowledge.signatures, **knowledge.causes, **knowledge.taxonomy}
        yield from _known(name, known, f"{file}: explains")
    for name in cause.experiments:
        yield from _known(name, knowledge.experiments, f"{file}: experiments")
    ids = [rule.id for rule in (*cause.evidence, *cause.contradicts)]
    for repeated in sorted({name for name in ids if ids.count(name) > 1}):
        yield f"{file}: the evidence id {repeated!r} is used twice; ids are unique within a cause"
    if not cause.evidence:
        yield f"{file}: {cause.id} has no evidence and can never be named"
    cases = cases_file(file)
    if cases.is_file():
        load_cases(cases)
    else:
        yield f"{cases}: missing; write `fires:` and `silent:` cases"


def _condition(condition: Condition, knowledge: Knowledge, facts: Collection[str], place: str) -> Iterator[str]:
    for name in (condition.signature, *(condition.order or ())):
        if name is not None:
            yield from _known(name, knowledge.signatures, f"{place} on signature")
    if condition.signature is not None and condition.signature in knowledge.signatures:
        captures = _captures(knowledge.signatures[condition.signature].pattern)
        for key in set(condition.where) - captures - {"message", "count"}:
            yield f"{place} on {condition.signature} compares {key!r}, which its pattern does not capture"
    if condition.fact is not None:
        yield from _known(condition.fact, facts, f"{place} on fact")
    if condition.log is not None:
        import re2

        try:
            re2.compile(condition.log)
        except re2.error as error:
            yield f"{place} has a log pattern that is not RE2 syntax: {error}"


def _captures(pattern: str) -> set[str]:
    import re2

    try:
        return set(re2.compile(pattern).groupindex)
    except re2.error:
        return set()


def _experiments(knowledge: Knowledge) -> Iterator[str]:
    for rule in knowledge.experiments.values():
        file = knowledge.files[rule.id]
        known = knowledge.taxonomy or knowledge.causes
        for name in (*rule.confirms, *(name for name in rule.predicts if name != "other")):
            yield from _known(name, known, f"{file}: cause")
        if rule.kind == "twin" and len(rule.change) != 1:
            yield f"{file}: a treatment changes exactly one thing; `change` has {len(rule.change)} entries"


def _known(name: str, known: Collection[str], place: str) -> Iterator[str]:
    if name in known or (name.endswith("*") and any(item.startswith(name[:-1]) for item in known)):
        return
    close = difflib.get_close_matches(name, list(known), n=1)
    yield f"{place} {name!r} does not exist" + (f"; did you mean {close[0]!r}?" if close else "")
