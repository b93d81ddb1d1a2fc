"""The batch that a recipe's learning rate is meant for, against the batch of the run (OpenMMLab: `auto_scale_lr`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rca.events import EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.curves import config_number, config_text

CATALOGUE: Mapping[str, str] = {
    "lr.recipe_batch_over": "batch that the learning rate of the recipe is meant for, over that of the run (x)",
}
_BASE = re.compile(r"base_batch_size['\"]?\s?[=:]\s?(\d{1,6})")
_ON = re.compile(r"enable['\"]?\s?[=:]\s?True")
_ALONE = re.compile(r"\[0\]|range\(0, ?1\)|none|1")


def recipe_batch(events: EventTable) -> Iterator[Fact]:
    """Does one device run with the rate of eight? Only where the log says that it is alone."""
    setting, batch = events.config("auto_scale_lr"), config_number(events, "batch_size")
    base = None if setting is None else _BASE.search(setting.text)
    alone = any(_ALONE.fullmatch(config_text(events, key)) for key in ("gpu_ids", "launcher", "gpu number"))
    if setting is None or base is None or batch is None or batch < 1 or _ON.search(setting.text) or not alone:
        return
    says = f"The learning rate of the recipe is meant for a batch of {base[1]}; this run has {number(batch)}."
    yield from emit("lr.recipe_batch_over", int(base[1]) / batch, says, unit="x", events=[setting.event_id])


FACTS: tuple[FactFunction, ...] = (recipe_batch,)
