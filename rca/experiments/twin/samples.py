"""Samples that the user named, in place of the twin's synthetic data. Needs numpy only.

jsonl   an object a line with `input_ids` (a list of numbers) or `text` (read as bytes); `label` where there are classes
npy     whole numbers: token sequences; other numbers: a row a sample, the last column its class
npz     `x`, `inputs`, `features` or `images`, and `y`, `labels` or `targets`; or `input_ids`; nothing is unpickled
csv     numbers, the class in the column `label`, `labels`, `target`, `class` or `y`, else in the last one

Only a part of a large file is read.
"""

from __future__ import annotations

import csv
import json
import math
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rca.errors import ExperimentError
from rca.experiments.checks.sample_formats import BROKEN

MOST_BYTES, MOST_ROWS, MOST_TOKENS = 16 * 2**20, 20_000, 500_000
"""What is read at most: a twin sees sixty steps of eight samples."""
MOST_IN_LINE = 2**20
FEWEST_ROWS, FEWEST_TOKENS = 40, 2_000
"""Fewer samples cannot be split into something to learn from and something to be measured on."""
_MOST_CLASSES = 16
_INPUTS, _LABELS = ("x", "inputs", "features", "images"), ("y", "labels", "targets")
_LABEL_COLUMNS = frozenset({"label", "labels", "target", "class", "y"})


@dataclass(frozen=True)
class Samples:
    """What was read of a file."""

    kind: Literal["tokens", "features"]
    tokens: tuple[npt.NDArray[np.int64], ...] = ()
    """One sequence a sample."""
    features: npt.NDArray[np.float32] | None = None
    classes: npt.NDArray[np.int64] | None = None
    """0, 1, ... by falling frequency."""
    cut: bool = False
    """There was more than is read."""

    @property
    def count(self) -> int:
        """Number of samples."""
        return len(self.tokens) if self.features is None else len(self.features)

    @property
    def distinct(self) -> int:
        """Different tokens."""
        return len(np.unique(np.concatenate(self.tokens))) if self.tokens else 0

    @property
    def words(self) -> str:
        """What they are, for a sentence."""
        what = "token sequences" if self.kind == "tokens" else "rows of numbers"
        classes = f" in {int(self.classes.max()) + 1} classes" if self.classes is not None else ""
        return f"{'the first ' if self.cut else ''}{self.count} {what}{classes} that the user named"


def load(path: Path) -> Samples:
    """Read the samples of a file. Raises ExperimentError when it holds none that a twin can learn from."""
    readers = {".jsonl": _jsonl, ".ndjson": _jsonl, ".npy": _npy, ".npz": _npz, ".csv": _csv}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ExperimentError(f"{path.name}: samples are read from {', '.join(sorted(readers))} files")
    try:
        found = reader(path)
    except OSError as error:
        # The words of a system error would name the place on this machine.
        raise ExperimentError(f"{path.name} cannot be read as samples: {error.strerror or error}") from error
    except (*BROKEN, MemoryError, csv.Error) as error:
        text = " ".join(str(error).split())[:200]
        raise ExperimentError(f"{path.name} cannot be read as samples: {text or type(error).__name__}") from error
    if found.kind == "tokens" and (found.count < 1 or sum(map(len, found.tokens)) < FEWEST_TOKENS):
        raise ExperimentError(f"{path.name} holds fewer than {FEWEST_TOKENS} tokens, too few to learn from")
    if (found.kind == "features" or found.classes is not None) and found.count < FEWEST_ROWS:
        raise ExperimentError(f"{path.name} holds {found.count} samples; at least {FEWEST_ROWS} are needed")
    return found


def _numbered(labels: Iterable[Any]) -> npt.NDArray[np.int64]:
    """Number classes by falling frequency; beyond the most that the twin has they share."""
    names, where, counts = np.unique(
        np.array([str(label) for label in labels]), return_inverse=True, return_counts=True
    )
    rank = np.empty(len(names), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(names))
    return rank[where] % _MOST_CLASSES


