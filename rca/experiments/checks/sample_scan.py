"""A direct look at every sample: values, ids, labels, lengths. Most guilty samples need no training to be found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rca.experiments.checks.sample_formats import Samples

IDS = frozenset({"input_ids", "ids", "token_ids", "tokens", "decoder_input_ids", "prompt_ids", "input_tokens"})
LABELS = frozenset({"labels", "label", "target", "targets", "y", "label_ids", "class", "classes"})
MASKS = frozenset({"attention_mask"})
IGNORED = -100
"""Label that torch's cross-entropy leaves out by default (`ignore_index`)."""
FP16_MAX = 65504.0
FAR = 8.0
"""Robust z of log10 of a sample's largest value from which it is extreme; one poisoned batch among 40 had 24 to 42."""
FAR_TIMES = 100.0
"""And this many times the median at least, so that narrow data have no extremes."""
LONG = 8.0
"""Length over the median from which a sample is an outlier in length, when its robust z is above `FAR` as well."""
_LEAST = 8
"""Samples from which outliers can be told."""
_MOST_SHOWN = 20


class Limits(NamedTuple):
    """What the model takes; None where the run did not say."""

    vocabulary: int | None = None
    classes: int | None = None
    token_classes: int | None = None
    """Bound of labels that stand one at every token."""
    positions: int | None = None
    same_length: bool = False
    """Labels stand one at every token of the input."""


class Place(NamedTuple):
    """One value of one sample."""

    table: Samples
    row: int
    column: str


