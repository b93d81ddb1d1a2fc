"""Checks of the text of rule files: names in braces, keys that stand twice, what is not written yet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from rca.rules.check_conditions import Words
from rca.rules.findings import Finding, Place, found, unknown
from rca.rules.load import walk
from rca.rules.patterns import groups
from rca.rules.schema import Cause, Condition
from rca.rules.skeleton import UNFILLED
from rca.rules.snippets import names, plain

_NAME = re.compile(r"\{([a-zA-Z0-9_.]+)\}")
_NO_GAP = re.compile(r"<<[a-z][\w.]*(?: [^<>\n]*)?[|>]")
_ALWAYS = frozenset({"text", "fact_says"})


def check_says(place: Place, words: Words) -> Iterator[Finding]:
    """Yield names in braces of `says:` that neither a fact nor a capture of the condition fills in."""
    known = {name for condition in walk(place.rule) for name in _given(condition, words)} | _ALWAYS
    for name in _NAME.findall(place.rule.says):
        if name not in known and name not in words.facts:
            sentence = unknown(name, sorted(known | set(words.facts)), where="the name in braces")
            yield found("error", place.file, (*place.loc, "says"), f"{sentence} (`says:` fills in facts and captures)")


def check_snippets(cause: Cause, words: Words) -> Iterator[Finding]:
    """Yield gaps of snippets that ask for no known fact, or for a setting by another than its common name."""
    file = words.knowledge.files[cause.id]
    for index, fix in enumerate(cause.fixes):
        place = (file, ("fixes", index, "snippet"))
        if _NO_GAP.search(plain(fix.snippet)):
            yield found("error", *place, "a gap is written <<NAME / 2 | OTHERWISE>>")
        for name in names(fix.snippet):
            setting = name.removeprefix("config.")
            if setting == name and name not in words.facts:
                sentence = unknown(name, sorted(words.facts), where="the gap")
                yield found("error", *place, f"{sentence} (a gap asks for a fact or for config.NAME)")
            elif setting != name and words.common_name(setting) != setting:
                yield found("error", *place, f"the setting {setting!r} is known as {words.common_name(setting)!r}")


def check_text(file: Path) -> Iterator[Finding]:
    """Yield keys that stand twice in one mapping, of which only the last counts, and what is still to be filled in."""
    text = file.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        if UNFILLED in line:
            yield Finding("error", file, number, f"this still says {UNFILLED!r}; write it, or take the line out")
    pending: list[Any] = [yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))]
    while pending:
        node = pending.pop()
        if isinstance(node, yaml.MappingNode):
            seen = set()
            for key, value in node.value:
                if key.value in seen:
                    text = f"the key {key.value!r} stands twice in one mapping; only the last one counts"
                    yield Finding("error", file, key.start_mark.line + 1, text)
                seen.add(key.value)
                pending.append(value)
        elif isinstance(node, yaml.SequenceNode):
            pending.extend(node.value)


def _given(condition: Condition, words: Words) -> Iterator[str]:
    for name in (condition.signature, *(condition.order or ())):
        for signature in words.knowledge.signatures.values() if name is not None else ():
            if signature.id == name or (name.endswith("*") and signature.id.startswith(name[:-1])):
                yield from groups(signature.pattern)
    if condition.log is not None:
        yield from groups(condition.log)
    if condition.exception is not None:
        yield from ("type", "message")
    yield from (name for name in (condition.config, condition.package) if name is not None)
