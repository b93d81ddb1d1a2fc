from __future__ import annotations

from typing import Any

import pytest

DF = """Filesystem                         Size  Used Avail Use% Mounted on
overlay                            877G  312G  521G  38% /
shm                                 64M   64M     0 100% /dev/shm
10.0.0.4:/home                     1.0T  990G   10G  99% /mnt/nfs home
done
"""


def test_df_rows_are_file_systems(read: Any) -> None:
    found = read("df.txt", f"$ df -h\n{DF}").table.named("system.filesystem")
    assert [(event.attr("mount"), event.value) for event in found] == [
        ("/", 0.38),
        ("/dev/shm", 1.0),
        ("/mnt/nfs home", 0.99),
    ]
    assert found[1].attr("size_bytes") == 64 * 2**20


def test_df_in_blocks_counts_kilobytes(read: Any) -> None:
    text = "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/sda1 1048576 524288 524288 50% /data\n"
    assert read("df.txt", text).one("system.filesystem").attr("size_bytes") == 2**30


@pytest.mark.parametrize(
    ("row", "total"),
    [("Mem:           251Gi       100Gi        50Gi       1.0Gi       101Gi       149Gi", 251 * 2**30),
     ("Mem:       263795040   100000000    50000000     1000000   100000000   150000000", 263795040 * 1024)],
)  # fmt: skip
def test_free_tells_the_host_memory(read: Any, row: str, total: int) -> None:
    head = "               total        used        free      shared  buff/cache   available\n"
    memory = read("free.txt", f"{head}{row}\nSwap:             0           0           0\n").one("system.memory")
    assert memory.attr("total_bytes") == total
    assert 0.35 < memory.value < 0.42


TOP = """top - 14:22:31 up 41 days,  3:02,  1 user,  load average: 3.18, 3.09, 2.97
Tasks: 412 total,   4 running, 408 sleeping,   0 stopped,   0 zombie
%Cpu(s):  9.6 us,  0.8 sy,  0.0 ni, 89.4 id,  0.1 wa,  0.0 hi,  0.1 si,  0.0 st
MiB Mem : 257612.3 total, 101220.9 free,  20114.2 used, 136277.2 buff/cache

    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
  71822 ml        20   0   14.1g   2.6g 210044 R 100.0   1.0  33:12.70 python main.py (DataLoader 0)
  71744 ml        20   0   22.7g   4.9g   1.1g S   7.3   2.0   4:40.52 python main.py
"""


def test_top_tells_load_and_processes(read: Any) -> None:
    found = read("top.txt", TOP)
    assert found.one("system.load").attrs == {"user_percent": 9.6, "idle_percent": 89.4, "iowait_percent": 0.1}
    first, second = found.table.named("system.process")
    assert (first.value, first.attr("command")) == (100.0, "python main.py (DataLoader 0)")
    assert second.attr("resident_bytes") == pytest.approx(4.9 * 2**30)


def test_limits(read: Any) -> None:
    text = "max locked memory  (kbytes, -l) 64\nopen files  (-n) 1024\nstack size  (kbytes, -s) unlimited\n"
    found = {event.attr("flag"): event.value for event in read("limits.txt", text).table.named("system.limit")}
    assert found == {"-l": 64.0, "-n": 1024.0, "-s": None}


LS = """total 12K
-rw-r--r-- 1 ana ana  862 May  8 03:11 config.json
drwxr-xr-x 2 ana ana 4.0K May  8 03:11 global_step4200
-rw-r--r-- 1 ana ana    0 May  8 03:11 model-00001-of-00002.safetensors
lrwxrwxrwx 1 ana ana   12 May  8 03:11 latest -> config.json

global_step4200:
-rw-r--r-- 1 ana ana 118K May  8 03:11 optim states.pt
"""


def test_a_listing_tells_names_and_sizes(read: Any) -> None:
    listing = read("listing.txt", LS).one("files.listing")
    assert listing.attr("files") == {
        "config.json": 862,
        "model-00001-of-00002.safetensors": 0,
        "global_step4200/optim states.pt": 118 * 1024,
    }
    assert listing.attr("empty") == ["model-00001-of-00002.safetensors"]


IBSTAT = """CA 'mlx5_4'
\tCA type: MT4129
\tNumber of ports: 2
\tPort 1:
\t\tState: Down
\t\tPhysical state: Polling
\t\tRate: 40
\tPort 2:
\t\tState: Active
\t\tPhysical state: LinkUp
CA 'mlx5_5'
\tPort 1:
\t\tState: Active
Infiniband device 'mlx5_6' port 1 status:
\tstate:\t\t 1: DOWN
\tphys state:\t 3: Disabled
"""


def test_interconnect_ports(read: Any) -> None:
    found = read("ibstat.txt", IBSTAT).table.named("system.ib_port")
    assert [(event.attr("adapter"), event.attr("port"), event.value) for event in found] == [
        ("mlx5_4", 1, 0.0),
        ("mlx5_4", 2, 1.0),
        ("mlx5_5", 1, 1.0),
        ("mlx5_6", 1, 0.0),
    ]
    assert found[3].attr("physical_state") == "Disabled"


