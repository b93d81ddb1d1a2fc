"""What a report format is."""

from __future__ import annotations

from typing import Protocol

from rca.diagnosis import Diagnosis


class Renderer(Protocol):
    """One output format."""

    name: str
    """As given to `--format`."""
    suffix: str
    """File name ending, with the dot."""

    def render(self, diagnosis: Diagnosis) -> str:
        """Return the whole document."""
