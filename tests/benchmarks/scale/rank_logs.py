"""The logs of a large job of which one rank fails first, written as such jobs write them; the same every time.

    python tests/benchmarks/scale/rank_logs.py FOLDER --ranks 64 --bytes 64000000 --fault gpu_memory --layout rank

Every rank prints its start-up, then steps with chatter and warnings that mean nothing, and its end: the first failing
rank what `faults.yaml` says of the fault, the others that a peer is gone, or ten minutes later that a collective timed
out. Clocks of hosts differ by up to two seconds, some ranks print no times, the logs of some are cut off, and the
launchers and the scheduler say who ended, in the order in which they noticed, which is not the order of the failures.
"""

from __future__ import annotations

import argparse
import datetime as dt
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import yaml

FAULTS: Mapping[str, Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_name("faults.yaml").read_text("utf-8"))
LAYOUTS = ("rank", "node", "elastic", "srun")
PER_NODE = 8
START = dt.datetime(2026, 3, 1, 8, 0, 0)
STEP_S = 2.0
TIMEOUT_S = 600.0
_GPU = "gpu #"
STEP_BYTES = 320
"""Roughly what a rank prints of one step."""
SETTINGS = (
    ("learning_rate", 0.0003),
    ("micro_batch_size", 4),
    ("optimizer", "adamw"),
    ("precision", "bf16"),
    ("seq_length", 4096),
    ("num_layers", 48),
    ("hidden_size", 6144),
    ("max_steps", 90000),
)
_STAMPS = ("%Y-%m-%d %H:%M:%S,{ms}", "[%Y-%m-%d %H:%M:%S]", "%Y-%m-%dT%H:%M:%S.{ms}Z", "%m/%d/%Y %H:%M:%S")


