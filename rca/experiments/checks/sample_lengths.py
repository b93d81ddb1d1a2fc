"""How long the samples of a file are, column by column: whether they stack as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rca.experiments.checks.sample_formats import Samples


def spread(tables: Sequence[Samples]) -> Mapping[str, tuple[int, float, int, int]]:
    """Return, by file and column, (shortest, median, longest, samples) of values that are sequences of numbers."""
    found: dict[str, tuple[int, float, int, int]] = {}
    for table in tables:
        for name, column in table.columns.items():
            if isinstance(column, np.ndarray):
                if column.ndim > 1:
                    found[f"{table.file}: {name}"] = (
                        column.shape[1],
                        float(column.shape[1]),
                        column.shape[1],
                        len(column),
                    )
                continue
            sizes = [len(item) for item in column if isinstance(item, (list, tuple)) and not _holds_records(item)]
            if sizes and len(sizes) * 2 > len(column):
                found[f"{table.file}: {name}"] = (min(sizes), float(np.median(sizes)), max(sizes), len(sizes))
    return found


def _holds_records(item: Sequence[Any]) -> bool:
    return bool(item) and isinstance(item[0], (dict, str))
