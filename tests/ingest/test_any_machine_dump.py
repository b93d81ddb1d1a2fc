"""Dumps of machines that were cut, spliced and garbled: every one is read or skipped, and its places are right."""

# ruff: noqa: E501 - tables stand as they are printed

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

DUMPS = {
    "dmon.log": "#Date       Time        gpu    pwr  gtemp     sm   pclk  tviol     fb\n#YYYYMMDD   HH:MM:SS    Idx      W      C      %    MHz   bool     MB\n 20250302   04:00:01      0    398     62     98   1410      0  72704\n",
    "gpu.csv": "timestamp, index, name, utilization.gpu [%], memory.used [MiB], clocks_event_reasons.active\n2025/03/02 04:00:00.123, 0, NVIDIA A100, 98 %, 71920 MiB, 0x0000000000000004\n",
    "gpustat.txt": "node17  Sun Mar  2 04:00:00 2025\n[0] NVIDIA A100 | 62°C,  98 %, 120 / 400 W | 71920 / 81920 MB | ana:python/1(71000M)\n",
    "smi_q.txt": "==============NVSMI LOG==============\n\nTimestamp : Sun Mar  2 04:00:00 2025\nDriver Version : 550.54.15\nGPU 00000000:07:00.0\n    ECC Errors\n        Volatile\n            DRAM Uncorrectable : 2\n    Processes\n        Process ID : 41233\n            Name : python\n",
    "rocm.txt": "==== ROCm System Management Interface ====\n==== Concise Info ====\nGPU  Temp (DieEdge)  AvgPwr  SCLK    MCLK    Fan   Perf  PwrCap  VRAM%  GPU%\n0    38.0c           90.0W   800Mhz  1600Mhz 0%    auto  500.0W    0%   7%\n",
    "nvlink.txt": "GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n\t Link 1: Replay Errors: 412\n",
    "vmstat.txt": " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n 2  0      0 123456  20000 900000    0    0     5    10   50  100 10  2 88  0  0\n",
    "iostat.txt": "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           5.20    0.00    2.10   40.30    0.00   52.40\n\nDevice            r/s  r_await  %util\nsda            310.00   120.50  99.80\n",
    "free.txt": "              total        used        free      shared  buff/cache   available\nMem:         257671      250114        2000         100        5557        4200\n",
    "memory.events": "low 0\nhigh 0\nmax 81234\noom 3\noom_kill 2\n",
    "dmesg.txt": "[9.1] python invoked oom-killer: gfp_mask=0xcc0, order=0\n[9.2] memory: usage 67108864kB, limit 67108864kB, failcnt 1\n[9.4] [   4124]  1000  4124  4530853 16515072 43360000        0           968 python\n[9.5] Memory cgroup out of memory: Killed process 4124 (python) total-vm:9kB, anon-rss:1048576kB, file-rss:0kB, shmem-rss:4kB\n",
    "journal.json": '{"__REALTIME_TIMESTAMP":"1740888000123456","_HOSTNAME":"node17","MESSAGE":"Out of memory: Killed process 1 (python)"}\n{"__REALTIME_TIMESTAMP":"1","MESSAGE":[104,105]}\n',
    "journal.export": "__REALTIME_TIMESTAMP=1740888000123456\n_HOSTNAME=node17\nMESSAGE\n\x02\x00\x00\x00\x00\x00\x00\x00hi\nPRIORITY=3\n\n__REALTIME_TIMESTAMP=2\nMESSAGE=hello\n",
    "dmesg.json": '{\n   "dmesg": [\n      {\n         "pri": 3,\n         "time":     91823.400123,\n         "msg": "NVRM: Xid (PCI:0000:07:00): 79"\n      }\n',
    "sacct.json": '{"jobs": [{"job_id": 991, "exit_code": {"return_code": {"set": true, "number": 0}, "signal": {"id": {"number": 9}}}, "state": {"current": ["FAILED"]}, "time": {"limit": {"number": 1440}}, "steps": [{"state": ["FAILED"], "tres": {"requested": {"max": [{"type": "mem", "count": 5}]}}}]}]}',
    "range.json": '{"data":{"resultType":"matrix","result":[{"metric":{"__name__":"DCGM_FI_DEV_FB_USED","gpu":"0"},"values":[[1740888000,"62"],[1740888015,"63"]]}]}}',
    "metrics.prom": '# TYPE DCGM_FI_DEV_GPU_TEMP gauge\nDCGM_FI_DEV_GPU_TEMP{gpu="1",Hostname="node17"} 91 1740888000.5 # {a="b"} 1\n',
    "qstat.txt": "Job Id: 1234.pbs\n    job_state = F\n    resources_used.mem = 64gb\n    Exit_status = 271\n",
    "sinfo.txt": "REASON               USER      TIMESTAMP           NODELIST\nNot responding       root      2025-03-02T04:00:00 n[1-2]\nNodeName=n1 Arch=x86_64\n   State=DOWN\n",
    "pods.txt": "NAME             READY   STATUS    RESTARTS   AGE\ntrain-0   0/1     Evicted   12 (3m ago)   5m\n",
    "events.txt": "NAMESPACE   LAST SEEN   TYPE      REASON    OBJECT        MESSAGE\nml          5m12s       Warning   Evicted   pod/train-0   The node was low on resource: memory.\n",
    "node.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: gpu-7}\nstatus: {conditions: [{type: Ready, status: 'True', lastTransitionTime: 2025-03-02T04:10:00Z}]}\n",
    "ds_report.txt": "DeepSpeed general environment info:\ntorch version .................... 2.1.0+cu118\nshared memory (/dev/shm) size .... 64.00 MB\n",
    "memory.txt": "{'allocated_bytes.all.current': 8589934592,\n 'num_alloc_retries': 12,\n 'reserved_bytes.all.current': 9179869184}\n",
}
JUNK = st.sampled_from([b"\0", b"\xff\xfe", b"9" * 30, b"-", b"1e999", b"nan", b"{", b"}", b'"', b",", b"|", b":", b"\n", b" ", b"N/A", b"=", b"[1-99999999]", b"\xc3\x28"]) | st.binary(max_size=6)  # fmt: skip
CHANGES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), JUNK), max_size=8)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(DUMPS)), other=st.sampled_from(sorted(DUMPS)), changes=CHANGES)
def test_a_garbled_dump(read: Any, name: str, other: str, changes: list[tuple[float, int, bytes]]) -> None:
    data = DUMPS[name].encode() * 2
    for place, cut, junk in changes:
        at = int(place * len(data))
        data = data[:at] + junk + data[at + cut :]
    if len(changes) > 4:
        data += DUMPS[other].encode()
    found = read(name, data)
    assert (found.record.status == "read") == (found.ingested is not None)
    assert all(event.line is None or 1 <= event.line <= data.count(b"\n") + 1 for event in found.table.events)
    assert all(event.offset is None or 0 <= event.offset <= len(data) for event in found.table.events)
