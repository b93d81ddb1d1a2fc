"""Configuration, packages and system of the run, one row a setting."""

from __future__ import annotations

from rca.baseline import Baseline
from rca.diagnosis import Setting
from rca.events import EventTable

SHOWN = 400
"""Rows kept over all groups."""
_LONGEST = 200


def settings(events: EventTable, *, baseline: Baseline | None = None) -> tuple[Setting, ...]:
    """Return the last value of every configuration key, every package and every system property.

    What differs from a healthy run carries its value there.
    """
    there = {(item.group, item.name): item.baseline for item in (baseline.differences if baseline else ())}
    rows: dict[tuple[str, str], Setting] = {}
    for event in events.events:
        if event.kind == "config":
            name = str(event.attr("key", event.name))
            rows["configuration", name] = Setting(
                group="configuration",
                name=name,
                value=event.text[:_LONGEST],
                source=event.source,
                baseline=there.get(("configuration", event.name)),
            )
        elif event.kind == "package":
            rows["packages", event.name] = Setting(
                group="packages",
                name=event.name,
                value=event.text[:_LONGEST],
                source=event.source,
                baseline=there.get(("packages", event.name)),
            )
        elif event.kind == "system":
            for key, value in (event.attrs or {}).items():
                if value is not None and not isinstance(value, (list, dict)):
                    name = f"{event.name.removeprefix('system.')} {event.attr('index', '')} {key}".replace("  ", " ")
                    rows["system", name] = Setting(
                        group="system", name=name, value=str(value)[:_LONGEST], source=event.source
                    )
    ordered = sorted(rows.values(), key=lambda row: (row.group, row.name))
    return tuple(ordered[:SHOWN])