@dataclass(frozen=True)
class Job:
    """What is to be written."""

    ranks: int
    total: int
    """Bytes of all logs together, roughly."""
    fault: str = "gpu_memory"
    layout: str = "rank"
    seed: int = 0

    @property
    def first(self) -> int:
        """Rank that fails first."""
        return random.Random(f"{self.seed} first {self.fault}").randrange(1, self.ranks)

    @property
    def over(self) -> float:
        """Seconds from the start to the failure."""
        return 20.0 + self.steps * STEP_S

    @property
    def what(self) -> Mapping[str, Any]:
        """Return what the fault is."""
        return FAULTS[self.fault]

    @property
    def gone(self) -> range:
        """Ranks that are gone without having lost a peer: the first one, or all of its node."""
        if not self.what.get("node"):
            return range(self.first, self.first + 1)
        node = self.first // PER_NODE
        return range(node * PER_NODE, min((node + 1) * PER_NODE, self.ranks))

    @property
    def steps(self) -> int:
        """Steps before the failure, by the bytes that are wanted."""
        return max((self.total // self.ranks - 1200) // STEP_BYTES, 5)


def _stamped(form: str | None, seconds: float) -> str:
    if form is None:
        return ""
    moment = START + dt.timedelta(seconds=seconds)
    return moment.strftime(form).replace("{ms}", f"{moment.microsecond // 1000:03d}") + " "


@lru_cache(maxsize=16)
def _stamps(form: str | None, skew: float, steps: int) -> list[str]:
    return [_stamped(form, 20.0 + number * STEP_S + skew) for number in range(steps + 1)]


@lru_cache(maxsize=2)
def _node(node: str, form: str | None, skew: float, steps: int) -> list[str]:
    """Return what each rank of a node but the first of the job prints of each step."""
    stamps = _stamps(form, skew, steps)
    return [
        f"{at}DEBUG heartbeat: iteration {number} done on {node} {_GPU}\n{_chatter(number, at)}"
        for number, at in enumerate(stamps[1:], 1)
    ]


def _trainer(number: int, at: str, draw: random.Random) -> str:
    loss = 2.0 + 8.0 / (1.0 + number / 60.0) + 0.02 * draw.random()
    return (
        f"{at}INFO trainer: step {number} | loss {loss:.4f} | grad_norm {1.1 - 0.1 * draw.random():.3f} | "
        f"lr {min(number / 200, 1.0) * 3e-4:.3e} | step_time {STEP_S + 0.01 * draw.random():.3f}\n"
        f"{_chatter(number, at)}"
    )


def _chatter(number: int, at: str) -> str:
    text = (
        f"{at}INFO data.prefetch: shard-{number % 997:05d}.tar opened, 128 samples queued, 3 readers alive\n"
        f"{at}DEBUG bucket 0 reduced, 25.0 MB; bucket 1 reduced, 25.0 MB; bucket 2 reduced, 18.2 MB"
    )
    if number % 50:
        return text
    return f"{text}\n{at}WARNING data.cache: cache miss for shard-{number % 997:05d}.tar, reading from the object store"


class Writer:
    """Writes the lines of one rank."""

    def __init__(self, job: Job, rank: int) -> None:
        self.job = job
        self.rank = rank
        self.node = f"node{rank // PER_NODE:03d}"
        self.local = rank % PER_NODE
        host = random.Random(f"{job.seed} {self.node}")
        self.pid = 4000 + host.randrange(16) + 3 * self.local
        self.random = random.Random(f"{job.seed} {rank}")
        self.skew = host.uniform(-1.0, 1.0)
        self.stamp = None if rank and self.random.random() < 0.09 else host.choice(_STAMPS)
        self.cut = not job.what.get("stuck") and rank not in job.gone and self.random.random() < 0.03

    def at(self, seconds: float) -> str:
        """Return the stamp in front of a line, by the clock of the node."""
        return _stamped(self.stamp, seconds + self.skew)

    def glog(self, seconds: float) -> str:
        """Return the prefix of the C++ side of torch."""
        moment = START + dt.timedelta(seconds=seconds + self.skew)
        return f"[rank{self.rank}]:[E{moment.month}{moment:%d %H:%M:%S.%f}000 ProcessGroupNCCL.cpp:683] "

    def filled(self, text: str, seconds: float) -> list[str]:
        """Return lines of a fault with their values."""
        moment = START + dt.timedelta(seconds=seconds + self.skew)
        values = {"time": moment.strftime("%Y-%m-%dT%H:%M:%S"), "rank": self.rank, "local": self.local}
        return text.format(**values, node=self.node, pid=self.pid, step=self.job.steps).splitlines()

    def lines(self) -> Iterator[str]:
        """Give the whole log."""
        yield from self.start()
        yield from self.body()
        if not self.cut:
            yield from self.end()[1]

    def body(self) -> Iterator[str]:
        """Give the lines of each step together; the logs of some ranks lack the last ones."""
        count = self.job.steps - 2 * self.cut
        if self.rank == 0:
            stamps = _stamps(self.stamp, self.skew, self.job.steps)
            return (_trainer(number, stamps[number], self.random) for number in range(1, count + 1))
        node = _node(self.node, self.stamp, self.skew, self.job.steps)
        return (step.replace(_GPU, f"gpu {self.local}") for step in node[:count])

    def start(self) -> Iterator[str]:
        """What every process says before the first step."""
        name = f"{self.node}:{self.pid}:{self.pid + 500} [{self.local}] NCCL INFO "
        yield f"{self.at(0)}INFO launcher: RANK={self.rank} LOCAL_RANK={self.local} WORLD_SIZE={self.job.ranks}"
        if self.rank == 0:
            yield f"{self.at(1)}INFO torch 2.8.0+cu128 CUDA 12.8 cuDNN 91002 python 3.11.9"
            for key, value in (("world_size", self.job.ranks), *SETTINGS):
                yield f"{self.at(1)}INFO config: {key}: {value}"
        yield f"{name}Bootstrap : Using eth0:10.12.{self.rank // 250}.{self.rank % 250}<0>"
        yield f"{name}NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0"
        yield f"{name}comm 0x55d0c8a0 rank {self.rank} nranks {self.job.ranks} cudaDev {self.local} - Init COMPLETE"
        yield (
            "/opt/conda/lib/python3.11/site-packages/torch/utils/checkpoint.py:85: UserWarning: None of the inputs "
            "have requires_grad=True. Gradients will be None"
        )

    def end(self) -> tuple[float, list[str]]:
        """Return the last words, and when they are said."""
        job = self.job
        over = job.over
        if self.rank in job.gone:
            return over, self.filled(job.what.get("words") or "", over)
        group = f"[PG ID 0 PG GUID 0(default_pg) Rank {self.rank}] "
        lost = not job.what.get("stuck") and self.random.random() < 0.6
        if lost:
            soon = over + self.random.expovariate(1.0)
            peer = f"10.12.{job.first // 250}.{job.first % 250}<48211>"
            return soon, [
                f"{self.at(soon)}{self.node}:{self.pid}:{self.pid + 700} [{self.local}] NCCL WARN socketProgress: "
                f"Connection closed by remote peer {peer}",
                f"{self.glog(soon)}{group}Process group watchdog thread terminated with exception: NCCL error: remote "
                "process exited or there was a network error, NCCL version 2.27.3",
                "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
                "prematurely.",
            ]
        late = over + TIMEOUT_S + self.random.uniform(0.0, 3.0)
        seq = job.steps * 3
        work = f"WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=6553600, NumelOut=6553600, Timeout(ms)=600000)"
        return late, [
            f"{self.glog(late)}[Rank {self.rank}] Watchdog caught collective operation timeout: {work} ran for "
            f"{600000 + self.random.randrange(3000)} milliseconds before timing out.",
            f"{self.glog(late)}{group} failure detected by watchdog at work sequence id: {seq} PG status: last "
            f"enqueued work: {seq + 2}, last completed work: {seq - 1}",
            f"{self.glog(late)}{group}Some NCCL operations have failed or timed out. Due to the asynchronous nature of "
            "CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
            f"{self.glog(late)}{group}To avoid data inconsistency, we are taking the entire process down.",
        ]


def launcher(job: Job, node: int) -> Iterator[str]:
    """Give what the launcher of one node says: it names the children in the order in which it noticed them."""
    ranks = range(node * PER_NODE, min((node + 1) * PER_NODE, job.ranks))
    here = job.first if job.first in ranks and not job.what.get("stuck") else None
    if job.what.get("node") and here is not None:
        return
    writer = Writer(job, here if here is not None else ranks[0])
    after = job.over + (1.5 if here is not None or not job.what.get("stuck") else TIMEOUT_S + 4.0)
    moment = START + dt.timedelta(seconds=after + writer.skew)
    letter = f"{moment.month:02d}{moment:%d %H:%M:%S.%f} 3999 torch/distributed/elastic/multiprocessing/api.py:"
    for rank in ranks:
        if rank != writer.rank:
            yield f"W{letter}900] Sending process {Writer(job, rank).pid} closing signal SIGTERM"
    code = job.what.get("exit", -6) if here is not None else -6
    yield (
        f"E{letter}874] failed (exitcode: {code}) local_rank: {writer.local} (pid: {writer.pid}) of binary: "
        "/opt/conda/bin/python"
    )
    yield "Traceback (most recent call last):"
    yield '  File "/opt/conda/bin/torchrun", line 8, in <module>'
    yield "    sys.exit(main())"
    yield "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    yield "============================================================"
    yield "train.py FAILED"
    yield "------------------------------------------------------------"
    yield "Root Cause (first observed failure):"
    yield "[0]:"
    yield f"  time      : {moment:%Y-%m-%d_%H:%M:%S}"
    yield f"  host      : {writer.node}"
    yield f"  rank      : {writer.rank} (local_rank: {writer.local})"
    yield f"  exitcode  : {code} (pid: {writer.pid})"
    yield "  error_file: <N/A>"
    if code < 0:
        name = {6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV"}[-code]
        yield f"  traceback : Signal {-code} ({name}) received by PID {writer.pid}"
    else:
        yield "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    yield "============================================================"


def manager(job: Job) -> Iterator[str]:
    """Give the output of the scheduler."""
    first = Writer(job, job.first)
    yield from first.filled(job.what.get("manager") or "", job.over + (300.0 if job.what.get("node") else 0.5))
    code = job.what.get("exit", -6)
    if code > 0 and job.layout == "srun":
        yield f"srun: error: {first.node}: task {job.first}: Exited with exit code {code}"
    elif job.layout == "srun":
        word = {6: "Aborted (core dumped)", 9: "Killed", 11: "Segmentation fault (core dumped)"}[-code]
        named = next(rank for rank in range(job.ranks) if rank not in job.gone) if job.what.get("stuck") else job.first
        yield f"srun: error: node{named // PER_NODE:03d}: task {named}: {word}"
    moment = START + dt.timedelta(seconds=job.over + TIMEOUT_S + 30.0)
    yield "srun: Job step aborted: Waiting up to 32 seconds for job step to finish."
    yield f"slurmstepd: error: *** STEP 812345.0 ON node000 CANCELLED AT {moment:%Y-%m-%dT%H:%M:%S} ***"


def write(job: Job, folder: Path) -> int:
    """Write the logs of the job below a folder; return how many bytes they are."""
    total = 0
    for node in range(-(-job.ranks // PER_NODE)):
        ranks = range(node * PER_NODE, min((node + 1) * PER_NODE, job.ranks))
        if job.layout == "node":
            total += _interleaved(job, ranks, folder / "logs" / f"node_{node:03d}.log")
        else:
            for rank in ranks:
                total += _put(folder / _name(job, rank), Writer(job, rank).lines())
        if job.layout != "srun":
            total += _put(folder / "launcher" / f"node_{node:03d}.log", launcher(job, node))
    first = Writer(job, job.first)
    kernel = first.filled(job.what.get("machine") or "", job.over - 0.2)
    total += _put(folder / f"dmesg_{first.node}.txt", iter(kernel))
    return total + _put(folder / "slurm-812345.out", manager(job))


def _name(job: Job, rank: int) -> str:
    if job.layout == "elastic":
        return f"logs/node{rank // PER_NODE:03d}/attempt_0/{rank % PER_NODE}/stderr.log"
    return f"logs/pretrain_812345_{rank}.out" if job.layout == "srun" else f"logs/rank_{rank:05d}.log"


def _put(file: Path, lines: Iterator[str]) -> int:
    file.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with file.open("w", encoding="utf-8", newline="\n") as out:
        while part := list(islice(lines, 4096)):
            written += out.write("\n".join(part) + "\n")
    if not written:
        file.unlink()
    return written


def _interleaved(job: Job, ranks: range, file: Path) -> int:
    """Write the lines of a node's ranks as a launcher passes them on: in bursts, in about the order of the times."""
    order = random.Random(f"{job.seed} {ranks.start} order")
    writers = [Writer(job, rank) for rank in ranks]

    def tagged(writer: Writer, lines: Iterable[str]) -> Iterator[str]:
        return (f"[rank{writer.rank}]: {line}" for line in lines)

    def mixed() -> Iterator[str]:
        for writer in writers:
            yield from tagged(writer, writer.start())
        for round_ in zip_longest(*(writer.body() for writer in writers), fillvalue=""):
            bursts = list(zip(writers, round_, strict=True))
            order.shuffle(bursts)
            for writer, step in bursts:
                yield from tagged(writer, step.splitlines())
        ends = sorted((*writer.end(), writer.rank) for writer in writers if not writer.cut)
        for _, lines, rank in ends:
            yield from tagged(writers[rank - ranks.start], lines)

    return _put(file, mixed())


def main() -> None:
    """Write one job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--bytes", type=int, default=64_000_000)
    parser.add_argument("--fault", choices=sorted(FAULTS), default="gpu_memory")
    parser.add_argument("--layout", choices=LAYOUTS, default="rank")
    asked = parser.parse_args()
    job = Job(ranks=asked.ranks, total=asked.bytes, fault=asked.fault, layout=asked.layout)
    print(f"{write(job, asked.folder):,} bytes; rank {job.first} fails first")


if __name__ == "__main__":
    main()
