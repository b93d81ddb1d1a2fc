"""Batches of the user's samples for the twin: brought to its sizes, a tenth held out. Needs numpy only."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rca.errors import ExperimentError
from rca.experiments.twin.config import TwinConfig
from rca.experiments.twin.data import Batch, Stream
from rca.experiments.twin.families import DENSE
from rca.experiments.twin.samples import Samples

_HELD_OUT = 10
"""Every tenth sample is held out and never trained on."""
_FIRST = 3
"""Tokens 0-2 are padding, begin and end."""
_FEATURES = 32
"""What the twin's perceptron reads."""
_IMAGE = 16
"""Height and width of the images that the twin's network reads."""


class SampleStream(Stream):
    """Batches of the user's samples; faults are planted in them as in synthetic ones."""

    _held = False

    def __init__(self, config: TwinConfig, seed: int, samples: Samples) -> None:
        why = unsuited(samples, config)
        if why:
            raise ExperimentError(why)
        self._samples = samples
        self._text = (np.empty(0, np.int64), np.empty(0, np.int64))
        if samples.features is not None:
            fit = _images if config.family == "cnn" else _rows
            self._features = fit(samples.features)
            finite = np.isfinite(self._features.reshape(len(self._features), -1)).all(axis=1)
        else:
            self._known = _by_frequency(samples.tokens, config.vocab)
            finite = np.ones(samples.count, dtype=bool)
            parts = (self._known[1::_HELD_OUT], [row for at, row in enumerate(self._known) if at % _HELD_OUT != 1])
            if len(self._known) < 2 * _HELD_OUT:
                whole = np.concatenate(self._known)
                edge = len(whole) - len(whole) // _HELD_OUT
                parts = ([whole[edge:]], [whole[:edge]])
            self._text = (_joined(parts[0]), _joined(parts[1]))
        held = np.arange(samples.count) % _HELD_OUT == 1
        self._rows = (np.flatnonzero(held & finite), np.flatnonzero(~held))
        super().__init__(config, seed)

    def evaluation(self) -> Batch:
        """Return a fixed batch of held-out samples, clean as far as their numbers are finite."""
        return self._from_held_out(super().evaluation)

    def watched(self) -> Batch:
        """Return another one."""
        return self._from_held_out(super().watched)

    def _from_held_out(self, draw: Callable[[], Batch]) -> Batch:
        self._held = True
        try:
            batch = draw()
        finally:
            self._held = False
        return batch

    def _micro(self, step: int) -> Batch:
        batch = super()._micro(step)
        spoiled = batch.inputs.dtype.kind == "f" and not np.isfinite(batch.inputs).all()
        return replace(batch, poisoned=True) if spoiled else batch

    def _tokens(self, order: np.random.Generator, size: int, length: int) -> npt.NDArray[np.int64]:
        text = self._text[0 if self._held else 1]
        if len(text) <= length:
            raise ExperimentError(f"the samples have too few tokens for sequences of {length}")
        starts = order.integers(0, len(text) - length, size)
        return np.stack([text[start : start + length] for start in starts])

    def _classes(self, order: np.random.Generator, size: int) -> Batch:
        classes = self._samples.classes
        if classes is None:
            raise ExperimentError("the samples have no classes")
        rows = order.choice(self._rows[0 if self._held else 1], size)
        if self._samples.features is not None:
            return Batch(self._features[rows], classes[rows])
        tokens = np.zeros((size, self.config.seq), dtype=np.int64)
        for at, row in enumerate(rows):
            kept = self._known[row][: self.config.seq]
            tokens[at, : len(kept)] = kept
        return Batch(tokens, classes[rows])


def unsuited(samples: Samples, config: TwinConfig) -> str:
    """Return why a twin cannot learn these samples, or nothing."""
    wanted = "rows of numbers" if config.family in DENSE else "tokens"
    if (samples.kind == "features") != (config.family in DENSE):
        return f"the samples are {samples.words}; a twin of the class {config.family} learns {wanted}"
    if config.objective == "classes" and samples.classes is None:
        return f"the samples have no classes; a twin of the class {config.family} learns to tell classes apart"
    return ""


def _joined(rows: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """One text of all sequences with the token for the end behind each."""
    return np.concatenate([part for row in rows for part in (row, np.array([2]))]).astype(np.int64)


def _by_frequency(rows: Sequence[npt.NDArray[np.int64]], vocab: int) -> list[npt.NDArray[np.int64]]:
    """Number the tokens by falling frequency, so that a small vocabulary keeps those that matter; rare ones share."""
    names, counts = np.unique(np.concatenate(rows), return_counts=True)
    rank = np.empty(len(names), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(names))
    numbers = _FIRST + np.where(rank < vocab - _FIRST, rank, (vocab - _FIRST) // 2 + rank % ((vocab - _FIRST) // 2))
    return [numbers[np.searchsorted(names, row)] for row in rows]


def _rows(features: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Fill rows up to the width that the twin reads, or mix wider ones down to it."""
    flat = features.reshape(len(features), -1)
    if flat.shape[1] <= _FEATURES:
        return np.pad(flat, ((0, 0), (0, _FEATURES - flat.shape[1])))
    mix = np.random.default_rng(0).normal(size=(flat.shape[1], _FEATURES)) / math.sqrt(flat.shape[1])
    with np.errstate(all="ignore"):
        return (flat @ mix.astype(np.float32)).astype(np.float32)


def _images(features: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Bring images (channels first or last) to three channels of 16 x 16."""
    if features.ndim == 3:
        features = features[:, None]
    if features.ndim != 4 or min(features.shape[1:]) < 1:
        raise ExperimentError(f"images need two or three dimensions each, these have the shape {features.shape[1:]}")
    if features.shape[3] <= 4 < features.shape[1]:
        features = features.transpose(0, 3, 1, 2)
    channels = np.arange(3) % features.shape[1]
    rows, columns = (np.arange(_IMAGE) * size // _IMAGE for size in features.shape[2:])
    return np.ascontiguousarray(features[:, channels][:, :, rows][:, :, :, columns])
