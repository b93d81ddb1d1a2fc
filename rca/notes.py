"""Warnings and timings that gather on the way; the one place that catches whatever a plug-in raises."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from rca.errors import UsageError

_T = TypeVar("_T")


@dataclass
class Notes:
    """Warnings and timings that gather on the way."""

    strict: bool
    warnings: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Measure the seconds of a stage."""
        start = time.perf_counter()
        yield
        self.timings[stage] = round(time.perf_counter() - start, 4)

    def guarded(self, what: str, call: Callable[[], _T], otherwise: _T) -> _T:
        """Call a plug-in; whatever it raises becomes a warning, so that the rest of the analysis goes on."""
        try:
            return call()
        except UsageError:
            raise
        except Exception as error:
            if self.strict:
                raise
            self.warnings.append(f"{what} failed and was left out: {type(error).__name__}: {error}")
            return otherwise