SACCT = """JobID           JobName      State ExitCode    Elapsed  Timelimit     MaxRSS     ReqMem
------------ ---------- ---------- -------- ---------- ---------- ---------- ----------
1234567           train OUT_OF_ME+    0:125   05:12:11   10:00:00                  64Gn
1234567.0        python     FAILED      0:9   05:12:11             65011712K
"""
SACCT_PIPED = "JobID|JobName|State|ExitCode|Elapsed|Timelimit|\n77|a b|TIMEOUT|0:0|1-00:00:00|1-00:00:00|\n"
SCONTROL = """JobId=991 JobName=train
   UserId=ana(1000) GroupId=ana(1000) MCS_label=N/A
   JobState=NODE_FAIL Reason=NodeDown Dependency=(null)
   RunTime=02:00:00 TimeLimit=1-00:00:00 TimeMin=N/A
   NodeList=n[1-4] NumNodes=4 ExitCode=0:15
"""
SEFF = """Job ID: 1234
State: OUT_OF_MEMORY (exit code 0)
Job Wall-clock time: 01:00:00
Memory Utilized: 63.50 GB
Memory Efficiency: 99.22% of 64.00 GB
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            SACCT,
            {
                "state": "OUT_OF_ME+",
                "elapsed_s": 18731.0,
                "time_limit_s": 36000.0,
                "requested_memory_bytes": 64 * 2**30,
            },
        ),
        (SACCT_PIPED, {"state": "TIMEOUT", "elapsed_s": 86400.0, "time_limit_s": 86400.0, "job_name": "a b"}),
        (
            SCONTROL,
            {"state": "NODE_FAIL", "reason": "NodeDown", "elapsed_s": 7200.0, "signal": "SIGTERM", "nodes": "n[1-4]"},
        ),
        (SEFF, {"state": "OUT_OF_MEMORY", "memory_share": 0.9922, "max_rss_bytes": int(63.5 * 2**30)}),
    ],
)
def test_slurm_accounts(read: Any, text: str, expected: dict[str, Any]) -> None:
    job = read("slurm.txt", text).table.named("system.slurm_job")[0]
    assert {key: job.attr(key) for key in expected} == expected
    assert job.severity == "error"


def test_a_step_that_was_killed_names_its_signal(read: Any) -> None:
    step = read("sacct.txt", SACCT).table.named("system.slurm_job")[1]
    assert (step.attr("signal"), step.attr("max_rss_bytes")) == ("SIGKILL", 65011712 * 1024)


POD = """Name:             osprey-0
Namespace:        inference
Node:             gpu-b-02/10.20.6.12
Status:           Running
Containers:
  server:
    Image:          server:1
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
    Ready:          False
    Restart Count:  4
    Limits:
      cpu:             8
      memory:          12Gi
      nvidia.com/gpu:  1
    Requests:
      memory:          8Gi
    Environment:
      A:  b
  sidecar:
    State:          Running
    Restart Count:  0
Conditions:
  Type   Status
Events:
  Type     Reason   Age                   From     Message
  ----     ------   ----                  ----     -------
  Normal   Pulled   64s (x5 over 9m)      kubelet  Container image "server:1" already present
  Warning  BackOff  3s (x21 over 7m50s)   kubelet  Back-off restarting failed container
"""


def test_a_described_pod(read: Any) -> None:
    found = read("describe.txt", POD)
    server, sidecar = found.table.named("system.container")
    wanted = {
        "pod": "osprey-0",
        "node": "gpu-b-02",
        "container": "server",
        "last_reason": "OOMKilled",
        "last_exit_code": 137,
        "restarts": 4,
        "memory_limit_bytes": 12 * 2**30,
        "memory_request_bytes": 8 * 2**30,
        "gpus": "1",
    }
    assert {key: server.attr(key) for key in wanted} == wanted
    assert sidecar.attr("state") == "Running"
    assert found.one("process.exit").value == -9
    assert [(event.attr("reason"), event.attr("count")) for event in found.table.named("system.pod_event")] == [
        ("Pulled", 5),
        ("BackOff", 21),
    ]


def test_listed_pod_events(read: Any) -> None:
    text = "LAST SEEN   TYPE   REASON   OBJECT   MESSAGE\n9m12s   Warning   Evicted   pod/a   node was low on memory\n"
    event = read("events.txt", text).one("system.pod_event")
    assert (event.attr("reason"), event.severity) == ("Evicted", "warning")


def test_sacct_without_the_column_of_states(read: Any) -> None:
    text = (
        "$ sacct -j 7 --format=JobID,Elapsed,Timelimit,MaxRSS,ExitCode\n"
        "       JobID    Elapsed  Timelimit     MaxRSS ExitCode \n"
        "------------ ---------- ---------- ---------- -------- \n"
        "           7   12:00:11   12:00:00                 0:0 \n"
        "         7.0   12:00:38             74120344K      0:9 \n"
    )
    job, step = read("sacct.txt", text).table.named("system.slurm_job")
    assert (job.attr("elapsed_s"), job.attr("time_limit_s")) == (43211, 43200)
    assert step.attr("signal") == "SIGKILL"
