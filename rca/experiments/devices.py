"""Where experiments run: on a GPU only when nobody else needs it, and there with a small share of its memory.

A GPU counts as free when the driver (NVML) shows no process on it, hardly any memory in use and enough memory free: the
failed job, or its successor, may still hold it. Nothing here changes a setting of a device. The choice is made without
torch, in the parent; `confine` runs in the job's own process before its first allocation, so neither the parent nor the
fork server ever initialises CUDA.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

FREE_SHARE, FREE_BYTES = 0.2, 2 * 2**30
"""At least so much memory must be free."""
IDLE_BYTES = 1.5 * 2**30
"""In use on a GPU without processes: what the driver itself takes. In a container the processes of others are hidden,
their memory is not."""
MOST_SHARE, SHARE_OF_FREE = 0.1, 0.5
"""A job gets at most a tenth of the device, and at most half of what is free. It is a limit of torch's own allocator:
the context and the workspaces of libraries come on top."""


def choose_device(asked: str) -> str:
    """Return `cpu`, `cuda` or `mps`; only `auto` is a choice, anything else is taken as asked."""
    if asked != "auto":
        return asked
    if sys.platform == "darwin":
        return "mps" if platform.machine() == "arm64" else "cpu"
    return "cuda" if torch_has_cuda() and free_gpu() else "cpu"


def free_gpu() -> str | None:
    """Return the UUID of the visible GPU with most free memory that nobody uses, or None."""
    with _driver() as nvml:
        if nvml is None:
            return None
        free = [(memory, uuid) for uuid, memory in _idle(nvml)]
        return max(free)[1] if free else None


def environment(device: str) -> dict[str, str]:
    """Return the variables that keep a child to its device; a CPU child sees no GPU at all."""
    if device == "cpu":
        return {"CUDA_VISIBLE_DEVICES": ""}
    if device == "cuda":
        # The order of NVML, and of the identifiers, is that of the bus; torch must count in the same way.
        found = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
        uuid = free_gpu()
        return {**found, "CUDA_VISIBLE_DEVICES": uuid} if uuid else found
    return {"OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES"} if device == "mps" else {}


def confine(device: str) -> None:
    """Limit this process to its share of the device. Raises RuntimeError when torch cannot use the device."""
    import torch

    if device == "cuda":
        if not torch.cuda.is_available():
            raise RuntimeError("torch finds no CUDA device; `--device cpu` runs the experiment without one")
        free, total = torch.cuda.mem_get_info()
        torch.cuda.set_per_process_memory_fraction(share(free, total))
    elif device == "mps":
        if not torch.backends.mps.is_available():
            raise RuntimeError("torch finds no Metal device; `--device cpu` runs the experiment without one")
        torch.mps.set_per_process_memory_fraction(MOST_SHARE)


def peak(device: str) -> int:
    """Return the most bytes that this process held on the device; 0 where torch does not count them."""
    import torch

    return torch.cuda.max_memory_reserved() if device == "cuda" else 0


def share(free: float, total: float) -> float:
    """Return the share of a device's memory that a job may take (bytes in, 0 to 1 out)."""
    return min(MOST_SHARE, SHARE_OF_FREE * free / total)


def torch_has_cuda() -> bool:
    """Whether the installed torch was built for CUDA, read from its version file: importing it takes seconds."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    with suppress(OSError):
        text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8", errors="replace")[:4096]
        return re.search(r"^cuda\b[^=\n]*= *['\"]", text, re.MULTILINE) is not None
    return False


@contextmanager
def _driver() -> Iterator[Any]:
    """NVML, or None where there is no driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _idle(nvml: Any) -> Iterator[tuple[str, int]]:
    """UUID and free bytes of the visible GPUs that nobody uses."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    wanted = None if visible is None else [name.strip() for name in visible.split(",")]
    try:
        count = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError:
        return
    for index in range(count):
        with suppress(nvml.NVMLError):  # one that does not answer is none to use
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            uuid = str(nvml.nvmlDeviceGetUUID(handle))
            if wanted is not None and not any(
                name and (name == str(index) or uuid.startswith(name)) for name in wanted
            ):
                continue
            if _partitioned(nvml, handle) or nvml.nvmlDeviceGetComputeRunningProcesses(handle):
                continue
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
            if memory.used <= IDLE_BYTES and memory.free >= max(FREE_BYTES, FREE_SHARE * memory.total):
                yield uuid, int(memory.free)


def _partitioned(nvml: Any, handle: Any) -> bool:
    """Whether the GPU is split into instances (MIG), whose owners are others."""
    try:
        return bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except nvml.NVMLError:
        return False
