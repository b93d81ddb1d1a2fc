"""Runs the cases that stand beside every cause: it must come first on `fires`, and must not on `silent`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rca.rules.load import Knowledge, read_yaml, validate
from rca.rules.schema import Case, CaseFile, Cause, Signature
from rca.rules.synthetic import expand

Judge = Callable[[Path], Sequence[str]]
"""Run directory -> cause ids by falling probability, the verdict first."""


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


def run_cases(knowledge: Knowledge, causes: Sequence[Cause], judge: Judge) -> Iterator[CaseResult]:
    """Judge every case of the given causes; a cause without cases fails."""
    for cause in causes:
        file = cases_file(knowledge.files[cause.id])
        if not file.is_file():
            yield CaseResult(cause.id, "fires", "", passed=False, why=f"{file.name} is missing; add fires and silent")
            continue
        cases = load_cases(file)
        for kind, group in (("fires", cases.fires), ("silent", cases.silent)):
            for number, case in enumerate(group, start=1):
                order = _judged(case, file.parent, judge)
                yield _result(cause, kind, case.name or f"{kind} {number}", order, rival=case.first)


def _judged(case: Case, beside: Path, judge: Judge) -> Sequence[str]:
    with tempfile.TemporaryDirectory(prefix="rca-case-") as folder:
        return judge(beside / case.run if case.run else write_case(case, Path(folder) / "run"))


def _result(cause: Cause, kind: str, name: str, order: Sequence[str], *, rival: str | None) -> CaseResult:
    first = order[0] if order else "nothing"
    passed = (first == cause.id) is (kind == "fires") and rival in {None, first}
    others = ", ".join(order[1:4])
    wanted = "" if rival in {None, first} else f" instead of {rival}"
    why = f"first is {first}{wanted}" + (f", then {others}" if others else "")
    return CaseResult(cause.id, kind, name, passed=passed, why=why)


def write_case(case: Case, folder: Path) -> Path:
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


def signature_failures(signature: Signature) -> list[str]:
    """Return what is wrong with the examples of a signature: patterns must match `matches` and nothing in `rejects`."""
    import re2

    pattern = re2.compile(signature.pattern)
    missed = [f"does not match its example {line!r}" for line in signature.matches if not pattern.search(line)]
    wrong = [f"matches the line it should reject {line!r}" for line in signature.rejects if pattern.search(line)]
    unknown = set(signature.captures) - set(pattern.groupindex)
    return missed + wrong + [f"capture {name!r} is not a group of the pattern" for name in sorted(unknown)]
