"""Makes the dumps in this folder: small distributed jobs over gloo, each with one mistake, recorded by PyTorch itself.

    python train.py CASE FOLDER        starts the ranks and leaves FOLDER/nccl_trace_rank_N

`_dump_fr_trace` of PyTorch 2.13 records gloo's collectives: operation, sizes, types, stacks, sequence numbers, and
whether a call is over ("retired"). Gloo's recorder tells no group members and no sends and receives. Where a case needs
them (`COMPLETED`), what PyTorch knows elsewhere is filled in under the names that ProcessGroupNCCL uses: the members
from `get_process_group_ranks`, the transfers from the calls themselves.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

RANKS = {"two_groups": 4, "uneven_exchange": 3, "transfer_size": 2, "transfer_missing": 2}
CASES = (
    "healthy",
    "stuck",
    "skipped",
    "other_operation",
    "other_size",
    "other_dtype",
    "uneven_exchange",
    "two_groups",
    "transfer_size",
    "transfer_missing",
)
COMPLETED = {"two_groups", "transfer_size", "transfer_missing"}
AT_ONCE = {"other_size", "other_dtype"}
"""Gloo ends a process that receives more than it expects, so these call one after the other, the odd rank first with
less to send, and dump at once."""


def start(case: str, folder: Path) -> None:
    world = RANKS.get(case, 3)
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29631", "WORLD_SIZE": str(world), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen([sys.executable, __file__, case, str(folder)], env={**os.environ, **common, "RANK": str(rank)})
        for rank in range(world)
    ]
    for process in ranks:
        process.wait(120)


class Job:
    def __init__(self, case: str, folder: Path) -> None:
        import torch
        import torch.distributed as dist

        self.case, self.folder = case, folder
        dist.init_process_group("gloo", timeout=timedelta(seconds=120))
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.grads = torch.ones(64)
        self.transfers: list[dict[str, Any]] = []
        self.groups: dict[str, Any] = {}

    def train_step(self) -> None:
        import torch.distributed as dist

        dist.all_reduce(self.grads, async_op=True)

    def evaluate(self) -> None:
        import torch
        import torch.distributed as dist

        scores = [torch.zeros(2) for _ in range(self.world)]
        dist.all_gather(scores, torch.ones(2), async_op=True)

    def run(self) -> None:
        import torch
        import torch.distributed as dist

        for _ in range(2):
            self.train_step()
            time.sleep(0.3)
        odd = self.rank == self.world - 1
        if self.case == "skipped" and odd:
            self.evaluate()
        elif self.case == "other_operation" and odd:
            dist.broadcast(self.grads, src=self.rank, async_op=True)
        elif self.case in ("other_size", "other_dtype"):
            if odd:
                self.grads = torch.ones(32) if self.case == "other_size" else self.grads.half()
            time.sleep(0 if odd else 30 + 2 * self.rank)
            self.train_step()
        elif self.case == "uneven_exchange":
            dist.all_to_all_single(torch.zeros(4 * self.world), torch.ones(4 * self.world), async_op=True)
        elif self.case == "two_groups":
            self.two_groups(odd)
        elif self.case.startswith("transfer"):
            self.transfer()
        elif not (self.case == "stuck" and odd):
            self.train_step()
        if self.case not in AT_ONCE:
            time.sleep(1.5)
        self.dump()

    def two_groups(self, odd: bool) -> None:
        """Tensor parallel over {0, 1} and {2, 3}, data parallel over {0, 2} and {1, 3}; rank 3 hangs before both."""
        import torch.distributed as dist

        for kind, sets in (("tp", ([0, 1], [2, 3])), ("dp", ([0, 2], [1, 3]))):
            for ranks in sets:
                group = dist.new_group(ranks, group_desc=kind)
                if self.rank in ranks:
                    self.groups[kind] = group
        dist.all_reduce(self.grads, group=self.groups["tp"])
        dist.all_reduce(self.grads, group=self.groups["dp"])
        if odd:
            return
        work = dist.all_reduce(self.grads, group=self.groups["tp"], async_op=True)
        if self.rank < 2:
            work.wait()
            dist.all_reduce(self.grads, group=self.groups["dp"], async_op=True)

    def transfer(self) -> None:
        import torch
        import torch.distributed as dist

        if self.rank == 0:
            self.note("send 0->1", self.grads)
            dist.isend(self.grads, dst=1)
        elif self.case == "transfer_size":
            expected = torch.zeros(128)
            self.note("recv 1<-0", expected)
            dist.irecv(expected, src=0)

    def note(self, op: str, tensor: Any) -> None:
        frame = sys._getframe(1)
        place = {"name": frame.f_code.co_name, "filename": frame.f_code.co_filename, "line": frame.f_lineno}
        sizes, dtypes = [list(tensor.shape)], ["Float"]
        sends = op.startswith("send")
        self.transfers.append(
            {
                "frames": [place],
                "pg_id": 0,
                "process_group": ("0", "default_pg"),
                "collective_seq_id": 2,
                "p2p_seq_id": 1,
                "op_id": 3,
                "profiling_name": f"nccl:{op}",
                "time_created_ns": time.time_ns(),
                "input_sizes": sizes if sends else [],
                "input_dtypes": dtypes if sends else [],
                "output_sizes": [] if sends else sizes,
                "output_dtypes": [] if sends else dtypes,
                "state": "scheduled",
                "time_discovered_started_ns": None,
                "time_discovered_completed_ns": None,
                "retired": False,
                "timeout_ms": 30_000,
                "is_p2p": True,
            }
        )

    def dump(self) -> None:
        from torch._C._distributed_c10d import _dump_fr_trace

        raw = _dump_fr_trace()
        if self.case in COMPLETED:
            raw = self.completed(pickle.loads(raw))
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"nccl_trace_rank_{self.rank}").write_bytes(raw)
        time.sleep(1.5)
        os._exit(0)

    def completed(self, dump: dict[str, Any]) -> bytes:
        import torch.distributed as dist

        everyone = list(range(self.world))
        dump["pg_config"] = {"0": {"name": "0", "desc": "default_pg", "ranks": str(everyone)}}
        for kind, group in self.groups.items():
            name = group.group_name
            dump["pg_config"][name] = {"name": name, "desc": kind, "ranks": str(dist.get_process_group_ranks(group))}
        start = len(dump["entries"])
        dump["entries"] += [{"record_id": start + index, **item} for index, item in enumerate(self.transfers)]
        return pickle.dumps(dump, protocol=2)


if __name__ == "__main__":
    if "RANK" in os.environ:
        Job(sys.argv[1], Path(sys.argv[2])).run()
    else:
        start(sys.argv[1], Path(sys.argv[2]))
