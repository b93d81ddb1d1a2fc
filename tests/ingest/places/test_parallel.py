"""Reading in several processes: the order, the process that dies, the reader that raises."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rca.errors import UnreadableSource
from rca.ingest.places.parallel import in_processes, pays


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


def _sizes(items: Sequence[int]) -> list[int]:
    return [4**item for item in items]


def test_a_process_that_dies_takes_only_its_own_item_along() -> None:
    finished = in_processes(range(8), _read, sizes=_sizes(range(8)), jobs=2)
    found = {index: _outcome(result) for index, result in finished}
    assert [found[index] for index in range(8)] == [0, 1, 4, "UnreadableSource", 16, "ValueError", 36, 49]


def _read_twice(item: tuple[str, int]) -> int:
    """End the process at the first try of item 2, as a process that is short of memory is ended."""
    folder, number = item
    tried = Path(folder) / "tried"
    if number == 2 and not tried.exists():
        tried.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_what_a_killed_process_was_reading_is_read_again(tmp_path: Path) -> None:
    items = [(str(tmp_path), number) for number in range(6)]
    found = {index: result() for index, result in in_processes(items, _read_twice, sizes=[1] * 6, jobs=2)}
    assert found == {number: number for number in range(6)}


def test_the_largest_come_first_and_alike_ones_in_order() -> None:
    finished = in_processes(range(6, 12), _read, sizes=[10, 11, 5000, 12, 100_000, 13], jobs=1)
    assert [index for index, _ in finished] == [4, 2, 0, 1, 3, 5]


def test_leaving_early_leaves_no_process_behind() -> None:
    before = set(multiprocessing.active_children())
    items = range(6, 40)
    reading = in_processes(items, _read, sizes=_sizes(items), jobs=2)
    next(reading)
    reading.close()
    assert set(multiprocessing.active_children()) <= before


def test_a_reader_that_raises_is_told_as_it_is() -> None:
    _, result = next(in_processes([5], _read, sizes=[1], jobs=1))
    with pytest.raises(ValueError, match="five"):
        result()


def test_few_bytes_are_not_worth_a_process() -> None:
    assert not pays([1000] * 100)
    assert not pays([1 << 40])
    assert not pays([])
    assert pays([80 << 20] * 2)
    assert pays([10] * 5000)
