from __future__ import annotations

import json
from typing import Any

import pytest

from rca.ingest.machine.exit_codes import signal_of, signed

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "trainer-0"},
    "spec": {
        "nodeName": "node-3",
        "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}],
        "containers": [
            {
                "name": "main",
                "image": "trainer:1",
                "env": [{"name": "WORLD_SIZE", "value": "8"}, {"name": "TOKEN", "valueFrom": {"secretKeyRef": {}}}],
                "resources": {"limits": {"memory": "12Gi", "nvidia.com/gpu": 8}, "requests": {"memory": "8Gi"}},
                "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],
            }
        ],
    },
    "status": {
        "containerStatuses": [
            {
                "name": "main",
                "restartCount": 4,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
            }
        ]
    },
}
DOCKER = [
    {
        "Name": "/train",
        "RestartCount": 0,
        "State": {"Status": "exited", "OOMKilled": True, "ExitCode": 137, "Error": ""},
        "HostConfig": {"ShmSize": 67108864, "Memory": 1073741824, "IpcMode": "private"},
        "Config": {"Image": "trainer:1", "Env": ["NCCL_DEBUG=INFO", "BROKEN"]},
    }
]


@pytest.mark.parametrize("shape", ["json", "yaml", "list", "deployment"])
def test_a_pod_tells_limits_exits_and_environment(read: Any, shape: str) -> None:
    document: dict[str, Any] = POD
    if shape == "list":
        document = {"apiVersion": "v1", "kind": "List", "items": [POD]}
    if shape == "deployment":
        document = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": POD}}
    found = read("pod.yaml" if shape == "yaml" else "pod.json", json.dumps(document))
    container = found.one("system.container")
    assert container.attr("memory_limit_bytes") == 12 * 2**30
    assert [container.attr(key) for key in ("last_reason", "restarts", "shm_bytes")] == ["OOMKilled", 4, 2**26]
    assert found.one("process.exit").value == -9
    assert found.one("process.exit").attr("signal") == "SIGKILL"
    assert found.config() == {"world_size": 8}


def test_docker_inspect_tells_shared_memory_and_the_oom_kill(read: Any) -> None:
    found = read("inspect.json", DOCKER)
    container = found.one("system.container")
    assert (container.attr("shm_bytes"), container.attr("reason"), container.attr("container")) == (
        2**26,
        "OOMKilled",
        "train",
    )
    assert found.one("process.exit").value == -9
    assert found.config() == {"nccl_debug": "INFO"}


def test_a_compose_file_tells_shared_memory_and_environment(read: Any) -> None:
    text = (
        "services:\n  train:\n    image: trainer:1\n    shm_size: 64mb\n    mem_limit: 8g\n"
        "    environment: [NCCL_DEBUG=INFO]\n  db:\n    build: .\n    environment: {OMP_NUM_THREADS: 4}\n"
    )
    found = read("docker-compose.yml", text)
    train, _db = found.table.named("system.container")
    assert (train.attr("shm_bytes"), train.attr("memory_limit_bytes")) == (2**26, 2**33)
    assert found.config() == {"nccl_debug": "INFO", "omp_num_threads": 4}


def test_a_broken_pod_is_read_as_far_as_it_goes(read: Any) -> None:
    broken = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [{"name": "a", "env": "x", "resources": []}, 3]},
        "status": 1,
    }
    assert read("pod.json", broken).one("system.container").attr("container") == "a"


@pytest.mark.parametrize(
    ("code", "number", "name"),
    [(137, -9, "SIGKILL"), (-9, -9, "SIGKILL"), (143, -15, "SIGTERM"), (139, -11, "SIGSEGV"), (1, 1, None),
     (0, 0, None), (255, 255, None), (-999, -999, None)],
)  # fmt: skip
def test_exit_codes_name_their_signal(code: int, number: int, name: str | None) -> None:
    assert signed(code) == number
    assert signal_of(code) == name


def test_a_container_that_completed_after_a_restart_ended_well(read: Any) -> None:
    ended = {"name": "t", "restartCount": 1, "lastState": {"terminated": {"exitCode": 143, "reason": "Error"}}}
    ended["state"] = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "t"}]}}
    found = read("pod.json", json.dumps({**pod, "status": {"containerStatuses": [ended]}}))
    assert found.one("process.exit").value == 0
    assert found.one("system.container").attr("last_exit_code") == 143
