"""One step count for the whole run out of what its lines count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rca.ingest.training_metrics.counters import Position


@dataclass
class StepCounter:
    """Turns the counters of lines into one that grows over the run."""

    first_epoch: int | None = None
    offset: int = 0
    epoch_start: int = 0
    last_step: int | None = None
    last_epoch: int | None = None
    total: int | None = None
    epochs: int | None = None
    length: int | None = None
    per_epoch: bool = False
    steps_seen: bool = False

    def step(self, place: Position) -> int | None:
        """Return the global step of a line, or None where it cannot be told."""
        if place.evaluation and place.epoch is None:
            # An evaluation counts its own batches; a step that it names with a total is such a batch.
            return place.step if place.step is not None and place.total is None and place.strong else self.last_step
        if place.epoch is not None and self.first_epoch is None:
            self.first_epoch = place.epoch
        if place.epochs:
            self.epochs = place.epochs
        if place.batch is not None and place.length:
            if place.evaluation:
                return self.last_step
            self.length = place.length
            self.steps_seen = True
            return self._keep(self.in_epoch(place.epoch or 0, place.batch, place.length), place.epoch)
        if place.batch is not None and place.epoch is not None:
            return self.last_step if place.evaluation else self._within_epoch(place.epoch, place.batch)
        if place.step is not None:
            self.steps_seen = True
            return self._counted(place)
        if place.epoch is not None:
            if self.steps_seen:
                return self.last_step
            self.last_epoch = place.epoch
            return place.epoch
        return self.last_step

    def steps(self, place: Position, counters: Mapping[str, npt.NDArray[np.int64]]) -> list[int | None]:
        """Return the global steps of alike lines; `place` is what they have in common."""
        if (
            counters.keys() <= {"step", "total"}
            and "step" in counters
            and not place.evaluation
            and len(counters["step"])
        ):
            self.steps_seen = True
            if "total" in counters:
                self.total = int(counters["total"][-1]) or self.total
            counted: list[int | None] = (counters["step"] + self.offset).tolist()
            self.last_step = counted[-1]
            return counted
        rows = zip(*(numbers.tolist() for numbers in counters.values()), strict=True)
        return [self.step(_placed(place, zip(counters, row, strict=True))) for row in rows]

    def in_epoch(self, epoch: int, batch: int, length: int) -> int:
        """Return the global step of a batch; epochs count from 0 or from 1, as the first one showed."""
        base = 0 if self.first_epoch == 0 else 1
        return max(epoch - base, 0) * length + batch

    def planned(self) -> int | None:
        """Return the number of steps the run was to take, if lines said so."""
        if self.length:
            return self.length * self.epochs if self.epochs else None
        if self.total is None or not self.per_epoch:
            return self.total
        return self.total * self.epochs if self.epochs else None

    def _within_epoch(self, epoch: int, batch: int) -> int:
        """Return the step of a batch of an epoch whose length nothing tells: batches go on from the last step."""
        if self.last_epoch is not None and epoch > self.last_epoch:
            self.epoch_start = self.last_step or 0
        self.steps_seen = True
        return self._keep(self.epoch_start + batch, epoch)

    def _counted(self, place: Position) -> int:
        step = place.step or 0
        later = place.epoch is not None and self.last_epoch is not None and place.epoch > self.last_epoch
        if later and self.last_step is not None and step + self.offset <= self.last_step:
            self.per_epoch = True
            self.offset = self.in_epoch(place.epoch or 0, 0, place.total) if place.total else self.last_step + 1
        if place.total:
            self.total = place.total
        return self._keep(step + self.offset, place.epoch)

    def _keep(self, step: int, epoch: int | None) -> int:
        self.last_step = step
        if epoch is not None:
            self.last_epoch = epoch
        return step


def _placed(common: Position, counters: Iterable[tuple[str, int]]) -> Position:
    place = Position(evaluation=common.evaluation, strong=common.strong)
    place.own = True
    for role, number in counters:
        setattr(place, role, number)
    return place
