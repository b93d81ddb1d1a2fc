"""What is replaced in logs that hold no secret: machines and people, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from rca.redact import Redactor

SAMPLES = Path(__file__).resolve().parents[2] / "sample_logs"
_TEXTS = frozenset({".log", ".txt", ".json", ".yaml", ".out", ".err"})


def replaced(files: Iterable[Path], *, most: int) -> dict[str, int]:
    """Replacements by kind in the first lines of the files."""
    found: dict[str, int] = {}
    for file in files:
        if file.suffix in _TEXTS:
            redactor = Redactor()
            redactor.lines([line[:400] for line in file.read_text(errors="replace").splitlines()[:most]])
            found = {kind: found.get(kind, 0) + redactor.counts.get(kind, 0) for kind in {*found, *redactor.counts}}
    return found


def test_samples() -> None:
    found = replaced(sorted(SAMPLES.rglob("run/**/*")), most=400)
    assert set(found) <= {"host"}


@pytest.mark.slow
def test_labelled_cases(shared: Path) -> None:
    found = replaced(sorted((shared / "cases").glob("*/run/**/*")), most=1000)
    assert set(found) <= {"host", "ip", "user"}
    assert found["host"] > 100
