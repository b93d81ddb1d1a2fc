"""Structured synthetic data: something a tiny model can learn in sixty steps, with faults on request.

Tokens follow a sparse first-order Markov chain with Zipf-distributed successors and copied spans (entropy about
1.35 nats at 256 tokens, unigram plateau about 3.6 of ln 256 = 5.55); classes are clusters. Needs numpy only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rca.experiments.twin.config import TwinConfig

_SUCCESSORS = 6
_FIRST, _PAD = 3, 0
"""Tokens 0-2 are padding, begin and end."""
_COPIED = 0.15
EVAL_SIZE, WATCHED_SIZE = 64, 32


@dataclass(frozen=True)
class Batch:
    """One micro-batch as numpy arrays."""

    inputs: npt.NDArray[Any]
    labels: npt.NDArray[np.int64]
    """Same shape as the tokens, or one class an item; -100 is not counted."""
    source: npt.NDArray[np.int64] | None = None
    """Encoder tokens of a sequence-to-sequence model."""
    weight: float = 1.0
    """Factor of its loss."""
    poisoned: bool = False
    """The features of the first item are not finite."""

    def rows(self, chosen: npt.NDArray[np.int64]) -> Batch:
        """Return a batch of the chosen items."""
        source = None if self.source is None else self.source[chosen]
        return Batch(self.inputs[chosen], self.labels[chosen], source)


class Stream:
    """Micro-batches of one arm and its evaluation batch; the same seed gives the same data to every arm."""

    def __init__(self, config: TwinConfig, seed: int) -> None:
        self.config = config
        self._world = np.random.default_rng(1234)
        self._order = np.random.default_rng(seed)
        self._noise = np.random.default_rng(seed + 77_000)
        if config.objective == "classes":
            self._centres = self._clusters()
        else:
            self._successors, self._odds = self._chain()
        self._pool = (
            self._clean(np.random.default_rng(5), config.samples, offset=config.label_offset)
            if config.samples
            else None
        )

    def evaluation(self) -> Batch:
        """Return the fixed clean batch on which all arms are compared."""
        return self._clean(np.random.default_rng(99), EVAL_SIZE, offset=1)

    def watched(self) -> Batch:
        """Return another clean batch, for what looks at the loss while training."""
        return self._clean(np.random.default_rng(98), WATCHED_SIZE, offset=1)

    def successors(self) -> npt.NDArray[np.int64]:
        """Return the tokens that may follow each token, one row a token; only of token streams."""
        return self._successors

    def training(self) -> Iterator[list[Batch]]:
        """Yield the micro-batches of each optimizer step."""
        for step in range(self.config.steps):
            yield [self._micro(step) for _ in range(self.config.accumulation)]

    def _micro(self, step: int) -> Batch:
        config = self.config
        if self._pool is None:
            batch = self._clean(self._order, config.batch, offset=config.label_offset)
        else:
            batch = self._pool.rows(self._order.integers(0, config.samples, config.batch))
        batch = self._masked(batch)
        since = step - config.bad_step
        hit = since == 0 or (config.bad_every > 0 and since > 0 and since % config.bad_every == 0)
        if config.bad_batch == "none" or not hit:
            return batch
        if config.bad_batch == "unlabelled":
            return Batch(batch.inputs, np.full_like(batch.labels, -100), batch.source)
        if config.bad_batch == "long":
            return batch if config.truncate else Batch(batch.inputs, batch.labels, batch.source, weight=30.0)
        if config.bad_batch == "random":
            labels = config.labels if config.objective == "classes" else config.vocab
            return Batch(batch.inputs, self._noise.integers(0, labels, batch.labels.shape), batch.source)
        if batch.inputs.dtype.kind == "f":
            spoiled = batch.inputs.copy()
            spoiled[0] = np.nan
            return Batch(spoiled, batch.labels, batch.source, poisoned=True)
        return Batch(batch.inputs, batch.labels, batch.source, poisoned=True)

    def _masked(self, batch: Batch) -> Batch:
        """Pad sequences and leave out labels as the settings say."""
        config = self.config
        inputs, labels = batch.inputs, batch.labels
        if config.padding and config.objective == "tokens":
            kept = max(2, round(config.seq * (1 - config.padding)))
            inputs, labels = inputs.copy(), labels.copy()
            inputs[:, kept:] = _PAD
            labels[:, kept - 1 :] = _PAD if config.masking == "none" else -100
        if config.masking == "all":
            labels = np.full_like(labels, -100)
        return Batch(inputs, labels, batch.source)

    def _clean(self, order: np.random.Generator, size: int, *, offset: int) -> Batch:
        config = self.config
        if config.objective == "classes":
            return self._classes(order, size)
        tokens = self._tokens(order, size, config.seq + max(offset, 1))
        inputs = tokens[:, : config.seq]
        if config.objective == "tokens":
            return Batch(inputs, tokens[:, offset : offset + config.seq])
        source = (inputs - _FIRST + 7) % (config.vocab - _FIRST) + _FIRST
        shift = max(offset - 1, 0)
        shifted = np.concatenate([np.zeros((size, 1), dtype=np.int64), inputs[:, :-1]], axis=1)
        return Batch(shifted, tokens[:, shift : shift + config.seq], source)

    def _chain(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        vocab = self.config.vocab
        weights = 1.0 / np.arange(1, vocab - _FIRST + 1)
        popularity = weights / weights.sum()
        successors = self._world.choice(np.arange(_FIRST, vocab), size=(vocab, _SUCCESSORS), p=popularity)
        odds = 1.0 / np.arange(1, _SUCCESSORS + 1) ** 1.2
        return successors.astype(np.int64), np.cumsum(odds / odds.sum())

    def _tokens(self, order: np.random.Generator, size: int, length: int) -> npt.NDArray[np.int64]:
        tokens = np.empty((size, length), dtype=np.int64)
        tokens[:, 0] = order.integers(_FIRST, self.config.vocab, size)
        draws = order.random((size, length))
        for position in range(1, length):
            branch = np.minimum(np.searchsorted(self._odds, draws[:, position]), _SUCCESSORS - 1)
            tokens[:, position] = self._successors[tokens[:, position - 1], branch]
        span = max(2, length // 4)
        for row in np.flatnonzero(order.random(size) < _COPIED):
            start = int(order.integers(0, length - 2 * span + 1))
            tokens[row, start + span : start + 2 * span] = tokens[row, start : start + span]
        return tokens

    def _clusters(self) -> npt.NDArray[np.float64]:
        config = self.config
        if config.family == "cnn":
            coarse = self._world.normal(size=(config.labels, 3, 4, 4))
            return coarse.repeat(4, axis=2).repeat(4, axis=3)
        if config.family == "mlp":
            return self._world.normal(size=(config.labels, 32))
        weights = self._world.dirichlet(np.full(config.vocab - _FIRST, 0.1), size=config.labels)
        return np.cumsum(weights, axis=1)

    def _classes(self, order: np.random.Generator, size: int) -> Batch:
        config = self.config
        labels = order.integers(0, config.labels, size)
        if config.family in {"cnn", "mlp"}:
            centres = self._centres[labels]
            features = centres + 1.0 * order.normal(size=centres.shape)
            return Batch(features.astype(np.float32), labels)
        draws = order.random((size, config.seq))
        rows = self._centres[labels]
        tokens = np.stack([np.searchsorted(row, draw) for row, draw in zip(rows, draws, strict=True)])
        return Batch(np.minimum(tokens, config.vocab - _FIRST - 1) + _FIRST, labels)
