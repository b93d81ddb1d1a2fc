"""Intermediate results that several facts share are computed once for one event table."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from rca.events import EventTable

T = TypeVar("T")


def once_per_table(compute: Callable[[EventTable], T]) -> Callable[[EventTable], T]:
    """Remember the result of a pure function of the event table for as long as that table lives."""
    known: WeakKeyDictionary[EventTable, T] = WeakKeyDictionary()

    @wraps(compute)
    def remembered(events: EventTable) -> T:
        if events not in known:
            known[events] = compute(events)
        return known[events]

    return remembered
