"""The tables of all sources on their way to one: joined as they come, settings that every rank repeats kept once."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rca.ingest.interface import Source

_TOGETHER = 128
"""Small tables joined at once: a table of few rows takes some ten thousand bytes whatever it holds."""
_SETTINGS = pa.array(["config", "package"])
_REMEMBERED, _LONGEST = 100_000, 256
"""Settings that are remembered, and characters of their values; a run prints a few thousand short ones."""


class Gathered:
    """Collects the event tables of sources."""

    def __init__(self) -> None:
        self._joined: list[pa.Table] = []
        self._waiting: list[pa.Table] = []
        self._known: set[tuple[str, str]] = set()

    def add(self, source: Source, table: pa.Table) -> None:
        """Add one source; of one of many, settings that an earlier source printed alike are left out."""
        if not table.num_rows:
            return
        self._waiting.append(self._own(source, table))
        if len(self._waiting) >= _TOGETHER:
            self._join()

    def tables(self) -> Sequence[pa.Table]:
        """Return everything that was added, in order."""
        self._join()
        return tuple(self._joined)

    def _join(self) -> None:
        if self._waiting:
            self._joined.append(pa.concat_tables(self._waiting).unify_dictionaries().combine_chunks())
            self._waiting.clear()

    def _own(self, source: Source, table: pa.Table) -> pa.Table:
        rows = pc.is_in(table["kind"].cast(pa.string()), value_set=_SETTINGS)
        if not pc.any(rows).as_py():
            return table
        settings = table.filter(rows)
        names, texts = (settings[column].cast(pa.string()).to_pylist() for column in ("name", "text"))
        new = []
        for place, name, text in zip(pc.indices_nonzero(rows).to_pylist(), names, texts, strict=True):
            setting = (name, text or "")
            if setting not in self._known:
                new.append(place)
                if len(setting[1]) <= _LONGEST and len(self._known) < _REMEMBERED:
                    self._known.add(setting)
        if not source.one_of_many:
            return table
        kept = pc.invert(rows).to_numpy(zero_copy_only=False).copy()
        kept[new] = True
        return table.filter(pa.array(kept))
