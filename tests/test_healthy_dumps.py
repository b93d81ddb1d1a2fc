"""A healthy run beside the dumps of healthy machines: nothing in them may raise a cause."""

# ruff: noqa: E501 - tables stand as they are printed

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rca.pipeline import judge
from rca.rules.load import Knowledge, load

TRAIN = "".join(
    f"2025-03-02 04:{i // 6:02d}:{i % 6 * 10:02d} step {i * 10} loss {4.0 - 2.0 * (1 - 0.97**i):.4f} grad_norm {1.0 + (i * 7 % 5) / 50:.3f} lr 3e-4 throughput {640 + i % 3}\n"
    for i in range(60)
)
QUERY = "timestamp, index, name, temperature.gpu, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], power.limit [W], clocks.current.sm [MHz], clocks.max.sm [MHz], ecc.errors.uncorrected.volatile.total, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, pcie.link.width.max, clocks_event_reasons.hw_thermal_slowdown, clocks_event_reasons.sw_power_cap\n"
DMON = "#Date       Time        gpu    pwr  gtemp     sm    mem   mclk   pclk  pviol  tviol     fb   dbecc\n#YYYYMMDD   HH:MM:SS    Idx      W      C      %      %    MHz    MHz      %   bool     MB    errs\n"
HEALTHY = {
    "train.log": f"{TRAIN}2025-03-02 04:11:00 Training finished in 0.2 h\n",
    "gpu.csv": QUERY
    + "".join(
        f"2025/03/02 04:{m:02d}:00.{g}23, {g}, NVIDIA A100-SXM4-80GB, {60 + g}, {97 + g % 2} %, 71920 MiB, 81920 MiB, 398.11 W, 400.00 W, {1410 - 15 * (g % 2)} MHz, 1410 MHz, 0, 4, 4, 16, 16, Not Active, Active\n"
        for m in range(8)
        for g in range(8)
    ),
    "dmon.log": DMON
    + "".join(
        f" 20250302   04:{m:02d}:00      {g}    398     {60 + g}     98     60   1593   1410     12      0  71920      0\n"
        for m in range(8)
        for g in range(8)
    ),
    "gpustat.txt": "".join(
        f"[{g}] NVIDIA A100-SXM4-80GB | {60 + g}°C,  98 % | 71920 / 81920 MB | ana:python/{41233 + g}(71000M) root:Xorg/900(4M)\n"
        for g in range(8)
    ),
    "nvlink.txt": "".join(
        f"GPU {g}: NVIDIA A100 (UUID: GPU-{g})\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n" for g in range(8)
    ),
    "metrics.prom": '# TYPE DCGM_FI_DEV_XID_ERRORS gauge\nDCGM_FI_DEV_XID_ERRORS{gpu="0",Hostname="node17"} 0\n# TYPE DCGM_FI_DEV_ECC_DBE_VOL_TOTAL counter\nDCGM_FI_DEV_ECC_DBE_VOL_TOTAL{gpu="0",Hostname="node17"} 0\n# TYPE DCGM_FI_DEV_THERMAL_VIOLATION counter\nDCGM_FI_DEV_THERMAL_VIOLATION{gpu="0",Hostname="node17"} 0\n',
    "dmesg.txt": "kern  :info  : [    0.000000] Linux version 5.15.0-91-generic\nkern  :info  : [    1.000000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.104.05\nkern  :warn  : [   12.300000] pcieport 0000:00:01.0: AER: Corrected error received: 0000:07:00.0\nkern  :info  : [  120.000000] EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode\n",
    "journal.json": json.dumps(
        {
            "__REALTIME_TIMESTAMP": "1740888000123456",
            "SYSLOG_IDENTIFIER": "systemd",
            "_HOSTNAME": "node17",
            "MESSAGE": "Started Session 3 of User ana.",
        }
    ),
    "free.txt": "               total        used        free      shared  buff/cache   available\nMem:           251Gi       100Gi        50Gi       1.0Gi       101Gi       149Gi\nSwap:             0B          0B          0B\n",
    "iostat.txt": "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           5.20    0.00    2.10    0.30    0.00   92.40\n\nDevice            r/s     rkB/s r_await     w/s  w_await  %util\nsda            310.00  40000.00    1.50    0.00     0.00  12.00\n",
    "ps.txt": "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\nana 5 101 24.5 9 64000000 ? Rl 03:00 60:00 python train.py\n",
    "memory.events": "low 0\nhigh 0\nmax 812\noom 0\noom_kill 0\n",
    "df.txt": "Filesystem      Size  Used Avail Use% Mounted on\n/dev/sda1       877G  312G  521G  38% /\nshm             126G     0  126G   0% /dev/shm\n",
    "sacct.txt": "JobID|JobName|State|ExitCode|DerivedExitCode|Elapsed|Timelimit|MaxRSS|ReqMem|NodeList\n991|train|COMPLETED|0:0|0:0|00:12:00|1-00:00:00||512G|n[1-4]\n991.0|python|COMPLETED|0:0||00:12:00||126870912K||n[1-4]\n",
    "sinfo.txt": "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\ngpu*         up 2-00:00:00      1 drain* n13\ngpu*         up 2-00:00:00      2   down n[11-12]\ngpu*         up 2-00:00:00      4  alloc n[1-4]\n",
    "pods.txt": "NAME               READY   STATUS      RESTARTS   AGE\ntrain-worker-0     0/1     Completed   0          5m\n",
    "events.txt": "LAST SEEN   TYPE     REASON      OBJECT        MESSAGE\n1m          Normal   Scheduled   pod/train-0   Successfully assigned ml/train-0 to gpu-7\n1m          Normal   Started     pod/train-0   Started container trainer\n",
    "node.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: gpu-7}\nstatus: {conditions: [{type: MemoryPressure, status: 'False'}, {type: Ready, status: 'True', reason: KubeletReady}]}\n",
    "ethtool.txt": "NIC statistics:\n     rx_packets: 123456\n     rx_crc_errors_phy: 0\n     rx_out_of_buffer: 12\n",
    "memory.txt": "{'allocated_bytes.all.current': 8589934592, 'inactive_split_bytes.all.current': 94967296, 'num_alloc_retries': 0, 'num_ooms': 0, 'reserved_bytes.all.current': 9179869184}\n",
    "pip.json": json.dumps([{"name": "torch", "version": "2.4.0+cu121"}, {"name": "numpy", "version": "1.26.4"}]),
}


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return load()


