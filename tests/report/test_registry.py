"""Formats of installed packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rca.report.registry import BUILT_IN, names, renderer

PACKAGE = """
class Haiku:
    name = "haiku"
    suffix = ".haiku"

    def render(self, diagnosis):
        return f"the job fell silent / {diagnosis.verdict.cause} / autumn in the rack\\n"


class Nothing:
    pass
"""
ENTRIES = """
[rca.formats]
haiku = acme_formats:Haiku
nothing = acme_formats:Nothing
absent = acme_formats:Absent
html = acme_formats:Haiku
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a package as pip leaves it."""
    site = tmp_path / "site"
    info = site / "acme_formats-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "acme_formats.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-formats\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    return site


def rca(site: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{site}:{root}"}
    command = [sys.executable, "-m", "rca", "report", str(Path(__file__).parent / "saved" / "1.0-last.json")]
    return subprocess.run(
        [*command, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False
    )


def test_a_format_of_a_package_is_used_by_its_name(installed: Path, tmp_path: Path) -> None:
    done = rca(installed, "-f", "haiku")
    assert done.stdout == "the job fell silent / numerics.fp16_overflow / autumn in the rack\n", done.stderr
    assert "haiku" in rca(installed, "--help").stdout


@pytest.mark.parametrize(
    ("form", "says"),
    [("nothing", "no `suffix` and `render`"), ("absent", "cannot be loaded"), ("sonnet", "is no format; there are")],
)
def test_what_cannot_be_used_is_a_sentence(installed: Path, form: str, says: str) -> None:
    done = rca(installed, "-f", form)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_what_comes_with_rca_is_not_replaced() -> None:
    assert set(BUILT_IN) <= set(names())
    assert [renderer(name).name for name in BUILT_IN] == list(BUILT_IN)
