"""The knowledge base as text: one cause, a list of ids, the file behind an id."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable

from rca.errors import UsageError
from rca.rules.load import Knowledge
from rca.rules.schema import Cause, Condition, EvidenceRule

_WIDTH = 80


def explanation(knowledge: Knowledge, cause_id: str, *, color: bool = False) -> str:
    """Return what a cause is, what speaks for and against it, and its fixes. Raises UsageError for an unknown id."""
    cause = knowledge.causes.get(cause_id)
    if cause is None:
        raise UsageError(_no_such(cause_id, knowledge.causes))
    bold, plain = ("\x1b[1m", "\x1b[0m") if color else ("", "")
    blocks = [
        f"{bold}{cause.id}{plain}  {cause.title}",
        _wrapped(cause.summary),
        _rules(f"{bold}Speaks for it{plain}", cause.evidence),
        _rules(f"{bold}Speaks against it{plain}", cause.contradicts),
        _fixes(f"{bold}What to change{plain}", cause),
        _bullets(f"{bold}What would settle it{plain}", cause.decide),
        _bullets(f"{bold}Looks alike, is not{plain}", cause.falsepositives),
        _bullets(f"{bold}Experiments{plain}", cause.experiments),
        _bullets(f"{bold}References{plain}", (f"{item.title} {item.url}".strip() for item in cause.references)),
    ]
    return "\n\n".join(block for block in blocks if block)


def listing(knowledge: Knowledge, prefix: str) -> str:
    """Return ids and titles, one a line."""
    rows = [
        *((cause.id, "cause", cause.title) for cause in knowledge.causes.values()),
        *((rule.id, "experiment", rule.title) for rule in knowledge.experiments.values()),
        *((signature.id, "signature", signature.says) for signature in knowledge.signatures.values()),
    ]
    kept = sorted(row for row in rows if row[0].startswith(prefix))
    if not kept:
        raise UsageError(f"no cause, experiment or signature starts with {prefix!r}; try `rca rules list`")
    return "\n".join(f"{name:<40} {kind:<11} {title}".rstrip() for name, kind, title in kept)


def definition(knowledge: Knowledge, rule_id: str) -> str:
    """Return the text of the file that defines an id. Raises UsageError for an unknown id."""
    file = knowledge.files.get(rule_id)
    if file is None:
        raise UsageError(_no_such(rule_id, knowledge.files))
    return f"# {file}\n{file.read_text(encoding='utf-8')}"


def _no_such(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`rca rules list` shows all"
    return f"{name!r} is not known; {hint}"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(" ".join(text.split()), width=_WIDTH, initial_indent=indent, subsequent_indent=indent)


def _bullets(title: str, items: Iterable[str]) -> str:
    lines = [
        textwrap.fill(item, width=_WIDTH, initial_indent="  - ", subsequent_indent="    ", break_long_words=False)
        for item in items
    ]
    return "\n".join([title, *lines]) if lines else ""


def _rules(title: str, rules: Iterable[EvidenceRule]) -> str:
    return _bullets(title, (f"{rule.says} ({rule.kind} {_subject(rule)}, {rule.weight:g} nats)" for rule in rules))


def _subject(condition: Condition) -> str:
    value = getattr(condition, condition.kind, None)
    return value if isinstance(value, str) else ""


def _fixes(title: str, cause: Cause) -> str:
    blocks = []
    for number, fix in enumerate(cause.fixes, start=1):
        blocks.append(_wrapped(f"{number}. {fix.action} {fix.why}".strip(), "  "))
        if fix.snippet:
            blocks.append(textwrap.indent(fix.snippet.rstrip(), "       "))
    return "\n".join([title, *blocks]) if blocks else ""
