"""Where a line of a training log says training is: steps, iterations, epochs with batches, and their plans."""

from __future__ import annotations

import re

_BATCHES = re.compile(
    r"(?:epoch|train|val|valid|test|"
    r"eval)\w*(?:\((?P<mode>\w+)\))?:?\s{0,8}\[?(?P<epoch>\d{1,6})(?!\d)(?: ?/ ?(?P<epochs>\d{1,6})(?!\d))?\]?[:,]?"
    r"\s{0,8}[\[(|]?\s{0,8}(?P<batch>\d{1,9}) ?/ {0,6}(?P<length>\d{1,9})",
    re.I,
)
_EPOCH = re.compile(
    r"(?<!\w)(?:epochs?|ep)(?:_?idx|_?num)?\s{0,4}['\"]?[:=#]?\s{0,4}[\[(]?\s{0,4}(?P<epoch>\d{1,6})(?![\d.,]*\d%|\.\d)"
    r"(?:\s{0,2}(?:/|of)\s{0,2}(?P<epochs>\d{1,6}))?",
    re.I,
)
_COUNT = (
    r")['\"]?\s{0,4}[:=#]?\s{0,8}\[?\s{0,8}['\"]?(?P<step>\d{1,3}(?:,\d{3})+|\d{1,12})(?![\d.]*\d|[\w%])"
    r"(?:\s{0,2}(?:/|of)\s{0,8}(?P<total>\d[\d,]{0,12}))?"
)
_GLOBAL, _STEP, _BATCH = (
    re.compile(r"(?<![" + barred + r"])(?:" + words + _COUNT, re.I)
    for barred, words in (
        (r"\w-", r"global[_ ]?steps?|num_updates|trainer/global_step|optimizer[_ ]step"),
        (r"\w/-", r"(?:train(?:ing)?[_ ])?steps?|iter(?:ation)?s?(?:\((?:train|val|test)\))?|it|update"),
        (
            r"\w/-",
            r"(?:train(?:ing)?[_ ])?batch(?:es)?|micro_step|samples?(?=[ :#=]{1,8}\d{1,9} ?/)",
        ),
    )
)
_EPOCH_STEP = re.compile(r"(?<![\w/])epoch/iter(?:ation)?:? (?P<epoch>\d{1,6})/(?P<step>\d{1,9})(?!\d)", re.I)
_OF_TUTORIAL = r"(?:(?:\d{1,4}h )?\d{1,5}m )?\d{1,5}s"
_LEADING = (
    re.compile(
        r"\s{0,8}\[\s{0,8}(?P<epoch>\d{1,6})\s{0,2}/\s{0,2}(?P<epochs>\d{1,6})\]\s{0,2}"
        r"\[\s{0,8}(?P<batch>\d{1,9})\s{0,2}/\s{0,2}(?P<length>\d{1,9})\]"
    ),
    re.compile(rf"(?P<step>\d{{1,9}}) \d{{1,3}}% \({_OF_TUTORIAL}\) "),
    re.compile(rf"{_OF_TUTORIAL} \(- {_OF_TUTORIAL}\) \((?P<step>\d{{1,9}}) \d{{1,3}}%\) "),
    re.compile(r"s:(?P<step>\d{1,9})(?= )"),
    re.compile(r"\s{0,8}\[\s{0,8}(?P<step>\d{1,9})(?:\s{0,2}/\s{0,2}(?P<total>\d{1,9}))?\]"),
    re.compile(r"(?P<epoch>\d{1,5})\|(?P<step>\d{1,9})\|"),
    re.compile(r"\s{0,8}(?P<step>\d{1,9})/(?P<total>\d{1,9}) (?:\[[=>.]|━|- \d{1,7}m?s - )"),
)
_EVALUATION = re.compile(
    r"^\W{0,8}(?:val(?:id(?:ation)?)?|eval(?:uation|uating)?|test(?:ing)?|dev)\b|\((?:val|test)\)|\| ?(?:valid|"
    r"test) ?\||\bcv (?:batch|info|loss|acc)",
    re.I,
)
_EPOCH_BATCH = re.compile(
    r"(?:\b(?:TRAIN|CV) |\bsteps/sec [\d.]{1,12}\| ?)Batch (?P<epoch>\d{1,6})/(?P<batch>\d{1,9})(?!\d)"
)
"""wenet and what is built on it print the epoch and then the batch within it, not a batch and their number."""
_EPOCH_RANGE = re.compile(r"(?<!\S)(?P<epoch>\d{1,6})epoch:(?P<mode>train|valid):\d{1,9}-(?P<batch>\d{1,9})batch: ")
"""ESPnet prints the epoch and the batches that a mean covers: `2epoch:train:61-120batch: loss=1.2`."""
_EVAL_BATCHES = re.compile(
    r"\W{0,8}(?:val|valid|test|eval)\w*:?\s{0,8}\[\s{0,8}(?P<batch>\d{1,9})/(?P<length>\d{1,9})\]", re.I
)
_MICRO = re.compile(r"(?<![\w/-])micro(?:[ -]?(?:step|batch))?\s?[:=#]?\s?\d{1,9}(?: ?/ ?\d{1,9})?", re.I)
"""Batches that make one step together: their number is no step."""
_SAMPLES = re.compile(r"Train Epoch: \d+ \[\d+/\d+ \(\d+%\)\]")
"""The MNIST example counts samples, not batches."""
_MOST = 1000

