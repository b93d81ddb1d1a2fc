"""Metric rows of one source in plain columns: eight bytes a cell."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rca.events import EventBuilder

_MOST = 5_000_000
"""Points kept of one source: about a week of one line a second with eight values each."""
_NONE = -(2**63)

Kind = tuple[str, str | None, str | None, int | None]
"""Name, unit, phase and rank of a point."""


class Place(Protocol):
    """Where and when the points of one line were printed."""

    @property
    def line(self) -> int:
        """1-based."""

    @property
    def offset(self) -> int:
        """Byte offset in the source."""

    @property
    def time(self) -> int | None:
        """Microseconds since the epoch, UTC."""


class MetricColumns:
    """Collects points cheaply and hands them to the event table at once."""

    def __init__(self) -> None:
        self._kinds: dict[Kind, int] = {}
        self._names: set[str] = set()
        self._codes = array("i")
        self._values = array("d")
        self._places = array("i")
        self._place: Place | None = None
        self._lines = array("q")
        self._offsets = array("q")
        self._times = array("q")
        self._steps = array("q")
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._codes)

    def add(self, kind: Kind, value: float, place: Place, step: int | None) -> None:
        """Add one point."""
        if len(self._codes) >= _MOST:
            self.dropped += 1
            return
        code = self._kinds.get(kind)
        if code is None:
            code = self._kinds[kind] = len(self._kinds)
            self._names.add(kind[0])
        if place is not self._place:
            self._place = place
            self._lines.append(place.line)
            self._offsets.append(place.offset)
            self._times.append(_NONE if place.time is None else place.time)
        self._codes.append(code)
        self._values.append(value)
        self._places.append(len(self._lines) - 1)
        self._steps.append(_NONE if step is None or abs(step) >= -_NONE else step)

    def extend(
        self,
        kinds: Sequence[Kind],
        values: npt.NDArray[np.float64],
        *,
        lines: Sequence[int],
        offsets: Sequence[int],
        times: Sequence[int | None],
        steps: Sequence[int | None],
    ) -> None:
        """Add the points of many lines: `values` has a row a line and a column a kind."""
        if not kinds:
            return
        room = max(0, (_MOST - len(self._codes)) // len(kinds))
        self.dropped += (len(lines) - min(room, len(lines))) * len(kinds)
        count = min(room, len(lines))
        if not count:
            return
        codes = [self._kinds.setdefault(kind, len(self._kinds)) for kind in kinds]
        self._names.update(kind[0] for kind in kinds)
        first = len(self._lines)
        self._lines.extend(lines[:count])
        self._offsets.extend(offsets[:count])
        self._times.extend(_NONE if time is None else time for time in times[:count])
        self._codes.extend(codes * count)
        self._values.frombytes(np.ascontiguousarray(values[:count]).tobytes())
        self._places.frombytes(np.repeat(np.arange(first, first + count, dtype=np.int32), len(kinds)).tobytes())
        kept = [_NONE if step is None or abs(step) >= -_NONE else step for step in steps[:count]]
        self._steps.frombytes(np.repeat(np.array(kept, dtype=np.int64), len(kinds)).tobytes())

    def has(self, name: str) -> bool:
        """Whether a metric of that name was added."""
        return name in self._names

    def steps(self, rows: list[int]) -> list[int | None]:
        """Return the steps that rows have so far."""
        return [None if self._steps[row] == _NONE else self._steps[row] for row in rows]

    def set_step(self, row: int, step: int) -> None:
        """Give a row the step that became known only later."""
        self._steps[row] = step

    def flush(self, out: EventBuilder, *, rank: int | None) -> None:
        """Hand all points over; points without a rank of their own take `rank`."""
        count = len(self._codes)
        if not count:
            return
        codes = np.frombuffer(self._codes, dtype=np.int32)
        places = np.frombuffer(self._places, dtype=np.int32)
        kinds = list(self._kinds)
        names, units, phases = (np.array([kind[part] for kind in kinds], dtype=object)[codes] for part in range(3))
        ranks = np.array([rank if kind[3] is None else kind[3] for kind in kinds], dtype=object)[codes]
        out.extend(
            count,
            kind="metric",
            name=names,
            value=np.frombuffer(self._values, dtype=np.float64),
            line=np.frombuffer(self._lines, dtype=np.int64)[places],
            offset=np.frombuffer(self._offsets, dtype=np.int64)[places],
            time=_nullable(np.frombuffer(self._times, dtype=np.int64)[places]),
            step=_nullable(np.frombuffer(self._steps, dtype=np.int64)),
            rank=ranks,
            unit=units,
            phase=phases,
        )


def _nullable(values: npt.NDArray[np.int64]) -> object:
    import pyarrow as pa

    return pa.array(values, mask=values == _NONE)
