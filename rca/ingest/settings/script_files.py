"""Launch scripts and configuration modules, read as text and never run: flags, directives, exports, assignments."""

from __future__ import annotations

import ast
from typing import Any

import re2

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.machine.containers import add_container
from rca.ingest.settings.config_rows import add_settings
from rca.ingest.settings.script_calls import add_calls
from rca.ingest.settings.script_transforms import add_transforms
from rca.ingest.tables.cells import size_in_bytes
from rca.ingest.tables.structured import MAX_SETTINGS_FILE, decode, plain_name, read_whole

_SHELL = (".sh", ".bash", ".sbatch", ".slurm", ".pbs", ".env", ".envrc", "dockerfile", "makefile")
_DIRECTIVE = re2.compile(r"#(?:SBATCH|PBS|BSUB|\$)\s+--?([A-Za-z][\w-]*)(?:[= ]\s*(\S+))?.*")
_EXPORT = re2.compile(r"(?:export\s+|ENV\s+)?([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|[^\s;&|]*)")
_FLAG = re2.compile(r"--?([A-Za-z][\w.-]*)")
_OVERRIDE = re2.compile(r"\+{0,2}([a-z_]\w*(?:[./]\w+)+)=(\S+)")
_ASSIGNED = re2.compile(r"([A-Za-z_][\w.]*)\s*(?::\s*[A-Za-z_][\w.\[\], |]*)?=\s*([^=#][^#]*)(?:#.*)?")
_RUN = re2.compile(r"\b(?:docker|podman|nerdctl) run\b")
_LIMITS = {"shm_bytes": "shm_size", "memory_limit_bytes": "memory"}
_LONGEST = 4000
_DIRECTIVE_NAMES = {"time": "slurm.time", "mem": "slurm.mem", "nodes": "slurm.nodes", "gres": "slurm.gres"}


class ScriptIngestor:
    """Reads scripts into configuration events."""

    name = "script"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take shell scripts by name or first line, environment files, and Python modules."""
        name = plain_name(source.path)
        return b"\0" not in head and (
            name.endswith((*_SHELL, ".py")) or head.startswith((b"#!/bin/bash", b"#!/bin/sh", b"#!/usr/bin/env bash"))
        )

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read what the script sets; nothing of it is run and no variable is expanded."""
        data, _cut, notes = read_whole(source, context, MAX_SETTINGS_FILE)
        lines = decode(data).splitlines()
        out = EventBuilder(source.path)
        if plain_name(source.path).endswith(".py"):
            _add_assignments(out, lines)
            add_calls(out, "\n".join(lines))
            add_transforms(out, "\n".join(lines))
        else:
            _add_shell(out, lines)
        if not len(out):
            raise UnreadableSource(f"{source.path} is a script that sets nothing by literal values.")
        return Ingested(out.build(), lines=len(lines), bytes=len(data), warnings=notes)


def _add_shell(out: EventBuilder, lines: list[str]) -> None:
    for place, raw in enumerate(lines, start=1):
        line = raw.strip()[:_LONGEST]
        if (match := _DIRECTIVE.fullmatch(line)) is not None:
            key = _DIRECTIVE_NAMES.get(match[1], f"slurm.{match[1]}")
            add_settings(out, {key: match[2] or True}, role="scheduler", line=place)
        elif not line.startswith("#"):
            _add_exports(out, line, place)
            add_settings(out, command_settings(line), role="command", line=place)
    _add_started_container(out, lines)


def _add_started_container(out: EventBuilder, lines: list[str]) -> None:
    """Add the container that a `docker run` starts, with the limits that its flags give."""
    commands = " ".join(line.strip().rstrip("\\") for line in lines if not line.lstrip().startswith("#"))[:_LONGEST]
    if _RUN.search(commands) is None:
        return
    flags = command_settings(commands)
    sizes = {key: size_in_bytes(str(flags[name])) for key, name in _LIMITS.items() if name in flags}
    found = {"container": flags.get("name"), "ipc": flags.get("ipc"), **sizes}
    if any(value is not None for value in found.values()):
        place = next((number for number, line in enumerate(lines, start=1) if _RUN.search(line)), None)
        add_container(out, found, line=place)


def _add_exports(out: EventBuilder, line: str, place: int) -> None:
    """Add the variables that a line sets before its command, where their values are written out."""
    while (match := _EXPORT.match(line)) is not None:
        if match[2] and not any(mark in match[2] for mark in "$`("):
            add_settings(out, {match[1]: match[2].strip("\"'")}, role="environment", line=place)
        line = line[match.end() :].lstrip()


def command_settings(line: str) -> dict[str, Any]:
    """Return the settings of one command line: `--flag value`, `--flag=value`, bare switches, hydra overrides.

    A value that needs the shell (a variable, a substitution) is not known and left out.
    """
    found: dict[str, Any] = {}
    words = line.rstrip("\\").split()
    for place, word in enumerate(words):
        flag, has_value, value = word.partition("=")
        if (match := _FLAG.fullmatch(flag)) is not None and word.startswith("--"):
            following = words[place + 1] if place + 1 < len(words) else ""
            if not has_value and following and not following.startswith("-") and not _OVERRIDE.fullmatch(following):
                has_value, value = "=", following
            if "$" not in value and "`" not in value:
                found[match[1].replace("-", "_")] = value.strip("\"'") if has_value else True
        elif (match := _OVERRIDE.fullmatch(word)) is not None and "$" not in match[2]:
            found[match[1]] = match[2].strip("\"'")
    return found


def _add_assignments(out: EventBuilder, lines: list[str]) -> None:
    """Add `name = literal` lines at the top level of a Python module."""
    for place, line in enumerate(lines, start=1):
        match = _ASSIGNED.fullmatch(line[:_LONGEST].rstrip()) if line[:1].isalpha() else None
        if match is not None and (value := _literal(match[2].strip())) is not None:
            add_settings(out, {match[1]: value}, role="script", line=place)


def _literal(text: str) -> Any:
    """Return a number, text, bool or flat list that Python source spells out; None for anything else."""
    if len(text) > 400 or text.count("(") + text.count("[") + text.count("{") > 8:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
