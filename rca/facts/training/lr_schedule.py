"""The configured learning rate schedule against the steps that ran: training on after its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.curves import config_number, curve

CATALOGUE: Mapping[str, str] = {
    "lr.past_schedule_share": "share of the logged steps that lie behind the end of the configured decay",
    "lr.floor_ratio": "configured smallest over configured peak learning rate",
}


def past_end(events: EventTable) -> Iterator[Fact]:
    """How much of the run took place at the floor of its schedule?"""
    end, floor, top = (config_number(events, key) for key in ("lr_decay_steps", "min_lr", "learning_rate"))
    setting, line = events.config("lr_decay_steps"), curve(events, "loss")
    smallest = events.config("min_lr")
    if floor is not None and top and smallest is not None:
        says = f"The schedule ends at {number(floor)}, {percent(floor / top)} of its peak of {number(top)}."
        yield from emit("lr.floor_ratio", floor / top, says, events=[smallest.event_id])
    if end is None or end <= 0 or setting is None or line is None or not np.isfinite(line.step).any():
        return
    steps = line.step[np.isfinite(line.step)]
    share = float(np.mean(steps >= end))
    says = f"The decay ends at step {number(end)}; {percent(share)} of the logged steps lie behind it."
    yield from emit("lr.past_schedule_share", share, says, events=[setting.event_id, int(line.event_id[-1])])


FACTS: tuple[FactFunction, ...] = (past_end,)
