"""Train one model on several processes that average their gradients; one of them may be told to fail."""

from __future__ import annotations

import argparse
import ctypes
import datetime
import faulthandler
import logging
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("train")


def decode(pointer: int) -> bytes:
    """Read a record through a native decoder; a null pointer takes the process down."""
    return ctypes.string_at(pointer)


class Network(nn.Module):
    """A classifier with an auxiliary head that not every batch uses."""

    def __init__(self, *, auxiliary: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 10)
        if auxiliary:
            self.auxiliary = nn.Linear(64, 4)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """Return the scores of the classes."""
        return self.head(self.body(points))


def fail(arguments: argparse.Namespace, rank: int, step: int) -> None:
    """What happens to one rank in the middle of a step."""
    if rank != arguments.crash_rank or step != arguments.crash_step:
        return
    if arguments.how == "decoder":
        log.info("rank %d step %d: decoding record %d", rank, step, 32 * step)
        decode(0)
    elif arguments.how == "exception":
        sizes = {"train": 2048}
        log.info("rank %d step %d: opening the next file", rank, step)
        raise KeyError(f"shard-{sizes['train'] // 64:05d}.tar")
    elif arguments.how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif arguments.how == "stuck":
        log.info("rank %d step %d: waiting for the file server", rank, step)
        time.sleep(120)
    elif arguments.how == "other":
        log.info("rank %d step %d: checking the parameters", rank, step)
        dist.broadcast(torch.zeros(8), src=rank)
    elif arguments.how == "preempted":
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(60)


def train(arguments: argparse.Namespace) -> None:
    """Train in step with the other ranks."""
    if arguments.how == "world":
        os.environ["WORLD_SIZE"] = str(int(os.environ["WORLD_SIZE"]) - 1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=arguments.timeout))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(arguments.seed)
    log.info("rank %d of %d on local rank %s", rank, world, os.environ["LOCAL_RANK"])
    model = DistributedDataParallel(Network(auxiliary=arguments.how == "unused"))
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.learning_rate)
    generator = torch.Generator().manual_seed(arguments.seed + rank)
    steps = arguments.max_steps
    if arguments.how == "uneven" and rank == arguments.crash_rank:
        steps = arguments.crash_step
    for step in range(1, steps + 1):
        begun = time.perf_counter()
        points = torch.randn(32, 64, generator=generator)
        labels = points[:, :10].argmax(-1)
        fail(arguments, rank, step)
        if arguments.how == "slow" and rank == arguments.crash_rank:
            time.sleep(arguments.delay)
        time.sleep(0.02)
        loss = nn.functional.cross_entropy(model(points), labels)
        worked = time.perf_counter() - begun
        optimizer.zero_grad()
        loss.backward()
        waited = time.perf_counter() - begun - worked
        optimizer.step()
        if step % 5 == 0:
            times = f" | forward {worked:.4f} s | allreduce_wait {waited:.4f} s" if arguments.log_times else ""
            log.info("rank %d step %d/%d | loss %.4f | lr %.3g%s", rank, step, arguments.max_steps, loss.item(),
                     arguments.learning_rate, times)  # fmt: skip
    if arguments.how == "uneven" and rank == arguments.crash_rank:
        log.info("rank %d: no more batches after step %d", rank, steps)
        dist.barrier()
    dist.destroy_process_group()
    log.info("rank %d training finished", rank)


def main() -> None:
    """Run the job as a program."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    faulthandler.enable()
    parser = argparse.ArgumentParser()
    parser.add_argument("--how", default="decoder")
    parser.add_argument("--max-steps", type=int, default=60)
    parser.add_argument("--crash-rank", type=int, default=-1)
    parser.add_argument("--crash-step", type=int, default=23)
    parser.add_argument("--timeout", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--delay", type=float, default=0.1)
    parser.add_argument("--log-times", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