def test_nothing_is_wrong(tmp_path: Path, knowledge: Knowledge) -> None:
    for name, text in HEALTHY.items():
        (tmp_path / name).write_text(text)
    assert judge(tmp_path, knowledge).order[0] == "none"


SICK = {
    "gpu.csv": ("performance.throttling", QUERY + "".join(f"2025/03/02 04:{m:02d}:00.{g}23, {g}, NVIDIA A100, {90 if g == 5 else 62}, 99 %, 71920 MiB, 81920 MiB, 300.11 W, 400.00 W, {705 if g == 5 else 1410} MHz, 1410 MHz, 0, 4, 4, 16, 16, {'Active' if g == 5 else 'Not Active'}, Not Active\n" for m in range(8) for g in range(8))),
    "memory.events": ("memory.host_oom", "low 0\nhigh 0\nmax 812\noom 3\noom_kill 3\n"),
    "sacct.txt": ("scheduler.time_limit", "JobID|State|ExitCode|Elapsed|Timelimit|NodeList\n991|TIMEOUT|0:0|1-00:00:05|1-00:00:00|n[1-4]\n"),
    "node.yaml": ("scheduler.node_failure", "apiVersion: v1\nkind: Node\nmetadata: {name: gpu-7}\nstatus: {conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown, message: Kubelet stopped posting node status.}]}\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(SICK))
def test_one_sick_dump_among_them_is_heard(tmp_path: Path, name: str, knowledge: Knowledge) -> None:
    cause, text = SICK[name]
    for other in ("free.txt", "df.txt", "ps.txt", "ethtool.txt", "pip.json", "events.txt", "dmesg.txt"):
        (tmp_path / other).write_text(HEALTHY[other])
    (tmp_path / "train.log").write_text(TRAIN)
    (tmp_path / name).write_text(text)
    assert judge(tmp_path, knowledge).order[0] == cause