@dataclass
class Found:
    """What is wrong with which samples."""

    hits: dict[str, list[tuple[str, int, str, str]]] = field(default_factory=dict)
    """Kind -> (file, row from 0, column, what is wrong), at most twenty."""
    counts: dict[str, int] = field(default_factory=dict)
    """Kind -> number of samples."""
    looked_at: dict[str, dict[str, int]] = field(default_factory=dict)
    """Kind -> file -> samples for which it could be told."""
    _known: set[tuple[str, str, int]] = field(default_factory=set)

    def add(self, kind: str, place: Place, says: str) -> None:
        """Note one sample; a second reason of the same kind in the same sample does not count again."""
        number = place.table.number(place.row)
        if (kind, place.table.file, number) not in self._known:
            self._known.add((kind, place.table.file, number))
            self.note(kind, place.table.file, number, place.column, says)

    def note(self, kind: str, *hit: Any) -> None:
        """Count one hit (file, row, column, what is wrong), and keep it while there are few."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        shown = self.hits.setdefault(kind, [])
        if len(shown) < _MOST_SHOWN:
            shown.append(hit)

    def saw(self, kind: str, table: Samples, samples: int) -> None:
        """Note that samples were looked at for a kind, in one column of a file."""
        files = self.looked_at.setdefault(kind, {})
        files[table.file] = max(files.get(table.file, 0), samples)


def scan(tables: Sequence[Samples], limits: Limits) -> Found:
    """Look at every sample for every kind of fault."""
    found = Found()
    for table in tables:
        for row, why in table.broken:
            found.note("unreadable", table.file, row, "", why)
        found.saw("unreadable", table, table.rows + len(table.broken))
        for name, column in table.columns.items():
            _column(table, name, column, limits, found)
        _lengths(table, limits, found)
    return found


def values_of(item: Any) -> Any:
    """Return the numbers of one sample as a flat array, or None where it holds none."""
    if item is None or isinstance(item, (str, bytes, dict)):
        return None
    try:
        made = np.asarray(item)
    except ValueError:
        made = np.asarray(list(_flat(item, 0)))
    if made.dtype.kind == "O":
        flat = [float(part) if isinstance(part, (int, float)) else np.nan for part in made.ravel()]
        return np.asarray(flat, dtype=np.float64)
    return made.ravel() if made.dtype.kind in "fiub" else None


def _flat(item: Any, depth: int) -> Iterator[float]:
    for part in item:
        if isinstance(part, (list, tuple)) and depth < 8:
            yield from _flat(part, depth + 1)
        else:
            yield float(part) if isinstance(part, (int, float)) else np.nan


def _column(table: Samples, name: str, column: Any, limits: Limits, found: Found) -> None:
    role = name.lower().rpartition(".")[2]
    largest = np.full(table.rows, np.nan)
    missing: list[int] = []
    numeric = table.rows
    rows: Any = range(table.rows)
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
        rows, largest = _suspects(column, role, limits)
    else:
        numeric = 0
    for row in rows:
        item, place = column[row], Place(table, int(row), name)
        if item is None:
            missing.append(row)
        elif isinstance(item, str):
            _text(place, item, found)
        elif (numbers := values_of(item)) is not None:
            numeric += not isinstance(column, np.ndarray)
            _numbers(place, numbers, role, limits, found)
            if numbers.dtype.kind == "f" and numbers.size:
                finite = np.abs(numbers[np.isfinite(numbers)])
                largest[row] = finite.max() if finite.size else np.nan
    if 0 < len(missing) < table.rows / 2:
        for row in missing:
            found.add("empty", Place(table, row, name), "is missing")
    found.saw("empty", table, table.rows)
    found.saw("nonfinite", table, numeric)
    if role in IDS:
        found.saw("token_range", table, numeric if limits.vocabulary else 0)
    elif role in LABELS:
        found.saw("unlabelled", table, numeric)
        found.saw("label_range", table, numeric if limits.classes or limits.token_classes else 0)
    elif role not in MASKS:
        _extremes(table, name, largest, found)


def _suspects(column: Any, role: str, limits: Limits) -> tuple[Any, Any]:
    """Return the samples of an array that need a closer look, and the largest value of each sample."""
    flat = column.reshape(len(column), -1) if len(column) else column.reshape(0, 1)
    if not flat.size:
        return np.arange(len(column)), np.full(len(column), np.nan)
    if column.dtype.kind == "b":
        flat = flat.astype(np.uint8)
    low, high = flat.min(axis=1).astype(np.float64), flat.max(axis=1).astype(np.float64)
    largest = np.maximum(-low, high)
    odd = ~np.isfinite(largest) | (largest > FP16_MAX)
    if role in IDS:
        odd |= (low < 0) | (high >= (limits.vocabulary or np.inf))
    elif role in LABELS:
        bound = (limits.token_classes if flat.shape[1] > 1 else limits.classes) or np.inf
        odd |= (low < 0) | (high >= bound)
    elif role in MASKS:
        odd |= high == 0
    return np.flatnonzero(odd), largest


def _text(place: Place, text: str, found: Found) -> None:
    if not text.strip():
        found.add("empty", place, "is empty")
    elif text.count("\ufffd") * 10 > len(text):
        found.add("unreadable", place, "holds replacement characters of a failed decoding")


def _numbers(place: Place, numbers: Any, role: str, limits: Limits, found: Found) -> None:
    if not numbers.size:
        found.add("empty", place, "has no elements")
        return
    if numbers.dtype.kind == "f":
        bad = int((~np.isfinite(numbers)).sum())
        if bad:
            found.add("nonfinite", place, f"has {bad} of {numbers.size} values that are NaN or infinite")
            return
        if role not in LABELS | IDS and float(np.abs(numbers).max()) > FP16_MAX:
            found.add("beyond_fp16", place, f"reaches {np.abs(numbers).max():.3g}")
    if role in IDS and limits.vocabulary:
        low, high = int(numbers.min()), int(numbers.max())
        if low < 0 or high >= limits.vocabulary:
            wrong = high if high >= limits.vocabulary else low
            found.add("token_range", place, f"has id {wrong}, the model has {limits.vocabulary} rows")
    if role in MASKS and not numbers.any():
        found.add("empty", place, "masks every token")
    if role in LABELS and (numbers == np.round(numbers)).all():
        _labels(place, numbers, limits, found)


def _labels(place: Place, numbers: Any, limits: Limits, found: Found) -> None:
    kept = numbers[numbers != IGNORED]
    if not kept.size:
        found.add("unlabelled", place, f"is {IGNORED} throughout: no label counts")
        return
    bound = limits.token_classes if numbers.size > 1 else limits.classes
    low, high = int(kept.min()), int(kept.max())
    if bound and (low < 0 or high >= bound):
        wrong = high if high >= bound else low
        found.add("label_range", place, f"has label {wrong}, allowed are 0 to {bound - 1} and {IGNORED}")


def _extremes(table: Samples, name: str, largest: Any, found: Found) -> None:
    usable = np.isfinite(largest) & (largest > 0)
    if usable.sum() < _LEAST:
        return
    found.saw("extreme", table, int(usable.sum()))
    logs = np.log10(largest[usable])
    middle = float(np.median(logs))
    far = _robust_z(logs)
    for place in np.flatnonzero((far > FAR) & (logs > middle + np.log10(FAR_TIMES))):
        row = int(np.flatnonzero(usable)[place])
        says = f"reaches {largest[row]:.3g}, {10 ** (logs[place] - middle):.3g} times the median sample"
        found.add("extreme", Place(table, row, name), says)


def _robust_z(values: Any) -> Any:
    middle = np.median(values)
    spread = 1.4826 * np.median(np.abs(values - middle))
    return (values - middle) / max(float(spread), 1e-3)


def _lengths(table: Samples, limits: Limits, found: Found) -> None:
    lengths: dict[str, Any] = {}
    for name, column in table.columns.items():
        role = name.lower()
        if role in IDS | MASKS | LABELS and not isinstance(column, np.ndarray):
            lengths[role] = np.array([len(item) if isinstance(item, (list, tuple)) else -1 for item in column])
    ids = next((lengths[role] for role in ("input_ids", *sorted(IDS)) if role in lengths), None)
    if ids is None or (ids < 0).all():
        return
    for role, other in lengths.items():
        if role in MASKS or (role in LABELS and limits.same_length):
            both = (ids >= 0) & (other >= 0)
            found.saw("lengths", table, int(both.sum()))
            for row in np.flatnonzero(both & (ids != other)):
                found.add(
                    "lengths", Place(table, int(row), role), f"has {other[row]} elements, the ids have {ids[row]}"
                )
    kept = ids[ids > 0]
    if limits.positions:
        found.saw("too_long", table, len(kept))
        for row in np.flatnonzero(ids > limits.positions):
            found.add(
                "too_long", Place(table, int(row), "input_ids"), f"has {ids[row]} tokens of at most {limits.positions}"
            )
    if len(kept) >= _LEAST:
        found.saw("long", table, len(kept))
        middle = float(np.median(kept))
        far = _robust_z(np.log10(np.maximum(ids, 1)))
        for row in np.flatnonzero((ids >= LONG * middle) & (far > FAR)):
            found.add(
                "long", Place(table, int(row), "input_ids"), f"has {ids[row]} tokens, the median has {middle:.0f}"
            )
