"""Arrow arrays from plain values.

`pyarrow.array` imports pandas at its first call to look for pandas objects, which costs an analysis of a small run a
quarter of its time. These build the same arrays from the buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa


def array(values: Any, kind: pa.DataType, *, nan_is_null: bool = False) -> pa.Array:
    """Return an Arrow array of `kind` (integer, floating, timestamp, string or dictionary of strings).

    `values` is a sequence with None for null, a numpy array or an Arrow array. Integers that do not fit are null.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values if values.type == kind else values.cast(kind)
    if pa.types.is_dictionary(kind):
        return _categories(values, kind)
    if pa.types.is_string(kind):
        return _strings(values)
    numbers = values if isinstance(values, np.ndarray) and values.dtype != object else None
    return _numbers(_from_list(values, kind) if numbers is None else _from_numpy(numbers, nan_is_null), kind)


def _categories(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    codes: dict[str, int] = {}
    places = [None if value is None else codes.setdefault(str(value), len(codes)) for value in _listed(values)]
    indices = array(places, kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, _strings(list(codes)))


def _strings(values: Sequence[Any]) -> pa.Array:
    builder = pa.lib.StringBuilder()
    builder.append_values([None if value is None else str(value) for value in _listed(values)])
    return builder.finish()


def _listed(values: Any) -> Sequence[Any]:
    listed: Sequence[Any] = values.tolist() if isinstance(values, np.ndarray) else values
    return listed


def _from_list(values: Sequence[Any], kind: pa.DataType) -> tuple[np.ndarray, np.ndarray]:
    """Values and a mask of those that are known."""
    if pa.types.is_floating(kind):
        known = np.fromiter((value is not None for value in values), dtype=bool, count=len(values))
        return np.array([0.0 if value is None else value for value in values], dtype=np.float64), known
    limit = 2 ** (kind.bit_width - 1)
    fits = [value is not None and -limit <= value < limit for value in values]
    whole = [int(value) if good else 0 for value, good in zip(values, fits, strict=True)]
    return np.array(whole, dtype=np.int64), np.array(fits, dtype=bool)


def _from_numpy(values: np.ndarray, nan_is_null: bool) -> tuple[np.ndarray, np.ndarray]:
    if values.dtype.kind == "f" and nan_is_null:
        known = np.isfinite(values)
        return np.where(known, values, 0.0), known
    if values.dtype.kind == "M":
        known = ~np.isnat(values)
        return values.astype("datetime64[us]").astype(np.int64), known
    return values, np.ones(len(values), dtype=bool)


def _numbers(found: tuple[np.ndarray, np.ndarray], kind: pa.DataType) -> pa.Array:
    values, known = found
    storage = np.float64 if pa.types.is_floating(kind) else np.dtype(f"i{kind.bit_width // 8}")
    validity = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values, dtype=storage))
    return pa.Array.from_buffers(kind, len(values), [validity, data])