Span = tuple[int, int, str]
"""Start, end and role of one number."""


class Position:
    """Where a line says training is."""

    __slots__ = ("batch", "epoch", "epochs", "evaluation", "length", "own", "spans", "step", "strong", "total")

    def __init__(self, *, evaluation: bool, strong: bool = False) -> None:
        self.evaluation = evaluation
        self.strong = strong
        """Whether the counter counts steps of training by name."""
        self.step: int | None = None
        self.total: int | None = None
        self.epoch: int | None = None
        self.epochs: int | None = None
        self.batch: int | None = None
        self.length: int | None = None
        self.own = False
        """Whether the line carries any counter."""
        self.spans: list[Span] = []
        """Where the counters stand."""

    def take(self, found: re.Match[str], *roles: str) -> Position:
        """Keep the named groups of a match as counters."""
        for role in roles:
            raw = found[role] if role in found.re.groupindex else None
            if raw:
                self.spans.append((*found.span(role), role))
                self.put(role, raw)
        return self

    def put(self, role: str, raw: str) -> None:
        """Set one counter."""
        setattr(self, role, int(raw.replace(",", "")))
        self.own = True


def position(message: str) -> Position:
    """Read the counters of one line."""
    text = message[:_MOST]
    place = Position(evaluation=_EVALUATION.search(text) is not None)
    overall = _GLOBAL.search(text)
    batches = None if _SAMPLES.match(text) else _BATCHES.search(text)
    if batches:
        place.strong = True
        place.take(batches, "epoch", "epochs")
        return place.take(overall, "step") if overall else place.take(batches, "batch", "length")
    named = _EPOCH_BATCH.search(text)
    if named:
        place.strong = True
        return place.take(named, "epoch", "batch")
    ranged = _EPOCH_RANGE.search(text)
    if ranged:
        place.strong = True
        place.evaluation = ranged["mode"] == "valid"
        return place.take(ranged, "epoch", "batch")
    within = _EVAL_BATCHES.match(text) if place.evaluation else None
    if within:
        return place.take(within, "batch", "length")
    if _MICRO.search(text) and not overall:
        place.own = True
        return place
    both = _EPOCH_STEP.search(text)
    if both:
        place.strong = True
        return place.take(both, "epoch", "step")
    epoch = _EPOCH.search(text)
    if epoch:
        place.take(epoch, "epoch", "epochs")
    for pattern in (_GLOBAL, _STEP, _BATCH):
        found = overall if pattern is _GLOBAL else pattern.search(text)
        if found:
            place.strong = pattern is not _BATCH
            return place.take(found, "step", "total")
    if place.epoch is None:
        for pattern in _LEADING:
            found = pattern.match(text)
            if found:
                place.take(found, "epoch", "epochs", "batch", "length", "step", "total")
                place.strong = place.batch is not None
                return place
    return place
