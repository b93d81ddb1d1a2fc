"""What sources keep in runs of very many of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rca.events import EventBuilder
from rca.ingest.interface import Ingested, Source
from rca.ingest.places.gathered import Gathered
from rca.ingest.places.shares import ALIKE, FIRST_RANKS, LAST_RANKS, POINTS, REPEATS, reduced, with_shares


def source(path: str, rank: int | None = None) -> Source:
    return Source(path, Path(path), 1, rank=rank)


def test_small_runs_keep_everything() -> None:
    found = with_shares([source(f"rank_{rank}.log", rank) for rank in range(FIRST_RANKS + LAST_RANKS)])
    assert not any(item.one_of_many for item in found)


def test_first_and_last_ranks_and_files_of_few_keep_everything() -> None:
    sources = [source(f"{rank}.log", rank) for rank in range(1000)] + [source("dmesg.txt"), source("slurm.out")]
    whole = [item.path for item in with_shares(sources) if not item.one_of_many]
    assert len(whole) == FIRST_RANKS + LAST_RANKS + 2
    assert {"0.log", "999.log", "dmesg.txt", "slurm.out"} <= set(whole)
    assert "500.log" not in whole


def test_of_many_files_in_one_folder_the_first_keep_everything() -> None:
    sources = [source(f"many/{number:05d}.log") for number in range(ALIKE + 10)] + [source("few/a.log")]
    shared = [item.path for item in with_shares(sources) if item.one_of_many]
    assert shared == [f"many/{number:05d}.log" for number in range(ALIKE, ALIKE + 10)]


def repeated(builder: EventBuilder, count: int) -> EventBuilder:
    for line in range(1, count + 1):
        builder.add(kind="log", name="nccl.remote_error", line=line, role="cascade", text=f"gone {line}")
    return builder


def test_repeats_are_counted_and_the_first_and_last_kept() -> None:
    builder = repeated(EventBuilder("a.log", rank=7), 500)
    builder.add(kind="exception", name="ValueError", line=501, text="own")
    kept = reduced(Ingested(builder.build(), warnings=("before",)), one_of=400)
    rows = kept.events.to_pylist()
    assert [row["line"] for row in rows] == [*range(1, REPEATS), 500, 501]
    assert json.loads(rows[REPEATS - 1]["attrs"]) == {"count": 500}
    assert kept.warnings[0] == "before"
    assert "492 events" in kept.warnings[1]


def test_a_count_of_the_reader_is_kept() -> None:
    builder = repeated(EventBuilder("a.log", rank=7), 199)
    builder.add(kind="log", name="nccl.remote_error", line=9000, text="last", attrs={"count": 7000, "peer": "x"})
    last = reduced(Ingested(builder.build()), one_of=400).events.to_pylist()[-1]
    assert json.loads(last["attrs"]) == {"count": 7000, "peer": "x"}


def test_every_rank_of_a_merged_log_is_heard() -> None:
    builder = EventBuilder("node_3.log")
    for line in range(400):
        builder.add(kind="log", name="nccl.remote_error", line=line, rank=line % 8)
    kept = reduced(Ingested(builder.build()), one_of=400).events
    assert sorted(set(kept["rank"].to_pylist())) == list(range(8))
    assert kept.num_rows == 8 * REPEATS


def test_metrics_are_thinned_over_their_whole_range_and_odd_points_stay() -> None:
    builder = EventBuilder("a.log", rank=7)
    values = [float("nan") if step == 4321 else 1.0 for step in range(10_000)]
    builder.extend(10_000, kind="metric", name="loss", step=list(range(10_000)), value=values)
    kept = reduced(Ingested(builder.build()), one_of=400).events
    steps = kept["step"].to_pylist()
    assert POINTS // 400 <= len(steps) <= POINTS // 400 + 1
    assert steps == sorted(steps)
    assert {0, 4321, 9999} <= set(steps)


def test_settings_of_one_of_many_are_kept_when_nobody_said_them_before() -> None:
    gathered = Gathered()
    for rank, rate in ((0, "0.1"), (1, "0.1"), (2, "0.2")):
        builder = EventBuilder(f"{rank}.log", rank=rank)
        builder.add(kind="config", name="learning_rate", text=rate)
        builder.add(kind="log", name="x", text="said")
        gathered.add(Source(f"{rank}.log", Path("x"), 1, rank=rank, one_of_many=int(rank > 0)), builder.build())
    rows = [row for table in gathered.tables() for row in table.to_pylist()]
    assert [(row["rank"], row["text"]) for row in rows if row["kind"] == "config"] == [(0, "0.1"), (2, "0.2")]
    assert sum(row["kind"] == "log" for row in rows) == 3


@pytest.mark.parametrize("count", [1, 300])
def test_tables_keep_their_order_when_joined(count: int) -> None:
    gathered = Gathered()
    for number in range(count):
        gathered.add(source(str(number)), repeated(EventBuilder(f"{number}.log"), 2).build())
    names = [name for table in gathered.tables() for name in table["source"].to_pylist()]
    assert names == [f"{number}.log" for number in range(count) for _ in range(2)]
