from __future__ import annotations

import numpy as np
import pytest

from rca.facts.failure.chronology import failure
from rca.facts.failure.roles import effective_role
from rca.facts.registry import extract

from ..tables import START, Run, decay

PEER = "NCCL error in: ../ProcessGroupNCCL.cpp:1275, remote process exited or there was a network error"


def four_ranks(*, culprit: int = 2, timed: bool = True) -> Run:
    """Rank `culprit` raises, the others lose their peer ten minutes later; the launcher names a victim."""
    run = Run()
    for rank in range(4):
        source = f"rank_{rank}.log"
        run.curves({"loss": decay(20)}, source=source, rank=rank, seconds=1.0 if timed else None)
        if rank == culprit:
            run.raised("ValueError", "bad sample", source=source, rank=rank, after=21.0 if timed else None)
        else:
            after = 620.0 + rank if timed else None
            run.log("nccl.watchdog_timeout", "Watchdog ..", role="cascade", source=source, rank=rank, after=after)
            run.raised("torch.distributed.DistBackendError", PEER, source=source, rank=rank, after=after)
    for rank in range(4):
        run.exited(1 if rank == culprit else -6, rank=rank, after=700.0 if timed else None)
    run.raised("torch.distributed.elastic.multiprocessing.errors.ChildFailedError", "", source="launcher.log")
    return run


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("culprit", [0, 2, 3])
def test_the_rank_that_raised_is_first(culprit: int, timed: bool) -> None:
    found = four_ranks(culprit=culprit, timed=timed).values()
    assert found["failure.rank"] == culprit
    assert found["failure.event"] == "ValueError"
    assert found["failure.kind"] == "exception"
    assert found["failure.only_rank"] is True
    assert found["failure.ranks"] == 1
    assert found["failure.cascade_ranks"] >= 3
    assert found["failure.only_cascades"] is False
    assert found["failure.step"] == 19
    if timed:
        assert found["failure.lead_s"] == pytest.approx(599, abs=3)


def test_one_process_has_no_other_ranks() -> None:
    run = Run().curves({"loss": decay(20)}, seconds=1.0).raised("KeyError", "'labels'", after=21.0)
    found = run.exited(1, after=21.0).values()
    assert found["failure.ranks"] == 1
    assert found["failure.cascade_ranks"] == 0
    assert "failure.only_rank" not in found
    assert "failure.lead_s" not in found


@pytest.mark.parametrize(
    ("states", "role", "failed"),
    [
        (["COMPLETED", "COMPLETED"], "cascade", False),
        (["COMPLETED", "FAILED"], "cascade", True),
        ([], "cascade", True),
        (["COMPLETED"], "initiating", True),
    ],
)
def test_a_connection_that_breaks_when_a_completed_job_ends_is_no_failure(
    states: list[str], role: str, failed: bool
) -> None:
    run = Run().curves({"loss": decay(20)}).log("c10d.store_broken", "failed to recv, got 0 bytes", role=role)
    for line, state in enumerate(states, start=3):
        run.source("sacct.txt").add(kind="system", name="system.slurm_job", line=line, attrs={"state": state})
    found = run.values()
    assert found["run.failed"] is failed
    assert ("failure.event" in found) is failed


def test_torn_stack_gives_way_to_the_message_below_it() -> None:
    run = Run()
    run.source("slurm.out").add(
        kind="exception", name="truncated traceback", line=run.line("slurm.out"), attrs={"truncated": True}
    )
    assert run.values()["failure.event"] == "truncated traceback"
    run.log("cuda.illegal_access", severity="fatal", source="slurm.out")
    assert run.values()["failure.event"] == "cuda.illegal_access"


def test_the_same_error_everywhere() -> None:
    run = Run()
    for rank in range(4):
        run.raised("ImportError", "undefined symbol", source=f"rank_{rank}.log", rank=rank, after=float(rank))
    found = run.values()
    assert found["failure.same_everywhere"] is True
    assert found["failure.only_rank"] is False
    assert found["failure.rank"] == 0


def test_only_echoes() -> None:
    run = Run()
    for rank in range(3):
        run.raised("torch.distributed.DistBackendError", PEER, source=f"rank_{rank}.log", rank=rank, after=1.0)
    found = run.values()
    assert found["failure.only_cascades"] is True
    assert found["run.failed"] is True
    assert "failure.rank" not in found


