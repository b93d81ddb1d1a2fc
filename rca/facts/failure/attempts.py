"""Several attempts of one job in the folder: does the same failure come back at the same step?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from rca.events import Event, EventTable
from rca.facts.emit import emit
from rca.facts.failure.roles import effective_role, owner, short_name
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "failure.same_step_again": "number of attempts that failed in the same way, on the same rank, at the same step",
    "failure.same_step": "the step at which they failed",
}

_ATTEMPT = re.compile(r"attempt|retry|retri|restart|resum|requeue|(?<![a-z])(?:try|run|trial)[_-]?\d", re.I)
"""Words with which schedulers and people number the attempts of one job."""


def attempts(events: EventTable) -> Iterator[Fact]:
    """Find a failure that two files of one rank report at the same step of the training."""
    found: dict[tuple[str, int, int | None], dict[str, Event]] = defaultdict(dict)
    for event in events.events:
        if event.kind in {"log", "exception"} and event.step and effective_role(event) == "initiating":
            place = (short_name(event.name), event.step, owner(event))
            found[place].setdefault(event.source, event)
    again = {
        place: by_source
        for place, by_source in found.items()
        if len(by_source) >= 2 and (place[2] is not None or all(_ATTEMPT.search(source) for source in by_source))
    }
    if not again:
        return
    (name, step, rank), by_source = max(again.items(), key=lambda item: (len(item[1]), -item[0][1], item[0][0]))
    who = "" if rank is None else f" on rank {rank}"
    says = f"{name} came{who} after step {step} in {len(by_source)} attempts: {', '.join(sorted(by_source)[:4])}."
    seen = [event.event_id for event in by_source.values()]
    yield from emit("failure.same_step_again", len(by_source), says, events=seen)
    yield from emit("failure.same_step", step, says, unit="step", events=seen)


FACTS: tuple[FactFunction, ...] = (attempts,)
