"""Defaults of the command line from `rca.toml` or `[tool.rca]` in `pyproject.toml`; options and RCA_* win over them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rca.errors import UsageError

SHARED = frozenset(
    {"rules", "disable", "budget", "limit", "device", "data", "twin", "baseline", "redact", "cluster"}
    | {"quiet", "verbose", "color", "lang"}
)
"""Options that mean the same in every command that has them: one key, or one variable, sets them for all."""
_RELATIVE = ("rules", "baseline", "data", "twin")
"""Options whose relative paths start at the folder of the file."""
_ALIASES = {"disabled": "disable"}


@dataclass(frozen=True)
class Setting:
    """An option that a file may set."""

    name: str
    """As the command knows it; the key of the file is its flag without hyphens."""
    multiple: bool = False


Commands = Mapping[tuple[str, ...], Mapping[str, Setting]]
"""Words of a command behind `rca` -> key in a file -> setting."""


def defaults(commands: Commands, file: Path | None = None, *, folder: Path = Path()) -> dict[str, Any]:
    """Return option defaults by command, as click's `default_map` wants them.

    Top-level keys are for `analyze`, those of SHARED also for every other command with such an option; a table such
    as `[eval]` or `[rules.list]` is for that command and wins. Raises UsageError for a file that cannot be read, and
    for keys that no option reads, with the nearest that one does.
    """
    file = file or next((item for item in (folder / "rca.toml", folder / "pyproject.toml") if item.is_file()), None)
    if file is None:
        return {}
    found = _parsed(file)
    if file.name == "pyproject.toml":
        tool = found.get("tool")
        found = tool.get("rca", {}) if isinstance(tool, dict) else {}
        found = found if isinstance(found, dict) else {}
    reading = _Reading(commands, file)
    result = reading.read(found)
    if reading.wrong:
        raise UsageError(f"{file}: {'; '.join(reading.wrong)}")
    return result


class _Reading:
    """One file while its keys are given to the commands that read them."""

    def __init__(self, commands: Commands, file: Path) -> None:
        self.commands = commands
        self.file = file
        self.wrong: list[str] = []

    def read(self, found: Mapping[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        plain = {key: value for key, value in found.items() if not isinstance(value, dict)}
        tops = {
            key for path, known in self.commands.items() for key, setting in known.items() if _on_top(path, setting)
        }
        for key, value in plain.items():
            if self._spelled(key, tops) is None:
                self.wrong.append(f"no option is called {key!r}{_close(key, tops)}")
            for path, known in self.commands.items():
                name = self._spelled(key, known)
                if name is not None and _on_top(path, known[name]):
                    self._put(result, path, known[name], value, shared=True)
        for path, values in _tables(found):
            if path not in self.commands:
                names = [".".join(item) for item in self.commands]
                if not any(item[: len(path)] == path for item in self.commands):
                    name = ".".join(path)
                    self.wrong.append(f"there is no command for the table [{name}]{_close(name, names)}")
                elif values:
                    self.wrong.append(
                        f"`rca {' '.join(path)}` has no options of its own; write [{'.'.join(path)}.COMMAND]"
                    )
                continue
            for key, value in values.items():
                name = self._spelled(key, self.commands[path])
                if name is None:
                    hint = _close(key, self.commands[path])
                    self.wrong.append(f"`rca {' '.join(path)}` has no option {key!r}{hint}")
                else:
                    self._put(result, path, self.commands[path][name], value, shared=False)
        return result

    @staticmethod
    def _spelled(key: str, known: Collection[str]) -> str | None:
        name = key.replace("_", "-")
        name = _ALIASES.get(name, name)
        return name if name in known else None

    def _put(
        self, result: dict[str, Any], path: tuple[str, ...], setting: Setting, value: Any, *, shared: bool
    ) -> None:
        values = [self._placed(setting.name, item) for item in (value if isinstance(value, list) else [value])]
        if not setting.multiple and isinstance(value, list) and not (shared and values):
            self.wrong.append(f"{setting.name!r} of `rca {' '.join(path)}` takes one value, not a list")
            return
        target = result
        for word in path:
            target = target.setdefault(word, {})
        target[setting.name] = values if setting.multiple else values[0]

    def _placed(self, name: str, value: Any) -> Any:
        if name in _RELATIVE and isinstance(value, str) and "://" not in value:
            return str(self.file.parent / value)
        return value


def _on_top(path: tuple[str, ...], setting: Setting) -> bool:
    return path == ("analyze",) or setting.name in SHARED


def _tables(found: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield every table with its own keys, outer ones first."""
    for name, value in found.items():
        if isinstance(value, dict):
            inside = (*path, name)
            yield inside, {key: item for key, item in value.items() if not isinstance(item, dict)}
            yield from _tables(value, inside)


def _close(name: str, known: Collection[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _parsed(file: Path) -> dict[str, Any]:
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file}: cannot be used as configuration: {error}") from error
