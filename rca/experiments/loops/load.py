"""Batches read beside a step: how long the step waits for them. Imported in the child process only: loads torch.

Reading and computing are waits of the run's own proportions, as a disk and a device are to the processor, so that a
busy machine changes little; the loader, its worker processes and its queues are torch's own.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from rca.experiments.loops.config import LoopConfig, Setting

_STEPS = 24
"""A multiple of the usual numbers of workers: these deliver in bursts."""
_DROPPED = 4
"""First steps, in which workers start and queues fill."""


def load(config: LoopConfig, setting: Setting) -> dict[str, float]:
    """Return `seconds_per_step` and `wait_share`, the share of the steps spent waiting for batches."""
    del setting
    batches = _batches(config)
    waited = total = 0.0
    for step in range(_DROPPED + config.num_workers + _STEPS):
        started = time.perf_counter()
        next(batches)
        arrived = time.perf_counter()
        time.sleep(config.compute_ms / 1000)
        if step >= _DROPPED + config.num_workers:
            waited += arrived - started
            total += time.perf_counter() - started
    del batches
    return {"seconds_per_step": total / _STEPS, "wait_share": waited / total}


class _Stored(Dataset[torch.Tensor]):
    """Batches on a storage that takes its time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, index: int) -> torch.Tensor:
        """Read one batch."""
        time.sleep(self.seconds)
        return torch.full((8,), float(index))


def _batches(config: LoopConfig) -> Iterator[Any]:
    dataset = _Stored(config.read_ms / 1000)
    if config.source == "memory":
        return _the_same(dataset[0])
    loader = DataLoader(dataset, batch_size=None, num_workers=config.num_workers)
    return _ahead(iter(loader), config.prefetch) if config.prefetch else iter(loader)


def _the_same(batch: torch.Tensor) -> Iterator[Any]:
    while True:
        yield batch


def _ahead(batches: Iterator[Any], depth: int) -> Iterator[Any]:
    """Read up to `depth` batches in a thread of their own."""
    ready: queue.Queue[Any] = queue.Queue(maxsize=depth)
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            ready.put(next(batches))

    threading.Thread(target=read, daemon=True).start()
    try:
        while True:
            yield ready.get()
    finally:
        over.set()
        while not ready.empty():
            ready.get_nowait()
