"""Every text of a diagnosis, wherever it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rca.diagnosis import Diagnosis

_CODED = frozenset(
    {
        "schema_version",
        "rca_version",
        "generated",
        "id",
        "evidence",
        "cause",
        "status",
        "kind",
        "role",
        "severity",
        "group",
    }
    | {"mode", "domain", "verdict", "explained_by", "signs"}
)
"""Fields that hold ids, times and words of a fixed vocabulary, never text of the run."""


def map_text(diagnosis: Diagnosis, change: Callable[[str], str]) -> Diagnosis:
    """The diagnosis with `change` applied to every text in it, except ids and words of a fixed vocabulary."""
    return diagnosis.model_validate(_mapped(diagnosis.model_dump(), change))


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {
            key: item if key in _CODED and isinstance(item, (str, tuple)) else _mapped(item, change)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return tuple(_mapped(item, change) for item in value)
    return value
