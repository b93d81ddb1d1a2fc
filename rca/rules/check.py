"""Looks for what is wrong across rule files: ids, references, examples, conditions, cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rca.rules.check_conditions import Words, check_condition
from rca.rules.check_logic import check_logic
from rca.rules.check_signatures import check_signatures
from rca.rules.check_text import check_says, check_snippets, check_text
from rca.rules.findings import Finding, Place, found, places, unknown
from rca.rules.load import Knowledge
from rca.rules.schema import Cause
from rca.rules.testing import MATURE_CASES, cases_file, load_cases
from rca.rules.yaml_files import Location


def check(
    knowledge: Knowledge,
    *,
    facts: Mapping[str, str],
    common_name: Callable[[str], str] = str,
    to_beat: float = -math.inf,
) -> list[Finding]:
    """Return what is wrong, each with its file and line.

    `facts` are the names that can be computed, with one line of meaning each; `common_name` gives the name under which
    a setting is known; `to_beat` is the log-odds that a cause needs at least to be named when everything speaks for it.
    """
    words = Words(knowledge, facts, common_name)
    return [
        *check_signatures(knowledge),
        *(finding for cause in knowledge.causes.values() for finding in _cause(cause, words, to_beat)),
        *_experiments(knowledge),
        *_outcomes(knowledge),
        *(finding for file in _files(knowledge) for finding in check_text(file)),
    ]


def _files(knowledge: Knowledge) -> list[Path]:
    return sorted({*knowledge.files.values(), *(file for files in knowledge.extensions.values() for file in files)})


def _cause(cause: Cause, words: Words, to_beat: float) -> Iterator[Finding]:
    knowledge = words.knowledge
    file = knowledge.files[cause.id]
    if knowledge.taxonomy and cause.domain in {name.split(".")[0] for name in knowledge.taxonomy}:
        sentence = unknown(cause.id, knowledge.taxonomy, where="the id")
        if sentence is not None:
            yield found("error", file, ("id",), f"{sentence} (the ids of this domain are those of taxonomy.yaml)")
    known = {**knowledge.signatures, **knowledge.causes, **knowledge.taxonomy}
    for key, names in (("explains", known), ("experiments", knowledge.experiments)):
        for index, name in enumerate(getattr(cause, key)):
            sentence = unknown(name, names, where=key)
            if sentence is not None:
                yield found("error", file, (key, index), sentence)
    if not cause.evidence:
        yield found("error", file, ("evidence",), f"{cause.id} has no evidence and can never be named")
    listed = places(cause, knowledge)
    yield from _repeated_ids(listed)
    own = [rule.id for rule in cause.evidence]
    for index, fix in enumerate(cause.fixes):
        for name in fix.when:
            sentence = unknown(name, own, where="when")
            if sentence is not None:
                yield found("error", file, ("fixes", index, "when"), f"{sentence} (evidence ids of {cause.id})")
    for place in listed:
        for loc, condition in place.conditions():
            for level, key, text in check_condition(condition, words):
                yield found(level, place.file, (*loc, key), text)
        yield from check_says(place, words)
    yield from check_snippets(cause, words)
    yield from check_logic(cause, listed, to_beat=to_beat)
    yield from _cases(cause, knowledge)


def _repeated_ids(listed: list[Place]) -> Iterator[Finding]:
    seen: set[str] = set()
    for place in listed:
        name = place.rule.id
        if name in seen:
            text = f"the evidence id {name!r} is used twice; ids are unique within a cause"
            yield found("error", place.file, (*place.loc, "id"), text)
        seen.add(name)


def _cases(cause: Cause, knowledge: Knowledge) -> Iterator[Finding]:
    file = cases_file(knowledge.files[cause.id])
    if not file.is_file():
        yield Finding("error", file, None, "the file is missing; write `fires:` and `silent:` cases")
        return
    cases = load_cases(file)
    yield from check_text(file)
    if cause.maturity == "experimental":
        return
    place, start = (knowledge.files[cause.id], ("maturity",)), f"maturity {cause.maturity!r} stands for"
    if min(len(cases.fires), len(cases.silent)) < MATURE_CASES:
        text = f"{MATURE_CASES} fires and {MATURE_CASES} silent cases or more; {file.name} has"
        yield found("warning", *place, f"{start} {text} {len(cases.fires)} and {len(cases.silent)}")
    if not any(case.first for case in cases.silent):
        text = f"a silent case that names the nearest rival with `first:`; {file.name} has none"
        yield found("warning", *place, f"{start} {text}")


def _experiments(knowledge: Knowledge) -> Iterator[Finding]:
    known = knowledge.taxonomy or knowledge.causes
    for rule in knowledge.experiments.values():
        file = knowledge.files[rule.id]
        confirmed: list[tuple[Location, str]] = [(("confirms", at), name) for at, name in enumerate(rule.confirms)]
        predicted: list[tuple[Location, str]] = [
            (("predicts", name), name)
            for name in rule.predicts
            if name != "other" and name not in knowledge.outcomes.get(rule.id, ())
        ]
        for loc, name in confirmed + predicted:
            sentence = unknown(name, {**known, **knowledge.causes}, where="the cause")
            if sentence is not None:
                yield found("error", file, loc, sentence)
        for at, name in enumerate(rule.confirms if rule.kind == "twin" else ()):
            why = knowledge.untestable.get(name) or knowledge.untestable.get(name.split(".")[0])
            if why:
                text = f"an experiment on the twin cannot confirm {name} (`untestable` in taxonomy.yaml): {why}"
                yield found("error", file, ("confirms", at), text)
        if rule.kind == "twin" and len(rule.change) != 1:
            text = f"a treatment changes exactly one thing; `change` has {len(rule.change)} entries"
            yield found("error", file, ("change",), text)


def _outcomes(knowledge: Knowledge) -> Iterator[Finding]:
    file = knowledge.outcomes_file
    if file is None:
        return
    known = {**(knowledge.taxonomy or knowledge.causes), **knowledge.causes}
    for name, counts in knowledge.outcomes.items():
        sentence = unknown(name, knowledge.experiments, where="the experiment")
        if sentence is not None:
            yield found("error", file, ("outcomes", name), sentence)
        for cause in counts:
            sentence = unknown(cause, known, where="the cause")
            if sentence is not None:
                yield found("error", file, ("outcomes", name, cause), sentence)
