"""Groups of samples that stand on both sides of a split: patients, speakers, scenes, as programs count them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.curves import curves

CATALOGUE: Mapping[str, str] = {
    "data.groups_shared": "groups (patients, speakers, ...) that training and held-out split share, at least",
    "data.groups_shared_share": "those over the groups of the held-out split",
    "eval.external_score": "score on data from elsewhere",
    "eval.external_lost": "share of the validation score that is lost on data from elsewhere",
    "eval.test_lost": "share of the validation score that is lost on test data, where a report names both",
}

_OF_ONE_SPLIT = re.compile(r"(?<![a-z])(?:train|val|valid|test|dev|eval|held[- ]?out|hospital|site|cohort)", re.I)
"""Words of a line that counts the groups of one split and not of all data."""
_SCORES = {"auc": ("eval_auc", "val_auc", "auc", "auroc"), "accuracy": ("eval_accuracy",)}


def groups(events: EventTable) -> Iterator[Fact]:
    """Do the groups of both splits add up to more than there are?"""
    totals = {
        _unit(event.attr("unit")): (int(total), event.event_id)
        for event in events.named("data.group_total", kind="log")
        if isinstance(total := event.attr("total"), int) and not _OF_ONE_SPLIT.search(event.text)
    }
    counted = (events.named(name, kind="log") for name in ("data.group_counts", "data.groups_of_splits"))
    for event in chain.from_iterable(counted):
        train, held, unit = event.attr("train"), event.attr("held"), _unit(event.attr("unit"))
        if not isinstance(train, int) or not isinstance(held, int) or unit not in totals or held <= 0:
            continue
        total, place = totals[unit]
        shared = train + held - total
        if total < max(train, held) or shared < 0:
            continue
        says = (
            f"{train} {unit}s in training and {held} in validation make more than the {total} there are: "
            f"{shared} are in both."
        )
        if shared == 0:
            says = f"The {total} {unit}s are divided into {train} for training and {held} for validation."
        yield from emit("data.groups_shared", shared, says, events=[event.event_id, place])
        yield from emit("data.groups_shared_share", shared / held, says, events=[event.event_id, place])
        return


def _unit(word: object) -> str:
    return str(word or "").lower().rstrip("s")


def elsewhere(events: EventTable) -> Iterator[Fact]:
    """How much of the validation score is left on data from elsewhere?"""
    for event in events.named("eval.external_result", kind="log"):
        score, metric = event.attr("score"), str(event.attr("metric") or "").lower()
        names = _SCORES["auc" if metric.startswith("au") else "accuracy"]
        known = [line for name in names for line in curves(events, name) if line.finite.any()]
        best = max((float(line.value[line.finite].max()) for line in known), default=None)
        if not isinstance(score, (int, float)) or best is None or not 0 < best <= 1:
            continue
        found = score / 100 if score > 1 else float(score)
        lost = percent(max(1 - found / best, 0))
        says = f"The {metric} is {number(found)} on data from elsewhere, {number(best)} in validation: {lost} is lost."
        yield from emit("eval.external_score", found, says, events=[event.event_id])
        yield from emit("eval.external_lost", 1 - found / best, says, events=[event.event_id])
        return


def tested(events: EventTable) -> Iterator[Fact]:
    """How much of the validation score is left on test data, where a report names both?"""
    for event in reversed(events.named("eval.test_below_validation", kind="log")):
        held, found = event.attr("validation"), event.attr("score")
        if not isinstance(held, float) or not isinstance(found, float) or held <= 0 or (held > 1) != (found > 1):
            continue
        lost = max(1 - found / held, 0.0)
        says = f"The score is {number(held)} in validation and {number(found)} on test data: {percent(lost)} is lost."
        yield from emit("eval.test_lost", lost, says, events=[event.event_id])
        return


FACTS: tuple[FactFunction, ...] = (groups, elsewhere, tested)
