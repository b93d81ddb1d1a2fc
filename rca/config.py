"""Defaults of the command line from `rca.toml` or `[tool.rca]` in `pyproject.toml`; options and RCA_* win over them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rca.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def defaults(file: Path | None = None, *, folder: Path = Path()) -> dict[str, Any]:
    """Return option defaults by command, as click's `default_map` wants them. Raises UsageError for a wrong file.

    Top-level keys are for `analyze`; a table such as `[eval]` is for that command.
    """
    if file is not None:
        found = _parsed(file)
    elif (folder / "rca.toml").is_file():
        found = _parsed(folder / "rca.toml")
    elif (folder / "pyproject.toml").is_file():
        tool = _parsed(folder / "pyproject.toml").get("tool")
        found = tool.get("rca", {}) if isinstance(tool, dict) else {}
    else:
        found = {}
    tables = {key: value for key, value in found.items() if isinstance(value, dict)}
    plain = {key.replace("-", "_"): value for key, value in found.items() if not isinstance(value, dict)}
    plain = {{"format": "formats", "json": "as_json"}.get(key, key): value for key, value in plain.items()}
    shared = {key: value for key, value in plain.items() if key in {"rules", "disable"}}
    return {"analyze": plain, "explain": shared, "eval": shared} | tables


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file}: cannot be used as configuration: {error}") from error
