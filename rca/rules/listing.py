"""What there is: rows of ids with titles, and the text that defines an id."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from rca.errors import UsageError
from rca.rules.load import Knowledge
from rca.rules.schema import Cause, ExperimentRule, Signature


@dataclass(frozen=True)
class Row:
    """One rule in a list."""

    id: str
    kind: str
    """`cause`, `signature` or `experiment`."""
    about: str
    """Maturity of a cause, emitter of a signature, kind of an experiment."""
    title: str
    file: str


@dataclass(frozen=True)
class Filter:
    """Which rules a list holds; what is None does not narrow it. A cause has no emitter and a signature no maturity."""

    prefix: str = ""
    kind: str | None = None
    domain: str | None = None
    maturity: str | None = None
    emitter: str | None = None

    def keeps(self, row: Row) -> bool:
        """Whether a rule is wanted."""
        return (
            row.id.startswith(self.prefix)
            and self.kind in {None, row.kind}
            and self.domain in {None, row.id.split(".")[0]}
            and (self.maturity is None or (row.kind, row.about) == ("cause", self.maturity))
            and (self.emitter is None or (row.kind, row.about) == ("signature", self.emitter))
        )


def rows(knowledge: Knowledge, wanted: Filter) -> list[Row]:
    """Return the rules a filter keeps, by id. Raises UsageError when there is none."""
    kept = sorted((row for row in _all(knowledge) if wanted.keeps(row)), key=lambda row: (row.id, row.kind))
    if not kept:
        emitters = {signature.emitter for signature in knowledge.signatures.values()}
        if wanted.emitter is not None and wanted.emitter not in emitters:
            raise UsageError(
                f"no signature has the emitter {wanted.emitter!r}; there are {', '.join(sorted(emitters))}"
            )
        raise UsageError(f"no rule is left by these filters (id starting with {wanted.prefix!r}); try `rca rules list`")
    return kept


def table(found: Sequence[Row]) -> str:
    """Return two or more lines a row, of at most 80 columns: id, kind and what it is about, then what it says."""
    lines = []
    for row in found:
        lines.append(f"{row.id}  {row.kind}, {row.about}")
        lines += textwrap.wrap(
            row.title,
            80,
            initial_indent="    ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def definition(knowledge: Knowledge, rule_id: str) -> str:
    """Return the text that defines an id, under the name of its file. Raises UsageError for an unknown id."""
    file = knowledge.files.get(rule_id)
    if file is None:
        raise UsageError(no_such(rule_id, knowledge.files))
    text = file.read_text(encoding="utf-8")
    if rule_id not in knowledge.signatures:
        return f"# {file}\n{text}"
    first, last = _item(text, rule_id)
    return f"# {file}:{first + 1}\n" + "".join(text.splitlines(keepends=True)[first:last])


def rule(knowledge: Knowledge, rule_id: str) -> Cause | Signature | ExperimentRule:
    """Return the validated rule with an id. Raises UsageError for an unknown id."""
    known: dict[str, Cause | Signature | ExperimentRule] = {
        **knowledge.signatures,
        **knowledge.experiments,
        **knowledge.causes,
    }
    if rule_id not in known:
        raise UsageError(no_such(rule_id, known))
    return known[rule_id]


def no_such(name: str, known: Iterable[str]) -> str:
    """Return the sentence for an id that does not exist, with those that look like it."""
    close = difflib.get_close_matches(name, list(known), n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`rca rules list` shows all, your own with --rules DIR"
    return f"{name!r} is not known; {hint}"


def _all(knowledge: Knowledge) -> Iterator[Row]:
    files = knowledge.files
    for cause in knowledge.causes.values():
        yield Row(cause.id, "cause", cause.maturity, cause.title, str(files[cause.id]))
    for experiment in knowledge.experiments.values():
        yield Row(experiment.id, "experiment", experiment.kind, experiment.title, str(files[experiment.id]))
    for signature in knowledge.signatures.values():
        yield Row(signature.id, "signature", signature.emitter, signature.says, str(files[signature.id]))


def _item(text: str, rule_id: str) -> tuple[int, int]:
    """Return the first line of a signature in its file, and the line behind its last, counted from 0."""
    ids = [item.get("id") for item in yaml.load(text, Loader=yaml.CSafeLoader)["signatures"]]
    root: Any = yaml.compose(text, Loader=yaml.CSafeLoader)
    items = next(value for key, value in root.value if key.value == "signatures")
    item = items.value[ids.index(rule_id)]
    return item.start_mark.line, item.end_mark.line
