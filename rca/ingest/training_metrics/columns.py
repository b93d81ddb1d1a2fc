"""Metric rows of one source, collected in plain columns."""

from __future__ import annotations

import numpy as np

from rca.events import EventBuilder

_MOST = 5_000_000
"""Points kept of one source: about a week of one line a second with eight values each."""


class MetricColumns:
    """Collects points cheaply and hands them to the event table at once."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._values: list[float] = []
        self._lines: list[int] = []
        self._offsets: list[int] = []
        self._times: list[int | None] = []
        self._steps: list[int | None] = []
        self._ranks: list[int | None] = []
        self._units: list[str | None] = []
        self._phases: list[str | None] = []
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._names)

    def add(
        self,
        name: str,
        value: float,
        *,
        line: int,
        offset: int,
        time: int | None,
        step: int | None,
        rank: int | None,
        unit: str | None,
        phase: str | None,
    ) -> None:
        """Add one point."""
        if len(self._names) >= _MOST:
            self.dropped += 1
            return
        self._names.append(name)
        self._values.append(value)
        self._lines.append(line)
        self._offsets.append(offset)
        self._times.append(time)
        self._steps.append(step)
        self._ranks.append(rank)
        self._units.append(unit)
        self._phases.append(phase)

    def set_steps(self, rows: list[int], steps: list[int | None]) -> None:
        """Give rows the steps that became known only later."""
        for row, step in zip(rows, steps, strict=True):
            self._steps[row] = step

    def flush(self, out: EventBuilder, *, rank: int | None) -> None:
        """Hand all points over; points without a rank of their own take `rank`."""
        if not self._names:
            return
        out.extend(
            len(self._names),
            kind="metric",
            name=self._names,
            value=np.asarray(self._values, dtype=np.float64),
            line=self._lines,
            offset=self._offsets,
            time=self._times,
            step=self._steps,
            rank=[rank if item is None else item for item in self._ranks],
            unit=self._units,
            phase=self._phases,
        )
