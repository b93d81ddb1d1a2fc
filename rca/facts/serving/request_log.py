"""Requests to an inference job as rows: lengths, latency and time per token of each, from logs and request files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rca.events import EventTable
from rca.facts.memo import once_per_table

_PROMPT = ("prompt_tokens", "prompt", "input_tokens", "prompt_len", "prompt_length", "num_prompt_tokens", "input_len",
           "prompt_eval_count", "tokens_evaluated", "n_prompt_tokens")  # fmt: skip
_OUTPUT = (
    "new_tokens",
    "completion_tokens",
    "completion",
    "output_tokens",
    "generated_tokens",
    "gen_tokens",
    "output_len",
    "num_generated_tokens",
    "out_tokens",
    "eval_count",
    "tokens_predicted",
)
OUTPUT_NAMES = _OUTPUT
"""Names of the number of generated tokens."""
_LATENCY = {
    "latency_s": 1.0,
    "latency": 1.0,
    "e2e": 1.0,
    "e2e_s": 1.0,
    "e2e_latency": 1.0,
    "total_s": 1.0,
    "total_time": 1.0,
    "duration_s": 1.0,
    "duration": 1.0,
    "elapsed_s": 1.0,
    "latency_ms": 1e-3,
    "duration_ms": 1e-3,
    "total_ms": 1e-3,
    "e2e_ms": 1e-3,
    "total_duration_ms": 1e-3,
    "total_duration": 1e-9,
}
_PER_TOKEN = {
    "ms_per_token": 1.0,
    "time_per_token_ms": 1.0,
    "tpot_ms": 1.0,
    "itl_ms": 1.0,
    "time_per_output_token": 1000.0,
    "tpot": 1000.0,
    "s_per_token": 1000.0,
}
_FIRST = {"ttft": 1.0, "ttft_s": 1.0, "ttft_ms": 1e-3, "time_to_first_token": 1.0}
_NAMES = frozenset((*_PROMPT, *_OUTPUT, *_LATENCY, *_PER_TOKEN, *_FIRST))
_GROUP_LABELS = ("model", "variant", "backend", "deployment", "endpoint", "engine")
MOST_ROWS = 200_000
_ROWS_A_GROUP = 3
"""Labels that change with nearly every request are ids of requests, not names of models."""


class Requests(NamedTuple):
    """The requests of one source and one model, in order; NaN where a request does not tell."""

    source: str
    group: str
    prompt: npt.NDArray[np.float64]
    output: npt.NDArray[np.float64]
    latency_s: npt.NDArray[np.float64]
    ms_per_token: npt.NDArray[np.float64]
    event_id: npt.NDArray[np.int64]

    @property
    def context(self) -> npt.NDArray[np.float64]:
        """Mean number of tokens in front of a generated one."""
        return self.prompt + self.output / 2


@once_per_table
def requests(events: EventTable) -> tuple[Requests, ...]:
    """Return the requests that tell lengths and a time, grouped by source and model."""
    spelled = [name for name in events.metric_names if _plain(name) in _NAMES]
    if not spelled:
        return ()
    table = events.table
    kind, name = table["kind"].cast(pa.string()), table["name"].cast(pa.string())
    wanted = pc.and_(pc.equal(kind, "metric"), pc.is_in(name, value_set=pa.array(spelled)))
    rows: dict[tuple[str, int], dict[str, float]] = {}
    owners: dict[tuple[str, int], tuple[str, int]] = {}
    kept = table.filter(wanted)
    texts = (kept[column].cast(pa.string()).to_pylist() for column in ("source", "name", "attrs"))
    numbers = (kept[column].to_pylist() for column in ("line", "value", "event_id"))
    for source, key, attrs, line, value, event_id in zip(*texts, *numbers, strict=True):
        place = (source, -1 if line is None else line)
        if place not in rows and len(rows) >= MOST_ROWS:
            continue
        rows.setdefault(place, {})[_plain(key)] = value
        owners.setdefault(place, (_group(attrs), event_id))
    groups: dict[tuple[str, str], list[tuple[dict[str, float], int]]] = {}
    apart = len({(place[0], group) for place, (group, _event) in owners.items()}) * _ROWS_A_GROUP <= len(rows)
    for place, row in rows.items():
        group, event_id = owners[place] if apart else ("", owners[place][1])
        groups.setdefault((place[0], group), []).append((row, event_id))
    found = (_assembled(source, group, items) for (source, group), items in sorted(groups.items()))
    return tuple(item for item in found if item is not None)


def _plain(name: str) -> str:
    """Return the name without the object that holds it (`usage.completion_tokens` of the OpenAI protocol)."""
    return name.rsplit(".", 1)[-1]


def _group(attrs: str | None) -> str:
    return group_of(json.loads(attrs) if attrs else {})


def group_of(labels: Mapping[str, Any]) -> str:
    """Return what the labels of a row say of the model that answered."""
    return "/".join(str(labels[key]) for key in _GROUP_LABELS if key in labels)


def _assembled(source: str, group: str, items: Sequence[tuple[dict[str, float], int]]) -> Requests | None:
    rows = [row for row, _event in items]
    prompt, output = _first(rows, dict.fromkeys(_PROMPT, 1.0)), _first(rows, dict.fromkeys(_OUTPUT, 1.0))
    latency, told, first = _first(rows, _LATENCY), _first(rows, _PER_TOKEN), _first(rows, _FIRST)
    with np.errstate(divide="ignore", invalid="ignore"):
        derived = 1000 * (latency - np.nan_to_num(first)) / np.where(output > 0, output, np.nan)
    per_token = np.where(np.isfinite(told), told, derived)
    if not np.isfinite(output).any() or not np.isfinite(per_token).any():
        return None
    ids = np.fromiter((event for _row, event in items), dtype=np.int64, count=len(items))
    return Requests(source, group, np.nan_to_num(prompt), output, latency, per_token, ids)


def _first(rows: Sequence[Mapping[str, float]], names: Mapping[str, float]) -> npt.NDArray[np.float64]:
    """Return, for each row, the first of several names in a common unit."""
    values = (next((row[name] * scale for name, scale in names.items() if name in row), np.nan) for row in rows)
    return np.fromiter(values, dtype=float, count=len(rows))
