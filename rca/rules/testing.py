"""Runs the cases that stand beside every cause: it must come first on `fires`, and must not on `silent`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rca.errors import KnowledgeError, UsageError
from rca.rules.listing import no_such
from rca.rules.load import Knowledge
from rca.rules.schema import Case, CaseFile, Cause, WrittenRun
from rca.rules.skeleton import UNFILLED
from rca.rules.synthetic import expand
from rca.rules.yaml_files import read_yaml, validate

MATURE_CASES = 3
"""Cases of each kind, below which a cause is experimental."""


class Judged(NamedTuple):
    """What the rules make of a run."""

    order: Sequence[str]
    """Cause ids by falling probability, the verdict first."""
    met: Callable[[Cause], Collection[str]] = lambda _cause: ()
    """Ids of the rules of a cause that are met."""


Judge = Callable[[Path], Judged]


@dataclass(frozen=True)
class CaseResult:
    """How one case went."""

    cause: str
    kind: str
    """`fires` or `silent`."""
    name: str
    passed: bool
    why: str


def cases_file(file: Path) -> Path:
    """Return the path of the cases that belong to a cause file."""
    return file.with_name(file.stem + ".cases.yaml")


def load_cases(file: Path) -> CaseFile:
    """Read one cases file. Raises KnowledgeError."""
    return validate(CaseFile, read_yaml(file), file=file)


@dataclass(frozen=True)
class NamedCase:
    """A case with the cause it belongs to."""

    cause: str
    kind: str
    """`fires` or `silent`."""
    name: str
    case: Case
    file: Path
    """The cases file."""

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Give the run directory of the case for as long as it is needed."""
        if self.case.run is not None:
            run = self.file.parent / self.case.run
            if not run.is_dir():
                raise KnowledgeError(
                    f"the case `run: {self.case.run}` names no folder beside this file", file=self.file
                )
            if self.case.baseline is not None:
                raise KnowledgeError(
                    "`baseline:` goes with a case that is written out, not with `run:`", file=self.file
                )
            yield run
            return
        with tempfile.TemporaryDirectory(prefix="rca-case-") as folder:
            try:
                if self.case.baseline is not None:
                    write_case(self.case.baseline, Path(folder) / "baseline")
                run = write_case(self.case, Path(folder) / "run")
            except KnowledgeError as error:
                raise KnowledgeError(f"the case {self.name!r}: {error}", file=self.file) from error
            yield run

    def faults(self, order: Sequence[str], met: Collection[str]) -> list[str]:
        """Return what is not as the case wants it, given the causes in their order and the met rules of its cause."""
        first = order[0] if order else "nothing"
        faults = []
        if (first == self.cause) is not (self.kind == "fires") or self.case.first not in {None, first}:
            wanted = "" if self.case.first in {None, first} else f" instead of {self.case.first}"
            others = ", ".join(order[1:4])
            faults.append(f"first is {first}{wanted}" + (f", then {others}" if others else ""))
        return faults + [f"the rule {rule!r} is not met" for rule in self.case.shows if rule not in met]

    def result(self, judged: Judged, cause: Cause) -> CaseResult:
        """Return how the case went."""
        faults = self.faults(judged.order, judged.met(cause) if self.case.shows else ())
        why = "; ".join(faults) or f"first is {judged.order[0]}"
        return CaseResult(self.cause, self.kind, self.name, passed=not faults, why=why)


def cases_of(cause: Cause, knowledge: Knowledge) -> tuple[NamedCase, ...]:
    """Return the cases that stand beside a cause and beside what extends it. Raises KnowledgeError."""
    return tuple(
        NamedCase(cause.id, kind, case.name or f"{kind} {number}", case, file)
        for file in map(cases_file, _files(cause, knowledge))
        if file.is_file()
        for kind, group in _groups(load_cases(file))
        for number, case in enumerate(group, start=1)
    )


def chosen(knowledge: Knowledge, prefix: str, folders: Sequence[Path]) -> list[Cause]:
    """Return the causes whose id starts with `prefix`; without one those that `folders` define or extend, else all.

    Raises UsageError when there is none.
    """
    kept = [
        cause
        for cause in knowledge.causes.values()
        if cause.id.startswith(prefix)
        and (prefix or not folders or any(lies_in(file, folders) for file in _files(cause, knowledge)))
    ]
    if not kept:
        raise UsageError(no_such(prefix, knowledge.causes) if prefix else "these folders define and extend no cause")
    return kept


def lies_in(file: Path, folders: Sequence[Path]) -> bool:
    """Whether a file is below one of some folders."""
    return any(folder.resolve() in file.resolve().parents for folder in folders)


def run_cases(knowledge: Knowledge, causes: Sequence[Cause], judge: Judge) -> Iterator[CaseResult]:
    """Judge every case of the given causes; a cause without cases fails, and so does a case that is not written yet."""
    for cause in causes:
        cases = cases_of(cause, knowledge)
        if not cases:
            name = cases_file(knowledge.files[cause.id]).name
            yield CaseResult(cause.id, "fires", "", passed=False, why=f"{name} is missing; add fires and silent")
        for case in cases:
            if UNFILLED in case.case.model_dump_json():
                why = f"it still says {UNFILLED!r}; write it in {case.file}"
                yield CaseResult(cause.id, case.kind, case.name, passed=False, why=why)
                continue
            with case.folder() as run:
                yield case.result(judge(run), cause)


def _groups(cases: CaseFile) -> tuple[tuple[str, tuple[Case, ...]], ...]:
    return ("fires", cases.fires), ("silent", cases.silent)


def _files(cause: Cause, knowledge: Knowledge) -> tuple[Path, ...]:
    return knowledge.files[cause.id], *knowledge.extensions.get(cause.id, ())


def write_case(case: WrittenRun, folder: Path) -> Path:
    """Write a case as a run directory and return it."""
    folder.mkdir(parents=True)
    logs = {"train.log": case.log} if isinstance(case.log, str) else dict(case.log or {})
    for name, text in logs.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    if case.series is not None:
        lines = [json.dumps(record) for record in expand(case.series)]
        (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if case.config is not None:
        (folder / "training_args.json").write_text(json.dumps(case.config), encoding="utf-8")
    if case.packages is not None:
        pins = "".join(f"{name}=={version}\n" for name, version in case.packages.items())
        (folder / "requirements.txt").write_text(pins, encoding="utf-8")
    return folder
