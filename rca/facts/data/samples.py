"""Sample files held against each other: what validation shares with training, and what a file repeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rca.events import Event, EventTable
from rca.facts.emit import emit, percent
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "data.overlap_share": "share of the validation or test samples that are training samples as well",
    "data.duplicate_share": "share of the training samples that repeat another one",
    "data.train_samples": "training samples in the run directory",
}
_FEWEST = 10
"""Held-out samples that must be comparable before a share is told."""


def overlap(events: EventTable) -> Iterator[Fact]:
    """How many held-out samples are training samples?"""
    samples = events.named("data.samples", kind="artifact")
    train = [event for event in samples if event.attr("split") == "train"]
    held_out = [event for event in samples if event.attr("split") in {"validation", "test"}]
    shares = [(share, one, other) for one in train for other in held_out if (share := _shared(one, other)) is not None]
    if shares:
        share, one, other = max(shares, key=lambda item: item[0])
        says = f"{percent(share)} of the samples in {other.source} ({other.attr('split')}) are in {one.source} (train)."
        yield from emit("data.overlap_share", round(share, 4), says, events=[other.event_id, one.event_id])
    if train:
        most = max(train, key=lambda event: int(event.attr("count", 0)))
        count, unique = int(most.attr("count")), int(most.attr("unique"))
        yield from emit("data.train_samples", count, f"{most.source} holds {count:,} samples.", events=[most.event_id])
        says = f"{percent(1 - unique / count)} of the samples in {most.source} repeat another one."
        yield from emit("data.duplicate_share", round(1 - unique / count, 4), says, events=[most.event_id])


def _shared(train: Event, held_out: Event) -> float | None:
    """Estimate the share of held-out samples that are in training, from the hashes that both sketches cover."""
    if train.attr("key") != held_out.attr("key"):
        return None
    known: Sequence[str] = train.attr("sketch", ())
    asked: Sequence[str] = held_out.attr("sketch", ())
    limits = [sketch[-1] for event, sketch in ((train, known), (held_out, asked)) if sketch and not event.attr("whole")]
    limit = min(limits) if limits else None
    comparable = [item for item in asked if limit is None or item <= limit]
    if len(comparable) < _FEWEST:
        return None
    return len(set(comparable) & set(known)) / len(comparable)


FACTS: tuple[FactFunction, ...] = (overlap,)
