"""Which step a line of a training log belongs to: steps, iterations, epochs with batches, and their plans."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BATCHES = re.compile(
    r"(?:epoch|train|val|valid|test|eval)\w*(?:\((?P<mode>\w+)\))?:?\s{0,8}\[?(?P<epoch>\d{1,6})(?:/\d+)?\]?:?\s{0,8}"
    r"\[?\s{0,8}(?P<batch>\d{1,9}) ?/ ?(?P<length>\d{1,9})",
    re.I,
)
_EPOCH = re.compile(
    r"(?:(?<![\w])(?:epochs?|ep)(?:_?idx|_?num)?)\s{0,4}['\"]?[:=#]?\s{0,4}[\[(]?\s{0,4}(?P<epoch>\d{1,6})(?![\d.,]*\d%|\.\d)"
    r"(?:\s{0,2}(?:/|of)\s{0,2}(?P<total>\d{1,6}))?",
    re.I,
)
_NAMED = tuple(
    re.compile(
        r"(?<![\w-])(?:"
        + words
        + r")['\"]?\s{0,4}[:=#]?\s{0,8}\[?\s{0,8}['\"]?(?P<step>\d{1,3}(?:,\d{3})+|\d{1,12})(?![\d.]*\d|[\w%])"
        r"(?:\s{0,2}(?:/|of)\s{0,8}(?P<total>\d[\d,]{0,12}))?",
        re.I,
    )
    for words in (
        r"global[_ ]?steps?|num_updates|trainer/global_step|optimizer[_ ]step",
        r"(?:train(?:ing)?[_ ])?steps?|iter(?:ation)?s?|it|s|update",
        r"(?:train(?:ing)?[_ ])?batch(?:es)?|micro_step",
    )
)
_LEADING = (
    re.compile(r"\s{0,8}\[\s{0,8}(?P<step>\d{1,9})(?:\s{0,2}/\s{0,2}(?P<total>\d{1,9}))?\]"),
    re.compile(r"(?P<epoch>\d{1,5})\|(?P<step>\d{1,9})\|"),
    re.compile(r"\s{0,8}(?P<step>\d{1,9})/(?P<total>\d{1,9}) (?:\[[=>.]|━)"),
)
_EVALUATION = re.compile(
    r"^\W{0,8}(?:val(?:id(?:ation)?)?|eval(?:uation|uating)?|test(?:ing)?|dev)\b|\((?:val|test)\)|\| ?(?:valid|test) ?\|",
    re.I,
)


class Position:
    """Where a line says training is."""

    __slots__ = ("batch", "epoch", "epochs", "evaluation", "length", "own", "step", "total")

    def __init__(self, *, evaluation: bool) -> None:
        self.evaluation = evaluation
        self.step: int | None = None
        self.total: int | None = None
        self.epoch: int | None = None
        self.epochs: int | None = None
        self.batch: int | None = None
        self.length: int | None = None
        self.own = False
        """Whether the line carries any counter."""


def position(message: str) -> Position:
    """Read the counters of one line."""
    text = message[:1000]
    place = Position(evaluation=_EVALUATION.search(text) is not None)
    batches = _BATCHES.search(text)
    if batches:
        place.epoch, place.batch, place.length = (int(batches[name]) for name in ("epoch", "batch", "length"))
        place.own = True
        for pattern in _NAMED[:1]:
            found = pattern.search(text)
            if found:
                place.step, place.batch = int(found["step"].replace(",", "")), None
        return place
    epoch = _EPOCH.search(text)
    if epoch:
        place.epoch = int(epoch["epoch"])
        place.epochs = int(epoch["total"]) if epoch["total"] else None
        place.own = True
    for pattern in _NAMED:
        found = pattern.search(text)
        if found:
            return _stepped(place, found)
    for pattern in _LEADING:
        found = pattern.match(text)
        if found:
            if "epoch" in pattern.groupindex:
                place.epoch = int(found["epoch"])
            return _stepped(place, found)
    return place


def _stepped(place: Position, found: re.Match[str]) -> Position:
    place.step = int(found["step"].replace(",", ""))
    total = found.groupdict().get("total")
    place.total = int(total.replace(",", "")) if total else None
    place.own = True
    return place


@dataclass
class StepCounter:
    """Turns what lines say into one step count that grows over the run."""

    first_epoch: int | None = None
    offset: int = 0
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
            return self.last_step
        if place.epoch is not None and self.first_epoch is None:
            self.first_epoch = place.epoch
        if place.epochs:
            self.epochs = place.epochs
        if place.batch is not None and place.length:
            if place.evaluation:
                return self.last_step
            self.length = place.length
            self.steps_seen = True
            base = 0 if self.first_epoch == 0 else 1
            return self._keep(max((place.epoch or 0) - base, 0) * place.length + place.batch, place.epoch)
        if place.step is not None:
            self.steps_seen = True
            return self._counted(place)
        if place.epoch is not None:
            if self.steps_seen:
                return self.last_step
            self.last_epoch = place.epoch
            return place.epoch
        return self.last_step

    def planned(self) -> int | None:
        """Return the number of steps the run was to take, if lines said so."""
        if self.length and self.epochs:
            return self.length * self.epochs
        if self.total is None:
            return None
        return self.total * (self.epochs or 0) or None if self.per_epoch else self.total

    def _counted(self, place: Position) -> int:
        step = place.step or 0
        new_epoch = place.epoch is not None and self.last_epoch is not None and place.epoch > self.last_epoch
        if new_epoch and self.last_step is not None and step + self.offset < self.last_step:
            self.per_epoch = True
            self.offset = (
                place.total * (place.epoch - self._base()) if place.total and place.epoch else self.last_step + 1
            )
        if place.total:
            self.total = place.total
        return self._keep(step + self.offset, place.epoch)

    def _base(self) -> int:
        return 0 if self.first_epoch == 0 else 1

    def _keep(self, step: int, epoch: int | None) -> int:
        self.last_step = step
        if epoch is not None:
            self.last_epoch = epoch
        return step
