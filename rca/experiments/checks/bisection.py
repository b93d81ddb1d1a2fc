"""Which samples make a batch fail, found by halving; and a tiny twin whose loss tells whether a batch fails."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rca.experiments.checks.sample_formats import Samples
from rca.experiments.checks.sample_scan import IDS, IGNORED, LABELS, values_of

MOST_ROWS = 4096
"""Samples that are passed through the twin: about ten seconds."""
MOST_TOKENS = 512
MOST_FEATURES = 65_536


class Guilty(NamedTuple):
    """The samples that fail on their own, and what it took to find them."""

    rows: tuple[int, ...]
    batches: tuple[int, ...]
    """First rows of batches that fail although none of their samples does alone."""
    forwards: int


def bisect(rows: Sequence[int], fails: Callable[[Sequence[int]], bool], batch: int) -> Guilty:
    """Find the rows whose presence makes a batch fail: every batch once, then halves of those that fail."""
    guilty: list[int] = []
    together: list[int] = []
    forwards = 0

    def search(part: Sequence[int]) -> int:
        """Return how many guilty rows are in a part that fails."""
        nonlocal forwards
        if len(part) == 1:
            guilty.append(part[0])
            return 1
        found = 0
        for half in (part[: len(part) // 2], part[len(part) // 2 :]):
            forwards += 1
            if fails(half):
                found += search(half)
        return found

    for start in range(0, len(rows), batch):
        part = rows[start : start + batch]
        forwards += 1
        if fails(part) and search(part) == 0:
            together.append(part[0])
    return Guilty(tuple(guilty), tuple(together), forwards)


def through_twin(table: Samples, settings: Mapping[str, Any]) -> Guilty | None:
    """Find the samples of a table for which the loss of the twin is not finite; None for samples it cannot take.

    `settings`: `twin` (a TwinConfig), `precision` (of the run) and `batch` (of the run).
    """
    names = {name.lower(): name for name in table.columns}
    ids = next((names[name] for name in ("input_ids", *sorted(IDS)) if name in names), None)
    labels = next((names[name] for name in sorted(LABELS) if name in names), None)
    rows = list(range(min(table.rows, MOST_ROWS)))
    if not rows:
        return None
    loss = _token_loss(table, ids, labels, settings) if ids is not None else _dense_loss(table, labels, settings)
    if loss is None:
        return None
    return bisect(rows, lambda part: not math.isfinite(loss(part)), max(1, int(settings["batch"])))


def _token_loss(
    table: Samples, ids: str, labels: str | None, settings: Mapping[str, Any]
) -> Callable[[Sequence[int]], float] | None:
    import torch

    from rca.experiments.precision import forward_precision
    from rca.experiments.twin.config import TwinConfig
    from rca.experiments.twin.models import build

    config = TwinConfig.model_validate({**settings["twin"], "seq": MOST_TOKENS // 2, "dropout": 0.0})
    if config.objective != "tokens":
        return None
    torch.manual_seed(0)
    model = build(config).eval()
    tokens = [values_of(item) for item in table.columns[ids]]
    wanted = [values_of(item) for item in table.columns[labels]] if labels else tokens

    def loss(part: Sequence[int]) -> float:
        width = min(MOST_TOKENS, max(2, *(len(tokens[row]) if tokens[row] is not None else 0 for row in part)))
        inputs = torch.zeros((len(part), width), dtype=torch.int64)
        targets = torch.full((len(part), width), IGNORED, dtype=torch.int64)
        for place, row in enumerate(part):
            for values, into in ((tokens[row], inputs), (wanted[row], targets)):
                if values is not None and len(values):
                    kept = torch.from_numpy(np.nan_to_num(values[:width]).astype(np.int64))
                    into[place, : len(kept)] = torch.where(kept == IGNORED, kept, kept % config.vocab)
        inputs[inputs < 0] = 0
        with torch.no_grad(), forward_precision(settings["precision"], "cpu"):
            logits = model(input_ids=inputs).logits.float()
        flat = logits[:, :-1].reshape(-1, logits.shape[-1])
        return float(torch.nn.functional.cross_entropy(flat, targets[:, 1:].reshape(-1)))

    return loss


def _dense_loss(
    table: Samples, labels: str | None, settings: Mapping[str, Any]
) -> Callable[[Sequence[int]], float] | None:
    import torch

    from rca.experiments.precision import forward_precision

    columns = [
        name
        for name, column in table.columns.items()
        if name != labels and all(values_of(column[row]) is not None for row in range(min(table.rows, 8)))
    ]
    if not columns:
        return None
    rows = []
    for row in range(min(table.rows, MOST_ROWS)):
        parts = [values_of(table.columns[name][row]) for name in columns]
        rows.append(np.concatenate([part.astype(np.float64) for part in parts if part is not None] or [np.zeros(0)]))
    width = max(len(row) for row in rows)
    if not 0 < width <= MOST_FEATURES or any(len(row) != width for row in rows):
        return None
    inputs = torch.from_numpy(np.stack(rows)).float()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(width, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))

    def loss(part: Sequence[int]) -> float:
        with torch.no_grad(), forward_precision(settings["precision"], "cpu"):
            logits = model(inputs[list(part)]).float()
        targets = torch.zeros(len(part), dtype=torch.int64)
        return float(torch.nn.functional.cross_entropy(logits, targets))

    return loss
