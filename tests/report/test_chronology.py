from __future__ import annotations

from rca.diagnosis import Diagnosis, Failure, TimelineEntry
from rca.report.chronology import FAILURE_ID, chronology, moments, telling

from .samples import lr_too_high


def run(*entries: TimelineEntry, failure: Failure | None = None) -> Diagnosis:
    return lr_too_high().model_copy(update={"timeline": entries, "failure": failure})


def said(number: int, time: str | None = None, **more: object) -> TimelineEntry:
    row = {"id": f"tl-{number}", "kind": "log", "name": f"n{number}", "source": "a.log", "line": number, "text": "said"}
    return TimelineEntry.model_validate({**row, "time": time, **more})


FAILED = Failure(what="The loss is NaN", step=5, time="2026-01-01T00:00:03.5Z", source="events.0", line=9)


def test_a_failure_that_no_message_told_has_a_row_and_is_the_zero_of_all_times() -> None:
    rows = chronology(run(said(1, "2026-01-01T00:00:01Z"), said(2, "2026-01-01T00:00:05Z"), failure=FAILED))
    assert [row.ids[0] for row in rows] == ["tl-1", FAILURE_ID, "tl-2"]
    assert [row.entry.relative_s for row in rows] == [-2.5, 0.0, 1.5]
    assert (rows[1].entry.text, rows[1].entry.role, rows[1].names) == ("The loss is NaN", "initiating", ())


def test_a_failure_that_stands_in_the_timeline_is_not_told_twice() -> None:
    failure = FAILED.model_copy(update={"source": "a.log", "line": 2})
    assert [row.ids for row in chronology(run(said(1), said(2), failure=failure))] == [("tl-1",), ("tl-2",)]


def test_without_times_the_failure_stands_where_its_file_has_it() -> None:
    failure = Failure(what="NaN", source="a.log", line=2)
    rows = chronology(run(said(1), said(3), failure=failure))
    assert [row.ids[0] for row in rows] == ["tl-1", FAILURE_ID, "tl-3"]


def test_what_was_read_out_of_one_line_is_one_row() -> None:
    exception = said(4, severity="error", kind="exception", text="short", rank=2)
    known = exception.model_copy(update={"id": "tl-x", "name": "known", "text": "the whole line", "rank": None})
    (row,) = chronology(run(exception, known.model_copy(update={"role": "cascade"})))
    assert (row.ids, row.names) == (("tl-4", "tl-x"), ("n4", "known"))
    assert (row.entry.text, row.entry.role, row.entry.rank) == ("the whole line", "cascade", 2)


def test_a_stamp_cut_to_the_second_does_not_precede_what_it_reports() -> None:
    exit_code = said(7, "2026-01-01T00:00:03Z", kind="process", relative_s=-0.5)
    echo = said(8, "2026-01-01T00:00:03.7Z", relative_s=0.2)
    rows = chronology(run(exit_code, echo, said(9, "2026-01-01T00:00:04Z", relative_s=0.5), failure=FAILED))
    assert [row.ids[0] for row in rows] == [FAILURE_ID, "tl-8", "tl-7", "tl-9"]
    assert [row.entry.relative_s for row in rows] == [0.0, 0.2, None, 0.5]


def test_what_all_ranks_say_is_one_row_unless_it_may_be_the_failure() -> None:
    times = [f"2026-01-01T00:00:0{n}Z" for n in range(4)]
    hello = [
        said(n, times[n], name="nccl.init", severity="info", rank=n, text=f"<host-{n}>:51 INFO rank {n}")
        for n in (0, 1)
    ]
    errors = [said(n, times[n], name="nccl.lost", severity="error", rank=n - 2, text="lost") for n in (2, 3)]
    rows = chronology(run(*hello, *errors))
    assert [row.ids for row in rows] == [("tl-0", "tl-1"), ("tl-2",), ("tl-3",)]
    assert [(row.ranks, row.entry.count) for row in rows] == [((0, 1), 2), ((0,), 1), ((1,), 1)]
    assert [entry.id for entry in rows[0].again] == ["tl-1"]
    followed = [row.model_copy(update={"role": "cascade"}) for row in errors]
    assert [row.ranks for row in chronology(run(*hello, *followed))] == [(0, 1), (0, 1)]
    assert len(moments(run(*hello, *followed))) == 4
    other = hello[1].model_copy(update={"text": "<host-1>:51 WARN rank 1"})
    later = hello[1].model_copy(update={"time": "2026-01-01T01:00:00Z"})
    assert [len(chronology(run(hello[0], row))) for row in (hello[1], other, later)] == [1, 2, 2]


def test_few_rows_are_the_failure_and_what_is_no_mere_information() -> None:
    chatter = [said(n, severity="debug") for n in range(20)]
    told = [said(20, severity="error", role="initiating"), said(21, severity="warning"), said(22, severity="info")]
    rows = chronology(run(*chatter, *told, said(23, severity="error")))
    assert [row.ids[0] for row in telling(rows, 3)] == ["tl-20", "tl-21", "tl-23"]
    assert [row.ids[0] for row in telling(rows, 4)] == ["tl-19", "tl-20", "tl-21", "tl-23"]
    assert telling(rows, 100) == rows
    assert telling((), 3) == ()
