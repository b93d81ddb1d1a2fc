"""Prefixes of loggers and launchers, as they are printed."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rca.ingest.logs.prefixes import PrefixParser, label_of, strip_colours
from rca.ingest.logs.timestamps import Clock


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() * 1e6)


ANCHOR = at("2024-10-22T04:00:00")

LINES = [
    # python logging
    ("2024-10-22 03:11:05,444 | INFO | sft.main | ready", "ready", None, "2024-10-22T03:11:05.444", "info"),
    ("2024-10-22 03:11:05,444 - sft - WARNING - ready", "ready", None, "2024-10-22T03:11:05.444", "warning"),
    ("12/20/2021 09:02:14 - INFO - trainer - ready", "ready", None, "2021-12-20T09:02:14", "info"),
    ("ERROR:torch.distributed.elastic:failed here", "failed here", None, None, "error"),
    ("WARNING:root:ready", "ready", None, None, "warning"),
    (
        "[2025-03-14 15:12:08,120] [INFO] [runner.py:550:main] cmd = x",
        "cmd = x",
        None,
        "2025-03-14T15:12:08.12",
        "info",
    ),
    ("[INFO|trainer.py:1234] 2021-05-25 06:45:27,966 >> ready", "ready", None, "2021-05-25T06:45:27.966", "info"),
    ("2024-05-09 10:41:20 INFO  finetune: ready", "ready", None, "2024-05-09T10:41:20", "info"),
    # ISO with zones
    ("2024-06-28T12:30:44.811042Z  INFO launcher: ready", "ready", None, "2024-06-28T12:30:44.811042", "info"),
    ("[2025-06-27 08:15:40 +0000] [7] [ERROR] ready", "ready", None, "2025-06-27T08:15:40", "error"),
    ("2024-10-22T06:00:00+02:00 ready", "ready", None, "2024-10-22T04:00:00", None),
    # Megatron-LM
    (
        " [2024-10-22 03:11:05] iteration      620/  5000 |",
        "iteration      620/  5000 |",
        None,
        "2024-10-22T03:11:05",
        None,
    ),
    (" [rank2] is no prefix behind a blank", " [rank2] is no prefix behind a blank", None, None, None),
    # loguru
    ("2024-08-09 06:00:01.101 | INFO     | ocr.boot:main:12 - ready", "ready", None, "2024-08-09T06:00:01.101", "info"),
    # glog and c10d, with and without padding of month and day
    ("E1022 04:15:57.374146143 file.cpp:607] ready", "ready", None, "2024-10-22T04:15:57.374146", "error"),
    (
        "W0912 18:30:40.171000 140011 torch/distributed/run.py:779] ready",
        "ready",
        None,
        "2024-09-12T18:30:40.171",
        "warning",
    ),
    (
        "[rank0]:[E1022 04:15:57.374146143 ProcessGroupNCCL.cpp:607] ready",
        "ready",
        0,
        "2024-10-22T04:15:57.374146",
        "error",
    ),
    (
        "[rank3]:[E110 15:27:27.510220148 ProcessGroupNCCL.cpp:1515] ready",
        "ready",
        3,
        "2025-01-10T15:27:27.51022",
        "error",
    ),
    ("[E ProcessGroupNCCL.cpp:587] [Rank 1] ready", "ready", 1, None, "error"),
    ("I0816 06:11:20.382659 1 server.cc:304] ready", "ready", None, "2024-08-16T06:11:20.382659", "info"),
    # Slurm and launchers
    ("[default5]:ready", "ready", 5, None, None),
    ("[rank12]: ready", "ready", 12, None, None),
    ("[1,3]<stderr>: ready", "ready", 3, None, None),
    (
        "(VllmWorker rank=2 pid=5100) ERROR 10-02 05:59:48 [core.py:648] ready",
        "ready",
        2,
        "2024-10-02T05:59:48",
        "error",
    ),
    ("(Worker_TP1 pid=87) INFO 10-02 05:59:48 [core.py:648] ready", "ready", 1, "2024-10-02T05:59:48", "info"),
    ("(EngineCore_0 pid=233) ready", "ready", None, None, None),
    (
        "[2025-09-01 08:40:31,177] [INFO] [axo:262] [PID:2201] [RANK:3] ready",
        "ready",
        3,
        "2025-09-01T08:40:31.177",
        "info",
    ),
    ("[PG 0 (default_pg) Rank 3] ready", "[PG 0 (default_pg) Rank 3] ready", 3, None, None),
    # kernel and syslog
    ("[12345.678901] ready", "ready", None, None, None),
    ("[Mon Oct 21 04:15:57 2024] ready", "ready", None, "2024-10-21T04:15:57", None),
    ("Oct 21 04:15:57 gpu-22 systemd[1]: ready", "ready", None, "2024-10-21T04:15:57", None),
    # containers and web servers
    ("2024-10-22T04:15:57.123456789Z stderr F ready", "ready", None, "2024-10-22T04:15:57.123456", None),
    ("2024/10/22 04:15:57 [error] 7#7: ready", "7#7: ready", None, "2024-10-22T04:15:57", "error"),
    # time of day only: the day is the nearest known one
    ("[04:15:57] ready", "ready", None, "2024-10-22T04:15:57", None),
    ("04:15:57 | ready", "ready", None, "2024-10-22T04:15:57", None),
    ("INFO 10-21 11:48:03 api_server.py:712] ready", "ready", None, "2024-10-21T11:48:03", "info"),
    ("1729569600.25 ready", "ready", None, "2024-10-22T04:00:00.25", None),
    # no prefix at all
    ("RuntimeError: ready", "RuntimeError: ready", None, None, None),
    ("step: 20  loss:  8.8918", "step: 20  loss:  8.8918", None, None, None),
    ("- This IS expected", "- This IS expected", None, None, None),
    ("0: ready", "0: ready", None, None, None),
    ("", "", None, None, None),
]


@pytest.mark.parametrize(("line", "message", "rank", "time", "level"), LINES, ids=[row[0][:40] for row in LINES])
def test_prefix(line: str, message: str, rank: int | None, time: str | None, level: str | None) -> None:
    found = PrefixParser(Clock(ANCHOR)).parse(line, 1)
    assert found.message == message
    assert found.rank == rank
    assert found.time == (at(time) if time else None)
    assert found.level == level


@pytest.mark.parametrize("line", [row[0] for row in LINES])
def test_a_second_line_of_the_same_shape_reads_the_same(line: str) -> None:
    parser = PrefixParser(Clock(ANCHOR))
    assert parser.parse(line, 1) == parser.parse(line, 2)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('[rank2]:   File "a.py", line 3, in f', '  File "a.py", line 3, in f'),
        ('ERROR 05-26 07:50:41 [core.py:396]   File "a.py", line 3', '  File "a.py", line 3'),
        ("2024-10-22 03:11:05,444 ERROR    return f(x)", "return f(x)"),
        ("[default1]:    import deepspeed", "    import deepspeed"),
    ],
)
def test_indentation_behind_a_prefix_stays(line: str, message: str) -> None:
    assert PrefixParser(Clock(ANCHOR)).parse(line, 1).message == message


@pytest.mark.parametrize("name", ["RuntimeError", "torch.OutOfMemoryError", "FutureWarning"])
def test_the_name_of_an_exception_is_no_logger(name: str) -> None:
    assert PrefixParser(Clock()).parse(f"2024-10-22 03:11:05 {name}: bad", 1).message == f"{name}: bad"


def test_a_line_after_another_shape_is_read_on_its_own() -> None:
    parser = PrefixParser(Clock(ANCHOR))
    parser.parse("2024-10-22 03:11:05 INFO ready", 1)
    later = parser.parse("2024-10-22 03:11:06 INFO [rank 2] ready", 2)
    assert (later.message, later.time) == ("[rank 2] ready", at("2024-10-22T03:11:06"))
    assert parser.parse("2024-10-22 03:11:07 ERROR ready", 3).level == "error"


def test_task_numbers_count_only_where_every_line_has_one() -> None:
    assert label_of([f"{task}: text" for task in range(8)]) == "task"
    assert label_of(["0: text", "plain", "more", "text"]) is None
    assert label_of(["13:00:58 step 1", "13:01:58 step 2", "13:02:58 step 3"]) is None
    assert label_of([f"node7: [{rank}] text" for rank in range(4)]) == "node"
    assert label_of(["Epoch: [0] [1/2]", "started", "Epoch: [1] [1/2]", "done"]) is None


def test_task_and_node_labels_give_rank_and_host() -> None:
    assert PrefixParser(Clock(), label="task").parse("13: [rank13]: ready", 1).rank == 13
    found = PrefixParser(Clock(), label="task").parse("15:  [2024-08-29 17:08:54] iteration 3", 1)
    assert (found.rank, found.message, found.time) == (15, "iteration 3", at("2024-08-29T17:08:54"))
    assert PrefixParser(Clock(), label="task").parse("0:   File x", 1).message == "  File x"
    found = PrefixParser(Clock(), label="node").parse("node7: [5] ready", 1)
    assert (found.host, found.rank, found.message) == ("node7", 5, "ready")


def test_local_ranks_of_torchrun_become_global() -> None:
    parser = PrefixParser(Clock(), first_local=8)
    assert parser.parse("[default2]:ready", 1).rank == 10
    assert parser.parse("[rank2]:ready", 1).rank == 2


def test_colours_go() -> None:
    assert strip_colours("\x1b[31mstep: 20\x1b[0m \x1b]0;title\x07x") == "step: 20 x"


@given(st.text(max_size=400), st.integers(1, 10**9))
def test_any_text_gives_a_message_that_ends_it(text: str, line: int) -> None:
    found = PrefixParser(Clock(ANCHOR), label="task").parse(text, line)
    assert text.endswith(found.message)
    assert found.rank is None or found.rank >= 0
