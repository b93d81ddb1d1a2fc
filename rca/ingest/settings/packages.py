"""Installed and required packages: pip freeze, pip list, requirements, conda lists and environments, lock files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import re2

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.tables.structured import MAX_SETTINGS_FILE, decode, plain_name, read_whole

MAX_PACKAGES = 5000
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_VERSION = r"[0-9][A-Za-z0-9.!+_-]*"
_EXTRAS = r"(?:\[[^\]]*\])?"
_REMARK = r"(?:\s*[;#\\].*)?"
_PINNED = re2.compile(rf"({_NAME}){_EXTRAS}\s*={{2,3}}\s*({_VERSION}){_REMARK}")
_FROM_FILE = re2.compile(rf"({_NAME})\s+@\s+\S*?-([0-9][A-Za-z0-9.!+_]*)(?:-[\w.-]+)?\.(?:whl|tar\.gz|zip)\S*")
_REQUIRED = re2.compile(rf"({_NAME}){_EXTRAS}\s*((?:[<>=!~]=?=?\s*[0-9][\w.*+!-]*,?\s*)*){_REMARK}")
_COLUMNS = re2.compile(rf"({_NAME})\s+({_VERSION})(?:\s.*)?")
_CONDA_SPEC = re2.compile(rf"(?:{_NAME}::)?({_NAME})\s*={{1,2}}\s*([0-9][\w.!+-]*)(?:=[\w.]+)?")
_EXPORTED = re2.compile(rf"({_NAME})=([0-9][\w.!+-]*)=([\w.]+)")
_EXPLICIT = re2.compile(r"https?://\S+/([A-Za-z0-9_][\w.+-]*?)-([0-9][\w.!+]*)-([\w.]+?)\.(?:conda|tar\.bz2)(?:#\w+)?")
_CONDA_HEAD = ("# This file may be used to create an environment", "@EXPLICIT", "# packages in environment at")
_CONDA_NAMES = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch"}
_RECORD_KEYS = frozenset(
    {
        "name",
        "version",
        "location",
        "installer",
        "latest_version",
        "latest_filetype",
        "editable_project_location",
        "base_url",
        "build_number",
        "build_string",
        "channel",
        "dist_name",
        "platform",
    }
)
"""Keys of the entries of `pip list` and `conda list`."""
_LONGEST = 600


class Package(NamedTuple):
    """One package at one version."""

    name: str
    version: str


def package_name(raw: str) -> str:
    """Return the normal form of a package name: lower case, runs of `-_.` as one dash (PEP 503)."""
    return re.sub(r"[-_.]+", "-", raw.strip().lower())


def pinned(line: str) -> Package | None:
    """Read `name==version` (pip freeze) or `name @ file:///...-1.2.whl`, or None."""
    text = line.strip()[:_LONGEST]
    match = _PINNED.fullmatch(text) or _FROM_FILE.fullmatch(text)
    return None if match is None else Package(package_name(match[1]), match[2])


def add_package(
    out: EventBuilder, package: Package, *, line: int | None = None, offset: int | None = None, origin: str
) -> None:
    """Add one package event; `origin` says which kind of list named it."""
    out.add(
        kind="package",
        name=package.name,
        line=line,
        offset=offset,
        text=package.version,
        attrs={"origin": origin, "installed": origin not in {"requirements", "lock", "environment"}},
    )


class PackageListIngestor:
    """Reads package lists that are files of their own."""

    name = "packages"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take requirements and freeze files by name, and text in which most lines are `name==version`."""
        name = plain_name(source.path)
        if not name.endswith((".txt", ".lst", ".list", ".out", ".log", ".in")) and "." in name:
            return False
        lines = [line for line in decode(head).splitlines() if line.strip()][:40]
        if not lines or b"\0" in head:
            return False
        if _is_table(lines) or any(line.startswith(_CONDA_HEAD) for line in lines[:4]):
            return True
        if name.startswith("requirements") or name.endswith("requirements.txt"):
            return sum(_REQUIRED.fullmatch(line.strip()[:_LONGEST]) is not None for line in lines) * 2 >= len(lines)
        others = (line for line in lines if pinned(line) is None)
        return len(list(islice(others, len(lines) // 10 + 1))) * 10 <= len(lines)

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the list. Raises UnreadableSource where no line names a version."""
        data, _cut, notes = read_whole(source, context, MAX_SETTINGS_FILE)
        lines = decode(data).splitlines()
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        origin = "requirements" if plain_name(source.path).startswith("requirements") else "freeze"
        add_package_lines(out, lines, origin=origin)
        if not len(out):
            raise UnreadableSource(f"{source.path} names no package with a version.")
        return Ingested(out.build(), lines=len(lines), bytes=len(data), warnings=notes)


def add_package_lines(out: EventBuilder, lines: Sequence[str], *, origin: str) -> None:
    """Add every package of a list: pinned lines, the columns of `pip list` and `conda list`, open requirements."""
    columns = _is_table(lines) or any(line.startswith("# packages in environment at") for line in lines[:3])
    for place, raw in enumerate(lines[:MAX_PACKAGES], start=1):
        line = raw.strip()[:_LONGEST]
        if not line or line.startswith(("#", "-", "Package ")):
            continue
        match = _COLUMNS.fullmatch(line) if columns else None
        found = Package(_conda_name(package_name(match[1])), match[2]) if match else pinned(line) or _of_conda(line)
        if found is not None:
            add_package(out, found, line=place, origin="list" if match else origin)
        elif not columns and (wanted := _REQUIRED.fullmatch(line)) is not None:
            attrs = {"package": package_name(wanted[1]), "specifier": wanted[2].strip()}
            out.add(kind="artifact", name="package.requirement", line=place, text=line, attrs=attrs)


def _is_table(lines: Sequence[str]) -> bool:
    """Say whether the first lines are the head of `pip list`."""
    head = [line.split() for line in lines[:4]]
    return any(words[:2] == ["Package", "Version"] for words in head)


def _of_conda(line: str) -> Package | None:
    """Read `name=version=build` (conda list --export) or the address of a package (conda list --explicit)."""
    match = _EXPORTED.fullmatch(line) or _EXPLICIT.fullmatch(line)
    return None if match is None else Package(_conda_name(package_name(match[1])), match[2])


def is_package_list(document: Any) -> bool:
    """Say whether a document is what `pip list --format json` or `conda list --json` print."""
    return (
        isinstance(document, list)
        and bool(document)
        and all(
            isinstance(item, dict) and isinstance(item.get("name"), str) and isinstance(item.get("version"), str)
            for item in document[:MAX_PACKAGES]
        )
        and all(item.keys() <= _RECORD_KEYS for item in document[:50])
    )


def add_package_records(out: EventBuilder, document: Sequence[Mapping[str, Any]]) -> None:
    """Add the packages of such a document."""
    for item in document[:MAX_PACKAGES]:
        add_package(out, Package(_conda_name(package_name(item["name"])), item["version"][:100]), origin="list")


def _conda_name(name: str) -> str:
    """Return the name that pip gives to what conda calls otherwise."""
    return _CONDA_NAMES.get(name, name)


def is_environment(document: Any) -> bool:
    """Say whether a YAML document is a conda environment."""
    return isinstance(document, dict) and isinstance(document.get("dependencies"), list)


def add_environment(out: EventBuilder, document: Mapping[str, Any]) -> None:
    """Add the packages of a conda environment, those of its pip section included."""
    for item in document["dependencies"][:MAX_PACKAGES]:
        if isinstance(item, dict):
            for line in item.get("pip") or []:
                if isinstance(line, str) and (found := pinned(line)) is not None:
                    add_package(out, found, origin="environment")
        elif isinstance(item, str) and (match := _CONDA_SPEC.fullmatch(item.strip()[:200])) is not None:
            add_package(out, Package(_conda_name(package_name(match[1])), match[2]), origin="environment")


def is_lock(document: Any) -> bool:
    """Say whether a TOML document is a poetry or uv lock file."""
    packages = document.get("package") if isinstance(document, dict) else None
    return isinstance(packages, list) and bool(packages) and all(isinstance(item, dict) for item in packages)


def add_lock(out: EventBuilder, document: Mapping[str, Any]) -> None:
    """Add the packages of a lock file."""
    for item in document["package"][:MAX_PACKAGES]:
        if isinstance(item.get("name"), str) and isinstance(item.get("version"), str):
            add_package(out, Package(package_name(item["name"]), item["version"]), origin="lock")
