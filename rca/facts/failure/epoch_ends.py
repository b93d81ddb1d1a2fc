"""Whether the last planned epoch was said to be over."""

from __future__ import annotations

from rca.events import Event, EventTable
from rca.facts.training.curves import config_number


def last_epoch_over(events: EventTable) -> int | None:
    """Return the event that ends the last epoch of the plan, which the line itself or the settings tell."""
    told = events.named("progress.epoch_over", kind="log")
    numbers = [int(number) for event in told if (number := _first(event, "epoch", "ended", "took")) is not None]
    if len(numbers) < 2:
        return None
    planned = _first(told[-1], "epochs", "total") or config_number(events, "epochs")
    counted = numbers[-1] + (1 if min(numbers) == 0 else 0)
    return told[-1].event_id if planned is not None and 0 < planned <= counted else None


def _first(event: Event, *names: str) -> float | None:
    """Return the first number among the captures of one line."""
    return next((float(value) for name in names if isinstance(value := event.attr(name), int)), None)
