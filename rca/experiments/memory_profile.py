"""What only the memory experiments need to know of the run."""

from __future__ import annotations

from typing import Any, Protocol


class Reader(Protocol):
    """The part of the profile's reader that is needed here."""

    def fact_bytes(self, name: str) -> int | None:
        """Value of a fact in GiB as bytes."""


def of_memory(read: Reader) -> dict[str, Any]:
    """Return the fields of the profile that only memory experiments need."""
    return {
        "reserved_unallocated_bytes": read.fact_bytes("oom.reserved_unallocated_gib"),
        "others_bytes": read.fact_bytes("oom.others_gib"),
    }
