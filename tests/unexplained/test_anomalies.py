"""Which lines stand out, and in which order."""

from __future__ import annotations

from pathlib import Path

from rca.ingest.interface import Source
from rca.unexplained.anomalies import CANDIDATES, QUIET, candidates, look, odd_lines
from rca.unexplained.excerpts import Excerpt, Place

ORDINARY = [f"step {number} loss 2.{number} lr 1e-4" for number in range(500)]


def excerpt(lines: list[str], *, path: str = "a.log", rank: int | None = None) -> Excerpt:
    places, offset, before = [], 0, b""
    for line in lines:
        places.append(Place(offset, line.encode(), before))
        offset += len(line.encode()) + 1
        before = line.encode()
    source = Source(path=path, file=Path(path), size=offset, rank=rank)
    return Excerpt(source=source, size=offset, places=tuple(places), head=lines[0].encode())


def odd(*given: Excerpt, first: str = "", known: tuple[str, ...] = (), told=frozenset(), most: int = 8):
    looked = look(given, around={}, told=told)
    unknown = {
        (item.source.path, place.offset) for item in given for place in item.places if place.raw.decode() not in known
    }
    return odd_lines(looked, candidates(looked), given, unknown=unknown, first=first, most=most)


def test_louder_lines_come_first_and_ordinary_ones_not_at_all() -> None:
    lines = ["WARNING: cannot import fast path", *ORDINARY, "draining", "lease lost", "PoolError: gone"]
    assert [item.text for item in odd(excerpt(lines))] == [
        "PoolError: gone", "lease lost", "draining", "WARNING: cannot import fast path",
    ]  # fmt: skip


def test_of_equally_loud_lines_the_rare_one_and_then_the_early_one_comes_first() -> None:
    lines = [*ORDINARY, *["retry of the store failed"] * 5, "lease lost on blue pool", "peer gave up: denied"]
    assert [item.text for item in odd(excerpt(lines))][:3] == [
        "lease lost on blue pool", "peer gave up: denied", "retry of the store failed",
    ]  # fmt: skip


def test_what_a_job_says_all_the_time_counts_for_less() -> None:
    lines = [line for step in ORDINARY for line in (step, "probe failed")] + ["lease lost"]
    found = odd(excerpt(lines))
    assert [(item.text, item.count) for item in found] == [("lease lost", 1), ("probe failed", 500)]


def test_the_source_that_failed_first_leads_whatever_the_order_of_files() -> None:
    one, two = (
        excerpt([*ORDINARY, f"the lease of pool {name} was lost"], path=f"{name}.log", rank=rank)
        for rank, name in enumerate("ab")
    )
    found = odd(one, two, first="b.log")
    assert [(item.source.path, item.ranks, item.count) for item in found] == [("b.log", (0, 1), 2)]


def test_time_decides_between_sources_where_nothing_else_does() -> None:
    late = excerpt([*ORDINARY, "2026-03-01 12:00:09,000 - ERROR - pool - peer is gone"], path="a.log")
    early = excerpt(
        [*ORDINARY, "2026-03-01 12:00:01,000 - ERROR - pool - no lease any more for this job"], path="b.log"
    )
    assert [item.source.path for item in odd(late, early)] == ["b.log", "a.log"]


def test_what_the_rules_know_is_left_out() -> None:
    assert odd(excerpt([*ORDINARY, "lease lost"]), known=("lease lost",)) == []


def test_an_exception_that_was_read_counts_whatever_its_name() -> None:
    given = excerpt([*ORDINARY, "pool.LeaseExpired: 88"])
    found = odd(given, told={("a.log", given.places[-1].offset)})
    assert [(item.text, item.mark) for item in found] == [("pool.LeaseExpired: 88", "exception")]


def test_places_in_a_stack_are_left_out() -> None:
    stack = ["Traceback (most recent call last):", '  File "x.py", line 3, in f', "    raise PoolError(1)"]
    assert odd(excerpt([*ORDINARY, *stack])) == []


def test_few_lines_are_shown_for_their_rarity_alone() -> None:
    words = ["alpha opens", "beta turns the key twice", "gamma", "delta sleeps all day", "epsilon of the sea runs"]
    found = odd(excerpt([*ORDINARY, *words]))
    assert [item.text for item in found] == words[: -QUIET - 1 : -1]


def test_the_work_is_bounded_when_every_line_is_another() -> None:
    names = [
        f"{chr(97 + number % 26)}{chr(97 + number // 26 % 26)}{chr(97 + number // 676)}" for number in range(9_000)
    ]
    looked = look([excerpt([f"{name} failed {'x ' * (number % 40)}" for number, name in enumerate(names)])],
                  around={}, told=frozenset())  # fmt: skip
    assert len(candidates(looked)) <= CANDIDATES
