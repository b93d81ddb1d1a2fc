"""One cause as text: what it is, what speaks for and against it, how to fix it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from rca.errors import UsageError
from rca.rules.listing import no_such
from rca.rules.load import Knowledge
from rca.rules.schema import Cause, EvidenceRule
from rca.rules.snippets import plain
from rca.rules.words import MATURITIES, condition_words, strength

_WIDTH = 80


def explanation(knowledge: Knowledge, cause_id: str, *, color: bool = False) -> str:
    """Return what a cause is, what speaks for and against it, and its fixes. Raises UsageError for an unknown id."""
    cause = knowledge.causes.get(cause_id)
    if cause is None and cause_id in knowledge.files:
        raise UsageError(f"{cause_id!r} is no cause but part of the rules; see `rca rules show {cause_id}`")
    if cause is None:
        raise UsageError(no_such(cause_id, knowledge.causes))
    bold, plain = ("\x1b[1m", "\x1b[0m") if color else ("", "")
    blocks = [
        f"{bold}{cause.id}{plain}  {cause.title}",
        _wrapped(cause.summary),
        _rules(f"{bold}Speaks for it{plain}", cause.evidence),
        _rules(f"{bold}Speaks against it{plain}", cause.contradicts),
        _bullets(f"{bold}Explains, as its symptoms{plain}", cause.explains),
        _fixes(f"{bold}What to change{plain}", cause),
        _bullets(f"{bold}What would settle it{plain}", cause.decide),
        _bullets(f"{bold}Looks alike, is not{plain}", cause.falsepositives),
        _bullets(f"{bold}Experiments{plain}", _experiments(cause, knowledge)),
        _bullets(f"{bold}References{plain}", (f"{item.title} {item.url}".strip() for item in cause.references)),
        _wrapped(f"Maturity: {cause.maturity} ({MATURITIES[cause.maturity]}). Defined in {knowledge.files[cause.id]}"),
    ]
    return "\n\n".join(block for block in blocks if block)


def _experiments(cause: Cause, knowledge: Knowledge) -> Iterable[str]:
    for name in cause.experiments:
        rule = knowledge.experiments.get(name)
        yield name if rule is None else f"{name}: {rule.question}"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        " ".join(text.split()),
        width=_WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _bullets(title: str, items: Iterable[str]) -> str:
    lines = [
        textwrap.fill(item, width=_WIDTH, initial_indent="  - ", subsequent_indent="    ", break_long_words=False)
        for item in items
    ]
    return "\n".join([title, *lines]) if lines else ""


def _rules(title: str, rules: Iterable[EvidenceRule]) -> str:
    return _bullets(title, map(_rule, rules))


def _rule(rule: EvidenceRule) -> str:
    required = ", required" if rule.required else ""
    return f"{rule.says} ({strength(rule.weight)}, {rule.weight:g} nats{required}: {condition_words(rule)})"


def _fixes(title: str, cause: Cause) -> str:
    blocks = []
    for number, fix in enumerate(cause.fixes, start=1):
        blocks.append(_wrapped(f"{number}. {fix.action} {fix.why}".strip(), "  "))
        if fix.snippet:
            blocks.append(textwrap.indent(plain(fix.snippet).rstrip(), "       "))
    return "\n".join([title, *blocks]) if blocks else ""
