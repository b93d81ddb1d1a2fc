"""The reference pages, generated from the rules: every cause, every signature, every row of the field guide."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from pathlib import Path

from rca.rules.load import Knowledge
from rca.rules.schema import Cause, EvidenceRule, Fix
from rca.rules.snippets import plain
from rca.rules.words import MATURITIES, condition_words, joined, strength

_NOTE = "Generated from the rules by `rca rules reference --write docs`; change the rules, not this page."


def causes_page(knowledge: Knowledge) -> str:
    """Return one section a cause: what it is, what speaks for and against it, fixes, references."""
    causes = sorted(knowledge.causes.values(), key=lambda cause: (cause.domain, cause.id))
    levels = [f"- **{name}**: {meaning}" for name, meaning in MATURITIES.items()]
    contents, sections = [], []
    for domain, group in groupby(causes, key=lambda cause: cause.domain):
        members = list(group)
        contents.append(f"- {domain}: " + ", ".join(_link(cause.id) for cause in members))
        sections += [section for cause in members for section in _cause(cause, knowledge)]
    return _page("Causes", ["Maturity of a cause:", "\n".join(levels), "\n".join(contents), *sections])


def signatures_page(knowledge: Knowledge) -> str:
    """Return one table an emitter: the messages that are known, their role and where their wording was checked."""
    emitters = defaultdict(list)
    for signature in knowledge.signatures.values():
        emitters[signature.emitter].append(signature)
    blocks = []
    for emitter in sorted(emitters):
        rows = ["| signature | role | what it means | wording checked |", "|---|---|---|---|"]
        rows += [
            f"| `{item.id}` | {item.role} | {_cell(item.says)} | {_cell(item.verified)} |"
            for item in sorted(emitters[emitter], key=lambda item: item.id)
        ]
        blocks += [f"## {emitter}", "\n".join(rows)]
    return _page("Signatures", blocks)


def field_guide_page(knowledge: Knowledge) -> str:
    """Return the rows of the field guide with the causes that cover them."""
    rows = ["| row | causes |", "|---|---|"]
    for row, names in covered(knowledge):
        told = [f"{_link(name, 'causes.md')} ({_cell(knowledge.causes[name].title)})" for name in names]
        rows.append(f"| {row} | {', '.join(told)} |")
    return _page("Field guide", ["Which cause covers which row of the field guide.", "\n".join(rows)])


def covered(knowledge: Knowledge) -> list[tuple[str, list[str]]]:
    """Return the rows of the field guide in order, each with the ids of the causes that name it."""
    rows = defaultdict(list)
    for cause in knowledge.causes.values():
        for row in cause.field_guide:
            rows[row].append(cause.id)
    return sorted(
        ((row, sorted(names)) for row, names in rows.items()), key=lambda item: (item[0][0], int(item[0][1:]))
    )


PAGES: Mapping[str, Callable[[Knowledge], str]] = {
    "causes": causes_page,
    "signatures": signatures_page,
    "field-guide": field_guide_page,
}


def write_pages(knowledge: Knowledge, folder: Path) -> list[Path]:
    """Write all pages into a folder and return them."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / f"{name}.md": page(knowledge) for name, page in PAGES.items()}
    for file, text in files.items():
        file.write_text(text, encoding="utf-8")
    return list(files)


def _cause(cause: Cause, knowledge: Knowledge) -> Iterable[str]:
    guide = f" Field guide: {', '.join(cause.field_guide)}." if cause.field_guide else ""
    yield f"## {cause.id}"
    yield f"**{cause.title}.** {_line(cause.summary)}"
    yield f"Maturity: {cause.maturity}. Prior: {cause.prior:g}.{guide}"
    yield from _list("Speaks for it", map(_rule, cause.evidence))
    yield from _list("Speaks against it", map(_rule, cause.contradicts))
    if cause.explains:
        yield f"Its symptoms: {joined(cause.explains)}."
    yield from _list("What to change", (_fix(fix) for fix in cause.fixes))
    yield from _list("What would settle it", map(_line, cause.decide))
    yield from _list("Experiments", (_experiment(name, knowledge) for name in cause.experiments))
    yield from _list("Looks alike, is not", map(_line, cause.falsepositives))
    yield from _list(
        "References", (f"[{item.title}]({item.url})" if item.url else item.title for item in cause.references)
    )


def _rule(rule: EvidenceRule) -> str:
    required = ", required" if rule.required else ""
    return f"{strength(rule.weight)} ({rule.weight:g}{required}): {_line(rule.says)} If {condition_words(rule)}."


def _fix(fix: Fix) -> str:
    parts = [f"{_line(fix.action).rstrip('.')}.", _line(fix.why)]
    parts += [f"Risk: {_line(fix.risk)}" if fix.risk else "", f"Verify: {_line(fix.verify)}" if fix.verify else ""]
    text = " ".join(part for part in parts if part)
    if not fix.snippet:
        return text
    snippet = "\n".join(f"  {line}".rstrip() for line in plain(fix.snippet).rstrip().splitlines())
    return f"{text}\n\n  ```{fix.language}\n{snippet}\n  ```"


def _experiment(name: str, knowledge: Knowledge) -> str:
    rule = knowledge.experiments.get(name)
    return f"`{name}`" if rule is None else f"`{name}`: {_line(rule.question)}"


def _list(title: str, items: Iterable[str]) -> Iterable[str]:
    lines = [f"- {item}" for item in items]
    if lines:
        yield f"{title}:"
        yield "\n".join(lines)


def _page(title: str, blocks: Iterable[str]) -> str:
    return "\n\n".join([f"# {title}", _NOTE, *blocks]) + "\n"


def _link(name: str, page: str = "") -> str:
    anchor = re.sub(r"[^a-z0-9_-]", "", name)
    return f"[{name}]({page}#{anchor})"


def _line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _line(text).replace("|", r"\|")
