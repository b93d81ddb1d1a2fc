"""Reading in several processes: the order, the process that dies, the reader that raises."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable

import pytest

from rca.errors import UnreadableSource
from rca.ingest.parallel import in_processes


def _read(item: int) -> int:
    if item == 3:
        os._exit(9)
    if item == 5:
        raise ValueError("five")
    return item * item


def _outcome(result: Callable[[], int]) -> int | str:
    try:
        return result()
    except (UnreadableSource, ValueError) as error:
        return type(error).__name__


def test_a_process_that_dies_takes_only_its_own_item_along() -> None:
    found = [_outcome(result) for _, result in in_processes(range(8), _read, jobs=2)]
    assert found == [0, 1, 4, "UnreadableSource", 16, "ValueError", 36, 49]


def test_leaving_early_leaves_no_process_behind() -> None:
    before = set(multiprocessing.active_children())
    reading = in_processes(range(4, 40), _read, jobs=2)
    assert next(reading)[1]() == 16
    reading.close()
    assert set(multiprocessing.active_children()) <= before


def test_a_reader_that_raises_is_told_as_it_is() -> None:
    _, result = next(in_processes([5], _read, jobs=1))
    with pytest.raises(ValueError, match="five"):
        result()
