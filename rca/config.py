"""Defaults of the command line from `rca.toml` or `[tool.rca]` in `pyproject.toml`; options and RCA_* win over them."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from rca.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


_SPELLED = {"format": "formats", "json": "as_json", "disabled": "disable"}
"""Key of the file -> name of the option, where the two differ."""
_OF_EXPERIMENTS = ("budget", "limit", "device", "data", "twin", "baseline", "redact", "quiet", "color")
_OF_RULES = ("list", "show", "check", "test", "reference")


def defaults(file: Path | None = None, *, folder: Path = Path()) -> dict[str, Any]:
    """Return option defaults by command, as click's `default_map` wants them. Raises UsageError for a wrong file.

    Top-level keys are for `analyze`, `rules` and `disabled` among them for all commands that read rules; a table such
    as `[eval]` is for that command; what says how experiments are done holds for `experiment` as well. Rule folders,
    the baseline, `data` and `twin` are relative to the file.
    """
    file = file or next((item for item in (folder / "rca.toml", folder / "pyproject.toml") if item.is_file()), None)
    found = {} if file is None else _parsed(file)
    if file is not None and file.name == "pyproject.toml":
        tool = found.get("tool")
        found = tool.get("rca", {}) if isinstance(tool, dict) else {}
    tables = {key: value for key, value in found.items() if isinstance(value, dict)}
    plain = {key.replace("-", "_"): value for key, value in found.items() if not isinstance(value, dict)}
    plain = {_SPELLED.get(key, key): value for key, value in plain.items()}
    if file is not None and "rules" in plain:
        plain["rules"] = [str(file.parent / item) for item in _listed(plain["rules"])]
    for name in ("baseline", "data", "twin"):
        if file is not None and isinstance(plain.get(name), str) and "://" not in plain[name]:
            plain[name] = str(file.parent / plain[name])
    of_experiments = {key: value for key, value in plain.items() if key in _OF_EXPERIMENTS}
    shared = {key: value for key, value in plain.items() if key in {"rules", "disable"}}
    rules = dict.fromkeys(_OF_RULES, shared)
    if plain.get("rules"):
        rules["new"] = {"folder": plain["rules"][0]}
    commands = {"analyze": plain, "experiment": shared | of_experiments, "explain": shared, "eval": shared}
    return commands | {"rules": rules} | tables


def unknown_keys(found: Mapping[str, Any], commands: Mapping[str, Collection[str]]) -> list[str]:
    """Return a sentence for every key that no option reads. `commands` are the commands with their option names."""
    sentences = []
    for command, values in found.items():
        if command not in commands:
            sentences.append(f"there is no command for the table [{command}]{_close(command, commands)}")
        for key in values if command in commands else ():
            name = _SPELLED.get(key, key.replace("-", "_"))
            if name not in commands[command] and name not in {"rules", "disable"}:
                sentences.append(f"`rca {command}` has no option {key!r}{_close(key, commands[command])}")
    return sentences


def _close(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file}: cannot be used as configuration: {error}") from error