def test_survived_error_is_not_the_failure() -> None:
    run = Run().curves({"loss": decay(10)}).raised("TimeoutError", "upload failed, will retry")
    run.curves({"loss": decay(50)}, start=10)
    found = run.values()
    assert found["failure.survived"] == 1
    assert "failure.event" not in found
    assert found["run.failed"] is False


def test_error_at_the_end_is_the_failure() -> None:
    run = Run().curves({"loss": decay(10)}).raised("TimeoutError", "upload failed, will retry")
    run.curves({"loss": decay(50)}, start=10).raised("KeyError", "'labels'")
    assert run.values()["failure.event"] == "KeyError"


def test_error_before_the_goodbye_is_survived() -> None:
    run = Run().raised("ConnectionError", "tracker").log("run.completed", role="benign", severity="info")
    found = run.values()
    assert found["run.completed"] is True
    assert "failure.event" not in found


def test_error_after_the_goodbye_counts() -> None:
    run = Run().log("run.completed", role="benign", severity="info").raised("OSError", "No space left on device")
    found = run.values()
    assert found["run.failed"] is True
    assert found["run.completed"] is False


def test_bare_kill_stays_a_signal() -> None:
    found = Run().curves({"loss": decay(20)}).exited(-9, rank=1, signal="SIGKILL").values()
    assert found["failure.kind"] == "signal"
    assert found["failure.signal"] == 9
    assert found["failure.rank"] == 1


def test_kernel_record_explains_a_kill() -> None:
    run = Run().exited(-9, rank=1, pid=77, after=10.0)
    run.log("kernel.oom_kill", severity="fatal", source="dmesg.txt", after=9.0, pid=77)
    found = run.values()
    assert found["failure.event"] == "kernel.oom_kill"
    assert found["failure.rank"] == 1


def test_old_kernel_record_does_not() -> None:
    run = Run().exited(-9, rank=1, pid=77, after=90_000.0)
    run.log("kernel.oom_kill", severity="fatal", source="dmesg.txt", after=9.0, pid=12)
    assert run.values()["failure.event"] == "kernel.oom_kill"
    late = Run().curves({"loss": decay(20)}, seconds=4000.0).exited(-9, rank=1, pid=77, after=90_000.0)
    late.log("kernel.oom_kill", severity="fatal", source="dmesg.txt", after=9.0, pid=12)
    assert late.values()["failure.event"] == "process.exit"


def test_termination_is_explained_by_the_scheduler() -> None:
    run = Run().raised("torch.distributed.elastic.multiprocessing.api.SignalException", "got signal: 15", after=5.0)
    run.log("slurm.time_limit", severity="fatal", source="slurm.err", after=5.5)
    assert run.values()["failure.event"] == "slurm.time_limit"


def test_network_error_gives_way_to_a_dead_node() -> None:
    run = Run().log("nccl.ib_completion_error", source="node_0.log", rank=0, after=10.0)
    run.log("slurm.node_failure", severity="fatal", source="slurm.out", after=350.0)
    assert run.values()["failure.event"] == "slurm.node_failure"


def test_network_error_alone_stays() -> None:
    found = Run().log("nccl.ib_completion_error", source="node_0.log", rank=0, after=10.0).values()
    assert found["failure.event"] == "nccl.ib_completion_error"
    assert found["failure.rank"] == 0


def test_aborts_and_terminations_are_never_first() -> None:
    run = Run().exited(-6, rank=0, after=1.0).exited(-15, rank=1, after=2.0).exited(-11, rank=2, after=3.0)
    assert run.values()["failure.rank"] == 2


def test_warnings_and_inline_patterns_are_no_failures() -> None:
    run = Run().log("x.y", severity="warning").log("inline.p0123", role="initiating").log("a.b", role="benign")
    assert run.values()["run.failed"] is False


def test_silent_rank() -> None:
    run = Run()
    for rank in range(3):
        count = 30 if rank == 1 else 100
        run.curves({"loss": decay(count)}, source=f"rank_{rank}.log", rank=rank, seconds=5.0)
        if rank != 1:
            run.log("nccl.watchdog_timeout", role="cascade", source=f"rank_{rank}.log", rank=rank, after=1100.0)
    found = run.values()
    assert found["failure.silent_rank"] == 1
    assert found["failure.silent_lead_s"] == pytest.approx(955)


