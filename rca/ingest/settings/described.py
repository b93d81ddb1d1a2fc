"""Parameters of a model and columns of a data set, as tables and logs describe them: one row of statistics each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rca.events import EventBuilder
from rca.ingest.tables.cells import number
from rca.ingest.tables.metric_table import STEP_COLUMNS

MAX_ROWS = 20_000
"""Rows described of one file; of more, every n-th step is kept."""
PARAMETER = re.compile(r"(?:[A-Za-z_]\w{0,80}|\d{1,4}(?=\.[A-Za-z_]))(?:\.\w{1,80}){1,24}")
"""A dotted name, as `named_parameters` gives it."""
_TENSOR = re.compile(
    r"(?:^|\.)(?:weight|bias|kernel|gamma|beta|lora_\w+|w\d?|b\d?|scale|embedding\w*)(?:\.|$)|\.\d+\.|_proj\b"
)
_STATISTICS: Mapping[str, str] = {
    alias: name
    for name, aliases in {
        "norm": "norm weight_norm param_norm l2 l2_norm l2norm w_norm",
        "grad_norm": "grad_norm gradnorm grad_l2 gradient_norm grad",
        "grad_absmax": "grad_absmax grad_abs_max grad_max max_grad grad_amax",
        "std": "std stddev stdev sigma weight_std",
        "mean": "mean avg average weight_mean",
        "absmax": "absmax abs_max max_abs amax",
        "min": "min minimum",
        "max": "max maximum",
        "shape": "shape size",
        "trainable": "requires_grad trainable grad_enabled",
        "missing": "nan n_nan nans num_nan nan_count missing n_missing null nulls n_null null_count nan_share",
        "unique": "unique n_unique nunique n_unique_non_null distinct n_distinct num_unique",
    }.items()
    for alias in aliases.split()
}
_NAMES_OF_PARAMETERS = ("param", "parameter", "name", "layer", "module", "tensor", "weight", "key")
_NAMES_OF_COLUMNS = ("column", "feature", "col", "variable", "field")
_NAMED = 0.8
"""Share of the rows that must carry a dotted name for a table to describe parameters."""
_FEWEST = 3
_GRADIENT_FILE = re.compile(r"grad|gnorm", re.I)
_NORM_FILE = re.compile(r"(?:weight|param)\w{0,12}norm|norms?\b", re.I)


def statistic(raw: str) -> str | None:
    """Return the common name of a statistic, or None where the word is none."""
    return _STATISTICS.get(raw.strip().lower().replace(" ", "_"))


def is_parameter(name: str) -> bool:
    """Say whether a text reads like the name of a parameter or layer of a model."""
    return len(name) <= 300 and PARAMETER.fullmatch(name) is not None and _TENSOR.search(name) is not None


def cell(name: str, value: Any) -> Any:
    """Return a statistic as it is kept: truth values and shapes as such, the rest as numbers."""
    text = str(value).strip()
    if name == "trainable":
        return text.lower() in {"true", "1", "yes", "1.0"}
    return text[:40] if name == "shape" else number(text)


def add_described(out: EventBuilder, columns: Mapping[str, Sequence[Any]], *, path: str) -> frozenset[str]:
    """Add one `model.parameter` or `data.column` artifact a row, where the table describes such things.

    Returns the columns that are no metrics of the run because they belong to the things described.
    """
    lower = {name.strip().lower(): name for name in reversed(list(columns))}
    statistics = {raw: found for raw in columns if (found := statistic(raw)) is not None}
    key = _names(columns, lower, _NAMES_OF_PARAMETERS, parameters=True)
    what = "model.parameter"
    if key is None:
        key, what = _names(columns, lower, _NAMES_OF_COLUMNS, parameters=False), "data.column"
    if key is None:
        return _wide(out, columns, lower, path)
    if not {"std", "norm", "grad_norm", "absmax", "grad_absmax", "mean"}.intersection(statistics.values()):
        return frozenset()
    steps = _steps(columns, lower)
    for row in _kept(len(columns[key]), steps):
        if not columns[key][row]:
            continue
        attrs = {"name": str(columns[key][row])[:200]}
        for raw, name in statistics.items():
            if (value := columns[raw][row]) is not None and (read := cell(name, value)) is not None:
                attrs[name] = read
        out.add(kind="artifact", name=what, line=row + 2, step=steps[row] if steps else None, attrs=attrs)
    return frozenset({key, *statistics})


def _names(
    columns: Mapping[str, Sequence[Any]], lower: Mapping[str, str], known: Sequence[str], *, parameters: bool
) -> str | None:
    """Return the column that names what the rows describe."""
    for name in known:
        texts = [str(item) for item in columns[lower[name]][:200] if item] if name in lower else []
        if len(texts) >= _FEWEST and (
            not parameters or sum(is_parameter(text) for text in texts) >= _NAMED * len(texts)
        ):
            return lower[name]
    return None


def _wide(
    out: EventBuilder, columns: Mapping[str, Sequence[Any]], lower: Mapping[str, str], path: str
) -> frozenset[str]:
    """Read a table with one column a parameter and one row a step; the name of the file says what is measured."""
    named = [name for name in columns if is_parameter(name)]
    file = path.rsplit("/", 1)[-1]
    measured = "grad_norm" if _GRADIENT_FILE.search(file) else "norm" if _NORM_FILE.search(file) else None
    steps = _steps(columns, lower)
    if measured is None or len(named) < _FEWEST or not steps:
        return frozenset()
    flag = next((raw for raw in columns if statistic(raw) == "trainable"), None)
    for row in _kept(len(steps), steps, width=len(named)):
        for name in named:
            value = number(columns[name][row])
            if value is not None:
                attrs = {"name": name, measured: value}
                if flag is not None and columns[flag][row] is not None:
                    attrs["trainable"] = cell("trainable", columns[flag][row])
                out.add(kind="artifact", name="model.parameter", line=row + 2, step=steps[row], attrs=attrs)
    return frozenset(named)


def _steps(columns: Mapping[str, Sequence[Any]], lower: Mapping[str, str]) -> list[int | None]:
    name = next((lower[name] for name in STEP_COLUMNS if name in lower), None)
    if name is None:
        return []
    read = [number(item) for item in columns[name]]
    return [int(item) if item is not None and np.isfinite(item) and abs(item) < 2**31 else None for item in read]


def _kept(rows: int, steps: Sequence[int | None], *, width: int = 1) -> list[int]:
    """Return the rows to keep: all, or those of evenly spaced steps and of the last one."""
    if rows * width <= MAX_ROWS:
        return list(range(rows))
    order = sorted({step for step in steps if step is not None})
    if not order:
        return list(range(MAX_ROWS // width))
    stride = -(-rows * width // MAX_ROWS)
    chosen = {*order[::stride], order[-1]}
    return [row for row in range(rows) if steps[row] in chosen]
