"""Writes the two files of a new cause; unfilled, its test fails."""

from __future__ import annotations

from pathlib import Path

from rca.errors import UsageError
from rca.rules.json_schemas import FOLDER, write_schemas
from rca.rules.skeleton import blank, skeleton


def scaffold(cause: str, folder: Path, *, line: str | None = None, message: str | None = None) -> tuple[Path, Path]:
    """Write `folder/<domain>/<name>.yaml` and its cases file, made from a log line where one is given.

    The schemas that editors need are written into the folder, unless the folder above has them. Raises UsageError for a
    bad id or an existing file.
    """
    above = (folder.resolve().parent / FOLDER).is_dir()
    up = 2 if above else 1
    texts = blank(cause, up=up) if line is None else skeleton(line, cause=cause, message=message, up=up)
    domain, name = cause.split(".")
    files = folder / domain / f"{name}.yaml", folder / domain / f"{name}.cases.yaml"
    for file in files:
        if file.exists():
            raise UsageError(f"{file} exists already; edit it, or choose another id")
    files[0].parent.mkdir(parents=True, exist_ok=True)
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    if not above:
        write_schemas(folder)
    return files
