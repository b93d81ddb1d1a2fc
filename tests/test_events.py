"""The event table: order, numbering, series."""

from __future__ import annotations

import math

import pyarrow.parquet as pq

from rca.events import MAX_TEXT, EventBuilder, EventTable, empty_events

SECOND = 1_000_000


def test_rows_are_ordered_by_time_and_untimed_rows_stay_behind_their_neighbour() -> None:
    first = EventBuilder("b.log")
    first.add(kind="log", name="x.late", line=1, time=20 * SECOND)
    first.add(kind="log", name="x.after_late", line=2)
    second = EventBuilder("a.log")
    second.add(kind="log", name="x.early", line=7, time=10 * SECOND)
    table = EventTable.from_parts([first.build(), second.build()])
    assert [event.name for event in table.events] == ["x.early", "x.late", "x.after_late"]
    assert [event.event_id for event in table.events] == [0, 1, 2]


def test_bulk_and_single_rows_share_one_table() -> None:
    builder = EventBuilder("m.csv", rank=3)
    builder.add(kind="config", name="learning_rate", value=0.1, text="0.1")
    builder.extend(3, kind="metric", name="loss", step=[1, 2, 3], value=[1.0, math.nan, math.inf], line=[1, 2, 3])
    assert len(builder) == 4
    table = EventTable.from_parts([builder.build()])
    series = table.metric("loss")
    assert series is not None
    assert series.rank == 3
    assert math.isnan(series.value[1])
    assert math.isinf(series.value[2])
    assert list(series.position) == [1, 2, 3]


def test_a_number_that_no_column_holds_costs_only_itself() -> None:
    out = EventBuilder("train.log")
    out.add(kind="metric", name="loss", line=1, step=3, rank=1, value=0.5)
    out.add(kind="metric", name="loss", line=2, step=10**19, rank=2**31, time=2**63, value=2**53 + 1)
    out.add(kind="metric", name="loss", line=3, step=-(2**63), value=-(10**400))
    rows = out.build().select(["line", "step", "rank", "time", "value"]).to_pydict()
    assert rows["line"] == [1, 2, 3]
    assert rows["step"] == [3, None, -(2**63)]
    assert (rows["rank"], rows["time"]) == ([1, None, None], [None] * 3)
    assert rows["value"] == [0.5, 2.0**53, -math.inf]


def test_metric_takes_the_source_with_most_points() -> None:
    short, long = EventBuilder("short.log"), EventBuilder("long.csv")
    short.extend(2, kind="metric", name="loss", value=[1.0, 2.0])
    long.extend(5, kind="metric", name="loss", value=[5.0] * 5)
    table = EventTable.from_parts([short.build(), long.build()])
    series = table.metric("loss")
    assert series is not None
    assert series.source == "long.csv"
    assert len(table.all_metrics("loss")) == 2


def test_missing_steps_fall_back_to_the_index_of_the_point() -> None:
    builder = EventBuilder("a.log")
    builder.extend(3, kind="metric", name="loss", value=[3.0, 2.0, 1.0])
    series = EventTable.from_parts([builder.build()]).metric("loss")
    assert series is not None
    assert list(series.position) == [0, 1, 2]


def test_text_is_capped_and_attributes_come_back() -> None:
    builder = EventBuilder("a.log")
    builder.add(kind="log", name="a.b", text="x" * 10_000, attrs={"bytes": 12, "op": "ALLREDUCE"})
    event = EventTable.from_parts([builder.build()]).named("a.b")[0]
    assert len(event.text) == MAX_TEXT
    assert event.attr("bytes") == 12
    assert event.attr("absent", "none") == "none"


def test_last_setting_wins_and_packages_are_a_mapping() -> None:
    builder = EventBuilder("a.log")
    builder.add(kind="config", name="learning_rate", line=1, text="1")
    builder.add(kind="config", name="learning_rate", line=9, text="2")
    builder.add(kind="package", name="torch", text="2.13.0")
    table = EventTable.from_parts([builder.build()])
    setting = table.config("learning_rate")
    assert setting is not None
    assert setting.text == "2"
    assert table.config("batch_size") is None
    assert table.packages == {"torch": "2.13.0"}


def test_an_empty_table_answers_every_question(tmp_path) -> None:
    table = EventTable.from_parts([empty_events()])
    assert len(table) == 0
    assert table.events == ()
    assert table.metric("loss") is None
    assert table.ranks == ()
    assert not table.has_text
    table.write_parquet(tmp_path / "events.parquet")
    assert pq.read_table(tmp_path / "events.parquet").num_rows == 0


def test_spans_are_selected_by_prefix() -> None:
    builder = EventBuilder("trace.json")
    builder.add(kind="span", name="ProfilerStep#1", duration_us=5.0)
    builder.add(kind="span", name="aten::mm", duration_us=1.0)
    table = EventTable.from_parts([builder.build()])
    assert list(table.spans("ProfilerStep")["duration_us"]) == [5.0]
    assert len(table.spans()) == 2
    assert table.events == ()


def test_events_that_mean_nothing_are_benign_warnings_and_all_else_stays() -> None:
    builder = EventBuilder("train.log")
    for kind, role, severity in (("log", "initiating", "fatal"), ("exception", None, None), ("log", "benign", "info")):
        builder.add(kind=kind, name="x", role=role, severity=severity)
    builder.add(kind="log", name="y", role="cascade", severity="error")
    table = EventTable.from_parts([builder.build()], text_sources=1)
    marked = table.as_benign([0, 1, 2])
    assert [(event.role, event.severity) for event in marked.events] == [
        ("benign", "warning"),
        ("benign", "warning"),
        ("benign", "info"),
        ("cascade", "error"),
    ]
    assert marked.table.schema == table.table.schema
    assert marked.has_text
    assert table.as_benign([]).events == table.events


def test_hosts_are_those_that_appear() -> None:
    builder = EventBuilder("train.log")
    builder.add(kind="log", name="x", host="node2")
    builder.add(kind="log", name="x", host="node1")
    assert EventTable.from_parts([builder.build()]).hosts == ("node1", "node2")
