"""What a check found: a sentence with its file, its line and how bad it is."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rca.rules.load import Knowledge, located
from rca.rules.schema import Cause, Condition, EvidenceRule
from rca.rules.yaml_files import Location, line_of, read_yaml

Level = Literal["error", "warning"]
SECTIONS = ("evidence", "contradicts")


@dataclass(frozen=True)
class Finding:
    """One thing to mend."""

    level: Level
    """`error`: the rule does not do what it says; `warning`: it works, but less well than its author thinks."""
    file: Path
    line: int | None
    text: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line is not None else f"{self.file}"
        return f"{place}: {self.level}: {self.text}"

    def as_json(self) -> dict[str, str | int | None]:
        """Return it as plain values."""
        return {"level": self.level, "file": str(self.file), "line": self.line, "text": self.text}


@dataclass(frozen=True)
class Place:
    """One evidence rule of a cause, in the file that states it: the cause's own or one that extends it."""

    file: Path
    loc: Location
    rule: EvidenceRule

    @property
    def section(self) -> str:
        """`evidence` or `contradicts`."""
        return str(self.loc[0])

    def conditions(self) -> Iterator[tuple[Location, Condition]]:
        """Yield the condition and all inside it, with their keys in the file."""
        return located(self.rule, self.loc)


def found(level: Level, file: Path, loc: Location, text: str) -> Finding:
    """Return a finding at a place of a file."""
    return Finding(level, file, line_of(file, loc), text)


def places(cause: Cause, knowledge: Knowledge) -> list[Place]:
    """Return the evidence and the contradictions of a cause, each with the place where it stands."""
    files = (knowledge.files[cause.id], *knowledge.extensions.get(cause.id, ()))
    listed = []
    for section in SECTIONS:
        rules = getattr(cause, section)
        spots = [(files[0], index) for index in range(len(rules))] if len(files) == 1 else list(_spots(files, section))
        listed += [Place(file, (section, index), rule) for (file, index), rule in zip(spots, rules, strict=True)]
    return listed


def unknown(name: str, known: Collection[str], *, where: str) -> str | None:
    """Return a sentence when an id is not among the known ones; `nccl.*` covers a prefix."""
    if name in known or (name.endswith("*") and any(item.startswith(name[:-1]) for item in known)):
        return None
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"{where} {name!r} does not exist" + (f"; did you mean {close[0]!r}?" if close else "")


def _spots(files: Iterable[Path], section: str) -> Iterator[tuple[Path, int]]:
    """Yield where the evidence of a cause and its extensions stands, in the order in which it was joined."""
    for file in files:
        for index in range(len(read_yaml(file).get(section) or ())):
            yield file, index
