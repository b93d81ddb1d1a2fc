"""Tables of kubectl in their layouts, and what clusters write as documents."""

# ruff: noqa: E501 - tables stand as they are printed

from __future__ import annotations

from typing import Any

import pytest

EVENTS = """LAST SEEN   TYPE      REASON         OBJECT        MESSAGE
5m12s       Warning   OOMKilling     node/gpu-7    Memory cgroup out of memory: Killed process 4123 (python)
1m          Normal    Pulled         pod/train-0   Container image "x" already present on machine
"""
EVERYWHERE = """NAMESPACE   LAST SEEN   TYPE      REASON    OBJECT        MESSAGE
ml          5m12s       Warning   Evicted   pod/train-0   The node was low on resource: memory.
"""
WIDE = """LAST SEEN   TYPE      REASON    OBJECT        SUBOBJECT                  SOURCE           MESSAGE                       FIRST SEEN   COUNT   NAME
5m12s       Warning   BackOff   pod/train-0   spec.containers{trainer}   kubelet, gpu-7   Back-off restarting failed    10m          12      train-0.17a
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (EVENTS, {"reason": "OOMKilling", "object": "node/gpu-7", "message": "Memory cgroup out of memory: Killed process 4123 (python)"}),
        (EVERYWHERE, {"reason": "Evicted", "namespace": "ml", "object": "pod/train-0"}),
        (WIDE, {"reason": "BackOff", "count": 12, "message": "Back-off restarting failed"}),
    ],
)  # fmt: skip
def test_events(read: Any, text: str, expected: dict[str, Any]) -> None:
    event = read("events.txt", text).table.named("system.pod_event")[0]
    assert {key: event.attr(key) for key in expected} == expected
    assert (event.line, event.severity) == (2, "warning")


PODS = """NAME             READY   STATUS             RESTARTS       AGE   IP       NODE     NOMINATED NODE   READINESS GATES
train-worker-0   0/1     Evicted            0              5m    <none>   gpu-7    <none>           <none>
train-worker-2   0/1     CrashLoopBackOff   12 (3m ago)    40m   <none>   <none>   <none>           <none>
"""


def test_table_of_pods(read: Any) -> None:
    first, second = read("pods.txt", PODS).table.named("system.container")
    assert (first.attr("pod"), first.attr("pod_reason"), first.attr("node")) == ("train-worker-0", "Evicted", "gpu-7")
    assert (second.attr("restarts"), second.attr("reason"), second.attr("node")) == (12, None, None)


NODE = """Name:               gpu-7
Conditions:
  Type             Status    LastHeartbeatTime                 LastTransitionTime                Reason              Message
  ----             ------    -----------------                 ------------------                ------              -------
  MemoryPressure   False     Sun, 02 Mar 2025 04:00:00 +0000   Sun, 02 Mar 2025 04:00:00 +0000   KubeletHasMemory    kubelet has memory
  Ready            Unknown   Sun, 02 Mar 2025 04:00:00 +0000   Sun, 02 Mar 2025 04:00:00 +0000   NodeStatusUnknown   Kubelet stopped posting node status.
Capacity:
  nvidia.com/gpu:     8
"""


def test_described_node(read: Any) -> None:
    first, second = read("node.txt", NODE).table.named("system.condition")
    assert (first.attr("type"), first.attr("status")) == ("MemoryPressure", "False")
    wanted = {
        "object_kind": "Node",
        "object": "gpu-7",
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
    }
    assert {key: second.attr(key) for key in wanted} == wanted
    assert second.line == 6


def test_documents_of_the_cluster(read: Any) -> None:
    item = {
        "kind": "Event",
        "type": "Warning",
        "reason": "Preempted",
        "message": "Preempted by ml/other",
        "count": 3,
        "lastTimestamp": "2025-03-02T04:10:00Z",
        "involvedObject": {"kind": "Pod", "name": "train-0", "namespace": "ml"},
    }
    event = read("events.json", {"apiVersion": "v1", "kind": "List", "items": [item]}).one("system.pod_event")
    assert (event.attr("object"), event.attr("count"), event.time) == ("pod/train-0", 3, 1740888600 * 10**6)
    job = """apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
status:
  conditions:
  - {type: Failed, status: "True", reason: PyTorchJobFailed, message: 1 Worker replica(s) failed.}
"""
    condition = read("job.yaml", job).one("system.condition")
    assert (condition.attr("object_kind"), condition.attr("type"), condition.text) == (
        "PyTorchJob",
        "Failed",
        "1 Worker replica(s) failed.",
    )
