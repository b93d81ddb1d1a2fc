"""One cause as text for the terminal: what it is, what to change, what speaks for and against it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from rca.errors import UsageError
from rca.report.words import paragraph, say, shown
from rca.report.wrapping import wrapped
from rca.rules.listing import no_such
from rca.rules.load import Knowledge, walk
from rca.rules.schema import Cause, EvidenceRule
from rca.rules.snippets import plain
from rca.rules.words import MATURITIES, condition_words, strength

WIDTH = 80
_GAP = re.compile(r"\{[a-zA-Z0-9_.]+\}")
_VALUES = re.compile(r" \([^()]*\)$|; from .*$")
_FINDING = "{fact_says}"


def explanation(
    knowledge: Knowledge,
    cause_id: str,
    *,
    meanings: Callable[[], Mapping[str, str]],
    verbose: bool = False,
    color: bool = False,
) -> str:
    """Return a cause in the language in force, its conditions and weights only where `verbose`.

    `meanings` tells what each fact is; it is called where evidence is said in the words of a fact. Raises UsageError
    for an unknown id.
    """
    cause = knowledge.causes.get(cause_id)
    if cause is None and cause_id in knowledge.files:
        raise UsageError(f"{cause_id!r} is no cause but part of the rules; see `rca rules show {cause_id}`")
    if cause is None:
        raise UsageError(no_such(cause_id, knowledge.causes))
    evidence = partial(_rule, meanings=meanings, verbose=verbose)
    parts = (
        (say("section.change"), _fixes(cause)),
        (say("explain.for"), _bullets(evidence(rule) for rule in cause.evidence)),
        (say("explain.against"), _bullets(evidence(rule) for rule in cause.contradicts)),
        (say("column.settle"), _bullets(map(shown, cause.decide))),
        (say("explain.alike"), _bullets(map(shown, cause.falsepositives))),
        (say("why.symptoms"), _bullets(_symptoms(cause, knowledge))),
        (say("section.experiments"), _bullets(_experiments(cause, knowledge))),
        (say("why.references"), _bullets(f"{item.title} {item.url}".strip() for item in cause.references)),
    )
    bold, usual = ("\x1b[1m", "\x1b[0m") if color else ("", "")
    told = [(f"{bold}{title}{usual}", list(lines)) for title, lines in parts]
    maturity = say("explain.maturity", level=cause.maturity, promise=shown(MATURITIES[cause.maturity]))
    blocks = [
        f"{bold}{cause.id}{usual}  {shown(cause.title)}",
        "\n".join(_wrapped(shown(cause.summary))),
        *("\n".join([title, *lines]) for title, lines in told if lines),
        "\n".join(_wrapped(f"{maturity} {say('explain.file', file=knowledge.files[cause.id])}")),
        *(() if verbose else ("\n".join(_wrapped(say("explain.more", cause=cause.id))),)),
    ]
    return "\n\n".join(block for block in blocks if block)


def _symptoms(cause: Cause, knowledge: Knowledge) -> Iterator[str]:
    for name in cause.explains:
        symptom = knowledge.causes.get(name)
        if symptom is None:
            yield name
        elif symptom.domain != name:  # a healthy run, which has no domain, is no symptom
            yield f"{name}{say('colon')}{shown(symptom.title)}"


def _experiments(cause: Cause, knowledge: Knowledge) -> Iterator[str]:
    for name in cause.experiments:
        rule = knowledge.experiments.get(name)
        yield name if rule is None else f"{name}{say('colon')}{shown(rule.question)}"


def _rule(rule: EvidenceRule, *, meanings: Callable[[], Mapping[str, str]], verbose: bool) -> str:
    says = shown(rule.says)
    if rule.says.strip() == _FINDING:
        named = [item.fact for item in walk(rule) if item.fact is not None]
        meaning = "; ".join(shown(_VALUES.sub("", meanings().get(name, name))) for name in named)
        says = paragraph(f"{meaning[:1].upper()}{meaning[1:]}")
    aside = [say(f"explain.{strength(rule.weight)}"), *([say("explain.required")] if rule.required else ())]
    if verbose:
        aside.append(f"{rule.weight:g} nats{say('colon')}{condition_words(rule)}")
    return f"{_GAP.sub('…', says)} ({say('list.clause').join(aside)})"


def _fixes(cause: Cause) -> Iterator[str]:
    for number, fix in enumerate(cause.fixes, start=1):
        text = paragraph(shown(fix.action), shown(fix.why))
        yield from _wrapped(text, first=f"  {number}. ", rest="     ")
        if fix.snippet:
            yield textwrap.indent(plain(fix.snippet).rstrip(), " " * 7)


def _bullets(items: Iterable[str]) -> Iterator[str]:
    for item in items:
        yield from _wrapped(item, first="  - ", rest="    ")


def _wrapped(text: str, *, first: str = "", rest: str = "") -> list[str]:
    return wrapped(" ".join(text.split()), WIDTH, first=first, rest=rest)
