"""What schedulers and clusters say of the job and its nodes."""

# ruff: noqa: E501 - tables stand as they are printed

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rca.facts.machine.scheduler import node_names

Facts = Callable[[dict[str, Any]], dict[str, Any]]
SACCT = "JobID|State|ExitCode|Elapsed|NodeList\n991|{state}|0:0|02:00:00|n[1-4]\n991.0|{step}|0:125|02:00:00|n[1-4]\n992|NODE_FAIL|0:0|1:00|m1\n"


@pytest.mark.parametrize(
    ("state", "step", "expected"),
    [
        ("CANCELLED by 0", "OUT_OF_MEMORY", "OUT_OF_MEMORY"),
        ("TIMEOUT", "CANCELLED", "TIMEOUT"),
        ("FAILED", "FAILED", "FAILED"),
    ],
)
def test_the_state_that_tells_most(facts_of: Facts, state: str, step: str, expected: str) -> None:
    assert facts_of({"sacct.txt": SACCT.format(state=state, step=step)})["env.slurm_state"] == expected


SINFO = "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\ngpu*         up 2-00:00:00      1  {state} {nodes}\n"


@pytest.mark.parametrize(
    ("state", "nodes", "down"), [("down*", "n[3-5]", "n3"), ("down*", "n[7-9]", None), ("drain", "n3", None)]
)
def test_only_nodes_of_the_job_count(facts_of: Facts, state: str, nodes: str, down: str | None) -> None:
    files = {
        "sacct.txt": SACCT.format(state="FAILED", step="FAILED"),
        "sinfo.txt": SINFO.format(state=state, nodes=nodes),
    }
    assert facts_of(files).get("env.job_node_down") == down


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3,7],m02", ["n1", "n2", "n3", "n7", "m02"]),
        ("gpu-a[08-10]-ib", ["gpu-a08-ib", "gpu-a09-ib", "gpu-a10-ib"]),
        ("n[3-1]", []),
        ("n[x]", ["n", "x"]),
    ],
)
def test_lists_of_nodes(listed: str, names: list[str]) -> None:
    assert node_names(listed) == names


def test_a_huge_range_of_nodes_is_bounded() -> None:
    assert len(node_names("n[1-99999999],n[1-99999999]")) <= 20_001


QSTAT = "Job Id: 1.pbs\n    job_state = F\n    resources_used.walltime = 24:00:05\n    Resource_List.walltime = 24:00:00\n    resources_used.mem = 63gb\n    Resource_List.mem = 64gb\n"


def test_accounts_of_pbs(facts_of: Facts) -> None:
    found = facts_of({"qstat.txt": QSTAT})
    assert found["env.slurm_time_share"] == pytest.approx(1.0, abs=1e-3)
    assert found["env.max_rss_share"] == pytest.approx(63 / 64, abs=1e-3)


NODE = "apiVersion: v1\nkind: Node\nmetadata: {{name: gpu-7}}\nstatus: {{conditions: [{{type: Ready, status: '{ready}', reason: R, message: m}}, {{type: DiskPressure, status: '{disk}', reason: D, message: d}}]}}\n"


@pytest.mark.parametrize(
    ("ready", "disk", "words"),
    [("True", "False", None), ("Unknown", "True", "Ready=Unknown"), ("True", "True", "DiskPressure=True")],
)
def test_conditions_of_nodes(facts_of: Facts, ready: str, disk: str, words: str | None) -> None:
    assert facts_of({"node.yaml": NODE.format(ready=ready, disk=disk)}).get("env.node_condition") == words


def test_how_a_job_ended(facts_of: Facts) -> None:
    job = "apiVersion: a/v1\nkind: JobSet\nmetadata: {name: t}\nstatus: {conditions: [{type: Completed, status: 'False'}, {type: Failed, status: 'True', reason: FailedJobs, message: m}]}\n"
    assert facts_of({"job.yaml": job})["env.job_condition"] == "Failed (FailedJobs)"


@pytest.mark.parametrize(
    ("message", "want"),
    [
        ("The node was low on resource: ephemeral-storage.", "ephemeral-storage"),
        ("Pod ephemeral local storage usage exceeds the total limit of containers 50Gi. ", "ephemeral-storage"),
        ("The node had condition: [DiskPressure]. ", "ephemeral-storage"),
        ("The node had condition: [MemoryPressure]. ", "memory"),
        ("evicted by user admin", "other"),
    ],
)
def test_evictions(facts_of: Facts, message: str, want: str) -> None:
    item = {
        "kind": "Event",
        "type": "Warning",
        "reason": "Evicted",
        "message": message,
        "involvedObject": {"kind": "Pod", "name": "t"},
    }
    found = facts_of({"events.json": {"apiVersion": "v1", "kind": "List", "items": [item]}})
    assert (found["env.eviction"], found["env.pod_ended_by"]) == (want, "Evicted")


def test_the_reason_of_the_whole_pod(facts_of: Facts) -> None:
    ended = {"name": "m", "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "t-0"},
        "spec": {"containers": [{"name": "m", "image": "r/t"}]},
        "status": {"phase": "Failed", "reason": "DeadlineExceeded", "containerStatuses": [ended]},
    }
    found = facts_of({"pod.json": pod})
    assert (found["env.pod_reason"], found["env.container_reason"]) == ("DeadlineExceeded", "Error")
