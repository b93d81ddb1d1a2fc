"""Saved reports of older schema versions: one step a version, each to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rca.diagnosis import SCHEMA_VERSION

Document = dict[str, Any]


def _to_1_1(document: Document) -> Document:
    """1.0 has no comparison with a healthy run, odd lines, tables, scripts or planted faults: they are absent."""
    return {**document, "schema_version": "1.1"}


STEPS: Mapping[str, Callable[[Document], Document]] = {"1.0": _to_1_1}
"""Version -> the step to the one after it."""


def migrated(document: Document) -> Document:
    """Return a document as the present version has it. Raises ValueError with a sentence for what cannot be read."""
    version = str(document.get("schema_version", ""))
    seen = set()
    while version in STEPS and version not in seen:
        seen.add(version)
        document = STEPS[version](document)
        version = str(document["schema_version"])
    if version == SCHEMA_VERSION:
        return document
    if _numbers(version) > _numbers(SCHEMA_VERSION):
        raise ValueError(f"schema version {version}, newer than {SCHEMA_VERSION} of this rca; update rca to read it")
    raise ValueError(f"schema version {version or 'missing'}, this rca reads {', '.join((*STEPS, SCHEMA_VERSION))}")


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() and len(part) < 9 for part in parts) else ()
