"""Processes, nodes and ranks brought together."""

from __future__ import annotations

from rca.events import EventBuilder, EventTable
from rca.facts.failure.chronology import first
from rca.facts.failure.processes import processes


def nccl(rank: int, host: str, pid: int) -> EventBuilder:
    builder = EventBuilder(f"rank_{rank}.log", rank=rank)
    text = f"{host}:{pid}:{pid + 9} [{rank % 8}] NCCL INFO Bootstrap : Using eth0"
    builder.add(kind="log", name="nccl.standing_notices", line=1, time=1_000_000, role="benign", text=text)
    return builder


def table(*builders: EventBuilder) -> EventTable:
    return EventTable.from_parts([builder.build() for builder in builders], text_sources=len(builders))


def facts(events: EventTable) -> dict[str, object]:
    return {fact.name: fact.value for fact in first(events)}


def test_nodes_give_out_the_same_process_ids() -> None:
    found = processes(table(nccl(3, "n1", 400), nccl(9, "n2", 400), nccl(10, "n2.cluster", 401)))
    assert found.rank(400, "n2") == 9
    assert found.rank(400, "N1.cluster") == 3
    assert found.rank(400, None) is None
    assert found.rank(401, None) == 10
    assert found.rank(400, "n7") is None
    assert found.on_host("n2") == (9, 10)


def test_the_rank_of_a_killed_process_is_that_of_its_id_on_its_node() -> None:
    kernel = EventBuilder("dmesg_n2.txt", host="n2")
    kernel.add(kind="log", name="kernel.oom_invoked", line=1, time=9_000_000, role="initiating", severity="fatal")
    kernel.add(
        kind="log", name="kernel.oom_kill", line=2, time=9_000_000, role="initiating", severity="fatal",
        attrs={"pid": 400},
    )  # fmt: skip
    events = table(nccl(3, "n1", 400), nccl(9, "n2", 400), kernel)
    assert facts(events)["failure.rank"] == 9


def test_a_lost_node_takes_its_ranks_along() -> None:
    manager = EventBuilder("slurm.out")
    manager.add(
        kind="log", name="slurm.node_failure", line=1, role="initiating", severity="fatal", attrs={"node": "n2"}
    )
    found = facts(table(nccl(3, "n1", 400), nccl(9, "n2", 400), nccl(8, "n2", 397), manager))
    assert found["failure.host"] == "n2"
    assert found["failure.lost_ranks"] == 2
    assert found["failure.rank"] == 8


def test_a_task_that_the_scheduler_names_is_a_rank_where_ranks_have_such_numbers() -> None:
    manager = EventBuilder("slurm.out")
    for line, task in enumerate((9, 3), 1):
        manager.add(kind="process", name="process.exit", line=line, value=-9.0, attrs={"task": task})
    assert facts(table(nccl(3, "n1", 400), nccl(9, "n2", 400), manager))["failure.rank"] == 9
    assert "failure.rank" not in facts(table(nccl(5, "n1", 400), nccl(6, "n2", 400), manager))
