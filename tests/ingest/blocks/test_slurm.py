"""Nodes of Slurm and jobs of PBS."""

# ruff: noqa: E501 - tables stand as they are printed

from __future__ import annotations

from typing import Any

NODE = """NodeName=n1 Arch=x86_64 CoresPerSocket=48
   CPUAlloc=0 CPUEfctv=96 CPUTot=96 CPULoad=0.01
   State=DOWN*+DRAIN ThreadsPerCore=1 TmpDisk=0
   Reason=Not responding [slurm@2025-03-02T04:00:00]

NodeName=n2 Arch=x86_64 CoresPerSocket=48
   State=IDLE ThreadsPerCore=1
"""
SINFO = """PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
gpu*         up 2-00:00:00      1 drain* n3
gpu*         up 2-00:00:00      2   down n[1-2]
"""
QSTAT = """Job Id: 1234.pbs
    Job_Name = train
    resources_used.mem = 67108864kb
    resources_used.walltime = 24:00:05
    job_state = F
    Resource_List.mem = 64gb
    Resource_List.walltime = 24:00:00
    Exit_status = 271
    Variable_List = PBS_O_HOME=/home/ana,
\tPBS_O_LANG=C
    comment = Job run at Sun Mar 02 at 02:00 on (n1) and failed
"""


def test_nodes(read: Any) -> None:
    first, second = read("scontrol.txt", NODE).table.named("system.slurm_node")
    assert (first.attr("nodes"), first.text, first.attr("reason")[:14]) == ("n1", "DOWN*+DRAIN", "Not responding")
    assert second.text == "IDLE"
    listed = read("sinfo.txt", SINFO).table.named("system.slurm_node")
    assert [(event.attr("nodes"), event.text) for event in listed] == [("n3", "drain*"), ("n[1-2]", "down")]


def test_reasons_of_nodes(read: Any) -> None:
    text = "REASON               USER      TIMESTAMP           NODELIST\nNot responding       root      2025-03-02T04:00:00 n[1-2]\n"
    assert read("sinfo.txt", text).one("system.slurm_node").attr("reason") == "Not responding"


def test_a_job_of_pbs(read: Any) -> None:
    event = read("qstat.txt", QSTAT).one("system.batch_job")
    wanted = {
        "elapsed_s": 86405.0,
        "time_limit_s": 86400.0,
        "max_rss_bytes": 64 * 2**30,
        "exit_code": 271,
        "signal": "SIGTERM",
    }
    assert {key: event.attr(key) for key in wanted} == wanted
    assert event.attr("reason").endswith("and failed")


def test_who_cancelled(read: Any) -> None:
    text = "JobID|State|ExitCode|Elapsed\n991|CANCELLED by 1000|0:0|02:00:00\n"
    assert read("sacct.txt", text).one("system.slurm_job").attr("cancelled_by") == "1000"


def test_a_shifted_table_keeps_its_words_whole(read: Any) -> None:
    text = (
        "JobID           JobName  Partition      State ExitCode    Elapsed     MaxRSS \n"
        "------------ ---------- ---------- ---------- -------- ---------- ---------- \n"
        "4410             resnext        gpu  COMPLETED      0:0   02:10:12            \n"
        "4410.0              srun             COMPLETED      0:0   02:10:05  21844020K \n"
    )
    job, step = read("sacct.txt", text).table.named("system.slurm_job")
    assert (job.attr("job_name"), job.attr("state"), job.attr("exit_code")) == ("resnext", "COMPLETED", 0)
    assert job.attr("elapsed_s") == 7812
    assert (step.attr("state"), step.attr("max_rss_bytes")) == ("COMPLETED", 21_844_020 * 1024)