def _lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Lines of a text within the bounds, and whether this is the last that is read."""
    read = 0
    with path.open("rb") as file:
        for number in range(1, MOST_ROWS + 1):
            line = file.readline(MOST_IN_LINE)
            read += len(line)
            if not line:
                return
            last = read >= MOST_BYTES or number == MOST_ROWS
            yield line, last
            if last:
                return


def _jsonl(path: Path) -> Samples:
    rows: list[npt.NDArray[np.int64]] = []
    labels: list[Any] = []
    tokens, cut = 0, False
    for number, (line, last) in enumerate(_lines(path), start=1):
        cut = last
        if not line.strip():
            continue
        item = json.loads(line)
        if not isinstance(item, dict):
            raise ValueError(f"line {number} is not an object")
        row = _sequence(item, number)
        rows.append(row)
        if "label" in item:
            labels.append(item["label"])
        tokens += len(row)
        if tokens >= MOST_TOKENS:
            cut = True
            break
    if labels and len(labels) != len(rows):
        raise ValueError(f"{len(rows) - len(labels)} of {len(rows)} samples have no `label`")
    return Samples("tokens", tuple(rows), None, _numbered(labels) if labels else None, cut)


def _sequence(item: dict[str, Any], number: int) -> npt.NDArray[np.int64]:
    ids, text = item.get("input_ids"), item.get("text")
    if isinstance(ids, list) and ids and all(isinstance(part, int) for part in ids):
        return np.array(ids, dtype=np.int64)
    if isinstance(text, str) and text:
        return np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8).astype(np.int64)
    raise ValueError(f"line {number} has neither `input_ids` (a list of whole numbers) nor `text`")


def _npy(path: Path) -> Samples:
    whole = np.load(path, mmap_mode="r", allow_pickle=False)
    return _array(whole, None)


def _npz(path: Path) -> Samples:
    with zipfile.ZipFile(path) as members:
        large = [item.filename for item in members.infolist() if item.file_size > MOST_BYTES]
    if large:
        raise ValueError(f"{large[0]} in it has more than {MOST_BYTES // 2**20} MiB")
    with np.load(path, allow_pickle=False) as arrays:
        inputs = next((name for name in ("input_ids", *_INPUTS) if name in arrays.files), None)
        labels = next((name for name in _LABELS if name in arrays.files), None)
        if inputs is None:
            raise ValueError(
                f"it has no array {', '.join(('input_ids', *_INPUTS))}; it has {', '.join(arrays.files[:8])}"
            )
        chosen = [arrays[name] for name in (inputs, labels) if name is not None]
    if not all(isinstance(array, np.ndarray) for array in chosen):
        raise ValueError(f"its {inputs} and {labels or 'labels'} are not arrays")
    return _array(chosen[0], chosen[1] if len(chosen) > 1 else None)


def _array(whole: npt.NDArray[Any], labels: npt.NDArray[Any] | None) -> Samples:
    if whole.dtype.kind not in "fiu" or whole.ndim < 1:
        raise ValueError(f"an array of type {whole.dtype} and shape {whole.shape} holds no samples")
    most = max(1, min(MOST_ROWS, MOST_BYTES // max(1, whole.itemsize * math.prod(whole.shape[1:]))))
    if labels is not None and (labels.ndim != 1 or len(labels) != len(whole)):
        raise ValueError(f"labels of shape {labels.shape} do not belong to samples of shape {whole.shape}")
    if whole.dtype.kind in "iu" and (labels is None or whole.ndim == 2) and whole.dtype != np.uint8:
        if whole.ndim == 1:
            return Samples("tokens", (np.asarray(whole[:MOST_TOKENS], dtype=np.int64),), cut=len(whole) > MOST_TOKENS)
        rows = max(1, min(most, MOST_TOKENS // max(1, math.prod(whole.shape[1:]))))
        kept = np.asarray(whole[:rows], dtype=np.int64).reshape(min(rows, len(whole)), -1)
        classes = _numbered(labels[:rows]) if labels is not None else None
        return Samples("tokens", tuple(kept), None, classes, len(whole) > rows)
    table = np.asarray(whole[:most], dtype=np.float32)
    if whole.dtype == np.uint8:
        table /= 255
    if labels is not None:
        return Samples("features", (), table, _numbered(labels[:most]), len(whole) > most)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(f"an array of shape {whole.shape} has no column for the class; use npz with `x` and `y`")
    return Samples("features", (), table[:, :-1], _numbered(table[:, -1]), len(whole) > most)


def _csv(path: Path) -> Samples:
    cut: list[bool] = []

    def text() -> Iterator[str]:
        for line, last in _lines(path):
            cut[:] = [last]
            yield line.decode("utf-8", "replace")

    table = csv.reader(text())
    first = next(table, None)
    if first is None or len(first) < 2:
        raise ValueError("it needs at least two columns")
    headed = any(not _is_number(cell) for cell in first)
    names = [cell.strip().lower() for cell in first] if headed else []
    where = next((at for at, name in enumerate(names) if name in _LABEL_COLUMNS), len(first) - 1)
    features, labels = [], []
    for row in table if headed else chain([first], table):
        if len(row) != len(first):
            raise ValueError(f"line {table.line_num} has {len(row)} cells, the first one {len(first)}")
        labels.append(row[where].strip())
        features.append([float(cell) if cell.strip() else math.nan for at, cell in enumerate(row) if at != where])
    return Samples("features", (), np.array(features, dtype=np.float32), _numbered(labels), any(cut))


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True