def test_ranks_that_never_log_are_not_silent() -> None:
    run = Run().curves({"loss": decay(100)}, source="rank_0.log", rank=0, seconds=5.0)
    run.log("run.started", role="benign", severity="info", source="rank_1.log", rank=1, after=0.0)
    run.log("nccl.watchdog_timeout", role="cascade", source="rank_0.log", rank=0, after=1100.0)
    assert "failure.silent_rank" not in run.values()


@pytest.mark.parametrize(
    ("name", "text", "role"),
    [
        ("ValueError", "too many values", "initiating"),
        ("c10::DistBackendError", "x", "cascade"),
        ("RuntimeError", "[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer", "cascade"),
        ("RuntimeError", "CUDA error: device-side assert triggered", "cascade"),
        ("KeyboardInterrupt", "", "teardown"),
        ("SystemExit", "0", None),
        ("Fatal Python error", "Aborted", "cascade"),
        ("Fatal Python error", "Segmentation fault", "initiating"),
    ],
)
def test_roles_of_exceptions(name: str, text: str, role: str | None) -> None:
    event = Run().raised(name, text).table().events[0]
    assert effective_role(event) == role


def observed(run: Run) -> object:
    table = run.table()
    return failure(table, extract(table))


def test_failure_in_words() -> None:
    found = observed(four_ranks())
    assert found is not None
    assert found.what == "ValueError: bad sample"  # type: ignore[attr-defined]
    assert found.rank == 2  # type: ignore[attr-defined]
    assert found.source == "rank_2.log"  # type: ignore[attr-defined]
    assert found.line == 21  # type: ignore[attr-defined]
    assert found.time.startswith("2023-11-14T22:13:41")  # type: ignore[attr-defined]
    assert START == 1_700_000_000_000_000


def test_failure_in_words_without_an_error() -> None:
    broken = observed(Run().curves({"loss": np.append(decay(50), [np.nan] * 5)}))
    assert broken is not None
    assert broken.step == 50  # type: ignore[attr-defined]
    assert "NaN" in broken.what  # type: ignore[attr-defined]
    silent = observed(Run().config(max_steps=1000).curves({"loss": decay(100)}))
    assert silent is not None
    assert "99 of 1000" in silent.what  # type: ignore[attr-defined]
    assert observed(Run().curves({"loss": decay(100)})) is None
    killed = observed(Run().exited(-9, signal="SIGKILL"))
    assert killed is not None
    assert killed.what == "The process was ended by SIGKILL"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("frames", "raised", "own"),
    [
        ([("/job/train.py", "state = found['best']")], "KeyError", True),
        ([("/job/train.py", "raise ValueError(name)")], "ValueError", True),
        ([("/job/train.py", "out = torch.stack(batch)")], "RuntimeError", False),
        ([("/job/train.py", "main()"), ("/v/site-packages/a/b.py", "raise ValueError(x)")], "ValueError", False),
    ],
)  # fmt: skip
def test_a_slip_of_the_program_is_told_from_what_a_library_raised(
    frames: list[tuple[str, str]], raised: str, own: bool
) -> None:
    stack = [{"file": file, "line": 3, "function": "f", "code": code} for file, code in frames]
    mine = [frame for frame in stack if "site-packages" not in frame["file"]]
    run = Run()
    attrs = {"frames": stack, "user_frame": mine[-1], "type": raised, "message": "x"}
    run.source("train.log").add(kind="exception", name=raised, text="x", line=9, severity="error", attrs=attrs)
    found = run.values()
    assert found["failure.own_raise"] is own
    assert found["failure.function"] == "f"


def test_an_end_of_file_from_another_process_is_an_echo() -> None:
    run = Run()
    for line, file in enumerate(("/x/lib/python3.11/multiprocessing/connection.py", "/job/read.py"), start=1):
        run.source("train.log").add(
            kind="exception", name="EOFError", line=line, severity="error", attrs={"raised_in": file}
        )
    assert [effective_role(event) for event in run.table().events] == ["cascade", "initiating"]


@pytest.mark.parametrize(("name", "expected"), [("engine.stuck", True), ("engine.slow", False)])
def test_a_kill_after_the_word_of_a_watchdog_began_nothing(name: str, expected: bool) -> None:
    run = Run()
    run.source("serve.log").add(kind="log", name=name, line=7, role="cascade", severity="error", text="stands still")
    run.source("serve.log").add(kind="process", name="process.exit", line=9, value=-9, text="Killed")
    assert run.values()["failure.only_cascades"] is expected
