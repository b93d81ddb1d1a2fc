"""The order of events: by their times, and by their places where there are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rca.rotation import parts_of

if TYPE_CHECKING:
    import numpy.typing as npt


def chronological(table: pa.Table) -> npt.NDArray[np.int64]:
    """Return the row order by (time, source, place); rows without a time inherit the last time seen in their source."""
    count = table.num_rows
    if count == 0:
        return np.arange(0, dtype=np.int64)
    never = np.iinfo(np.int64).min
    time = table["time"].cast(pa.int64()).fill_null(never).to_numpy().copy()
    names = table["source"].cast(pa.string()).combine_chunks().dictionary_encode()
    labels = names.dictionary.to_pylist() if hasattr(names, "dictionary") else names.chunk(0).dictionary.to_pylist()
    codes = (names.indices if hasattr(names, "indices") else names.chunk(0).indices).to_numpy(zero_copy_only=False)
    alphabetical = np.argsort(np.asarray(sorted(range(len(labels)), key=_order_of(labels)), dtype=np.int64))
    source = alphabetical[codes]
    line = table["line"].fill_null(0).to_numpy()
    order = np.lexsort((np.arange(count), line, source))
    known = time[order] != never
    same = source[order]
    last = np.maximum.accumulate(np.where(known, np.arange(count), -1))
    valid = (last >= 0) & (same[np.maximum(last, 0)] == same)
    time[order] = np.where(valid, time[order][np.maximum(last, 0)], never)
    return np.lexsort((np.arange(count), line, source, time)).astype(np.int64)


def _order_of(labels: Sequence[str]) -> Callable[[int], tuple[str, tuple[int, int, str]]]:
    """Return the sort key of sources: their paths, and the parts of a rotated log oldest first."""
    parts = parts_of(labels)
    keys = [(part.log, part.order) if (part := parts.get(label)) else (label, (0, 0, "")) for label in labels]
    return lambda index: keys[index]
