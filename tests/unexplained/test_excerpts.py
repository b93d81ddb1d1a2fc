"""Logs of any size are looked at within a budget, and places in them are found again."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rca.ingest.interface import Source
from rca.unexplained.excerpts import Budget, excerpts, line_numbers


def source(folder: Path, data: bytes, name: str = "a.log") -> Source:
    (folder / name).write_bytes(data)
    return Source(path=name, file=folder / name, size=len(data))


def look(item: Source, **more):
    given = {"around": {}, "told": {}, "budget": Budget(sampled=16_384), **more}
    return excerpts([item], {item.path: item.size}, **given)


def long_log(lines: int = 20_000) -> list[bytes]:
    return [b"step %d loss 2.1" % number for number in range(lines)]


def test_a_small_log_is_looked_at_whole(tmp_path) -> None:
    found, left_out = look(source(tmp_path, b"one\n\ntwo\nthree"))
    assert [place.raw for place in found[0].places] == [b"one", b"two", b"three"]
    assert [place.before for place in found[0].places] == [b"", b"one", b"two"]
    assert left_out == 0


def test_of_a_long_log_both_ends_the_failure_and_every_loud_line_are_looked_at(tmp_path) -> None:
    lines = long_log()
    lines[4_321] = b"lease could not be renewed"
    data = b"\n".join(lines) + b"\n"
    failed = data.index(b"step 12000 ")
    found, _ = look(source(tmp_path, data), around={"a.log": failed})
    seen = {place.raw for place in found[0].places}
    assert {lines[0], lines[-1], lines[4_321], lines[12_001]} <= seen
    assert len(seen) < 2_000


def test_of_a_flood_of_loud_lines_the_first_and_the_last_are_kept(tmp_path) -> None:
    data = b"".join(b"error %d: the store is gone\n" % number for number in range(50_000))
    found, _ = look(source(tmp_path, data), budget=Budget(sampled=4_096, loud=100))
    raw = [place.raw for place in found[0].places]
    assert raw[0] == b"error 0: the store is gone"
    assert raw[-1] == b"error 49999: the store is gone"
    assert len(raw) < 500


def test_a_log_beyond_the_budget_is_sampled_and_a_packed_one_left_out(tmp_path) -> None:
    data = b"\n".join(long_log())
    plain = source(tmp_path, data)
    packed = source(tmp_path, gzip.compress(data), "b.log.gz")
    sizes = {"a.log": len(data), "b.log.gz": len(data)}
    found, left_out = excerpts([plain, packed], sizes, around={}, told={}, budget=Budget(scanned=1000, sampled=8_192))
    assert [item.source.path for item in found] == ["a.log"]
    assert left_out == 1


def test_a_packed_log_is_looked_at_unpacked(tmp_path) -> None:
    found, _ = look(source(tmp_path, gzip.compress(b"one\nthe lease is lost\n"), "b.log.gz"))
    assert [place.raw for place in found[0].places] == [b"one", b"the lease is lost"]


def test_a_log_that_is_gone_is_left_out(tmp_path) -> None:
    found, left_out = look(Source(path="x.log", file=tmp_path / "x.log", size=3))
    assert (found, left_out) == ([], 1)


@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_line_numbers_are_those_of_an_editor(tmp_path, ending) -> None:
    lines = [b"line %d" % number for number in range(1, 3_001)]
    data = b"\n".join(lines) + ending
    item = source(tmp_path, data)
    wanted = [1, 2, 700, 1_500, 1_501, 2_999, 3_000]
    offsets = {data.index(b"line %d" % number + (b"\n" if number < 3_000 else b"")): number for number in wanted}
    assert line_numbers(item, offsets, total=3_000, size=len(data)) == offsets
