"""Values inside the protobuf messages of TensorBoard event files: tensors of all numeric types, and texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from rca.ingest.event_files.layout import BFLOAT16, TENSOR_TYPES

MAX_TEXTS = 16
"""Strings kept of one tensor of strings."""
_STRING, _BOOL, _HALF = 7, 10, 19
NUMERIC = {**TENSOR_TYPES, _BOOL: "?"}
"""DataType -> numpy type, of all tensors that hold numbers."""
_FIELDS = {1: "float_val", 2: "double_val", 9: "int64_val", 10: "bool_val", 22: "uint32_val", 23: "uint64_val"}
"""Where a tensor keeps its elements when not in `tensor_content`; the small integers share `int_val`."""


def scalar_of(tensor: Any) -> float | None:
    """Return the value of a TensorProto with exactly one number, or None for anything else."""
    code = tensor.dtype
    if code not in NUMERIC or any(dimension.size != 1 for dimension in tensor.tensor_shape.dim):
        return None
    kind = np.dtype(NUMERIC[code])
    if tensor.tensor_content:
        if len(tensor.tensor_content) != kind.itemsize:
            return None
        bits = np.frombuffer(tensor.tensor_content, kind)
    elif code in {_HALF, BFLOAT16}:
        if len(tensor.half_val) != 1:
            return None
        bits = np.array([tensor.half_val[0] & 0xFFFF], np.uint16)
        bits = bits.view(np.float16) if code == _HALF else bits
    else:
        listed = getattr(tensor, _FIELDS.get(code, "int_val"))
        return float(listed[0]) if len(listed) == 1 else None
    if code == BFLOAT16:
        bits = (bits.astype(np.uint32) << 16).view(np.float32)
    return float(bits[0])


def texts_of(tensor: Any) -> tuple[str, ...]:
    """Return the strings of a TensorProto of strings, at most `MAX_TEXTS`; none for other tensors."""
    if tensor.dtype != _STRING:
        return ()
    return tuple(item.decode("utf-8", "replace") for item in tensor.string_val[:MAX_TEXTS])
