"""Train one model on several processes that average their gradients; one of them may be told to crash."""

from __future__ import annotations

import argparse
import ctypes
import datetime
import faulthandler
import logging
import os
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


def train(arguments: argparse.Namespace) -> None:
    """Train in step with the other ranks."""
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(arguments.seed)
    log.info("rank %d of %d on local rank %s", rank, world, os.environ["LOCAL_RANK"])
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(arguments.seed + rank)
    for step in range(1, arguments.max_steps + 1):
        points = torch.randn(32, 64, generator=generator)
        labels = points[:, :10].argmax(-1)
        if rank == arguments.crash_rank and step == arguments.crash_step:
            log.info("rank %d step %d: decoding record %d", rank, step, 32 * step)
            decode(0)
        loss = nn.functional.cross_entropy(model(points), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.02)
        if step % 5 == 0:
            log.info("rank %d step %d/%d | loss %.4f | lr %.3g", rank, step, arguments.max_steps, loss.item(), 0.05)
    dist.destroy_process_group()
    log.info("rank %d training finished", rank)


def main() -> None:
    """Run the job as a program."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    faulthandler.enable()
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-steps", type=int, default=60)
    parser.add_argument("--crash-rank", type=int, default=-1)
    parser.add_argument("--crash-step", type=int, default=23)
    parser.add_argument("--seed", type=int, default=0)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
