"""A small caching allocator that leaves memory snapshots in the structure of `torch.cuda.memory._snapshot`.

It reserves segments, splits them into blocks, merges what is freed beside each other, and records its actions, the way
PyTorch's allocator does. That tools of PyTorch accept its snapshots is a test of its own.
"""

from __future__ import annotations

from typing import Any

MIB = 1 << 20
SITE = "/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py"
Stack = list[dict[str, Any]]


def stack(function: str, line: int) -> Stack:
    """Innermost first: a C++ frame, a frame of a library, a frame of the program."""
    return [
        {"filename": "??", "line": 0, "name": "c10::cuda::CUDACachingAllocator::malloc"},
        {"filename": SITE, "line": 2134, "name": "linear"},
        {"filename": "/home/u/job/train.py", "line": line, "name": function},
    ]


class Allocator:
    def __init__(self, capacity: int, *, segment: int = 20 * MIB) -> None:
        self.capacity, self.segment = capacity, segment
        self.segments: list[dict[str, Any]] = []
        self.trace: list[dict[str, Any]] = []
        self.next = 0x7F0000000000

    def record(self, action: str, size: int, address: int | None, frames: Stack, **more: Any) -> None:
        place = {} if address is None else {"addr": address}
        at = {"stream": 0, "time_us": 1_700_000_000_000_000 + len(self.trace), "compile_context": "N/A"}
        self.trace.append({"action": action, **place, "size": size, **at, "frames": frames, **more})

    @property
    def reserved(self) -> int:
        return sum(segment["total_size"] for segment in self.segments)

    def allocate(self, size: int, frames: Stack) -> int | None:
        """Return the address, or None after recording that the device refused."""
        for segment in self.segments:
            address = self.split(segment, size, frames)
            if address is not None:
                return address
        total = max(self.segment, size)
        if self.reserved + total > self.capacity:
            self.record("oom", size, None, frames, device_free=self.capacity - self.reserved)
            return None
        segment = {
            "device": 0,
            "address": self.next,
            "total_size": total,
            "stream": 0,
            "segment_type": "large",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": frames,
            "blocks": [self.block(self.next, total)],
        }
        self.next += 2 * total
        self.segments.append(segment)
        self.record("segment_alloc", total, segment["address"], frames)
        return self.split(segment, size, frames)

    @staticmethod
    def block(address: int, size: int) -> dict[str, Any]:
        return {"address": address, "size": size, "requested_size": 0, "state": "inactive", "frames": []}

    def split(self, segment: dict[str, Any], size: int, frames: Stack) -> int | None:
        for index, block in enumerate(segment["blocks"]):
            if block["state"] == "inactive" and block["size"] >= size:
                if block["size"] > size:
                    rest = self.block(block["address"] + size, block["size"] - size)
                    segment["blocks"].insert(index + 1, rest)
                block |= {"size": size, "requested_size": size - 100, "state": "active_allocated", "frames": frames}
                self.record("alloc", size, block["address"], frames)
                return int(block["address"])
        return None

    def free(self, address: int, frames: Stack) -> None:
        for segment in self.segments:
            for block in segment["blocks"]:
                if block["address"] == address and block["state"] == "active_allocated":
                    self.record("free_requested", block["size"], address, frames)
                    self.record("free_completed", block["size"], address, frames)
                    block |= {"state": "inactive", "requested_size": 0, "frames": []}
                    self.merge(segment)
                    return

    @staticmethod
    def merge(segment: dict[str, Any]) -> None:
        merged: list[dict[str, Any]] = []
        for block in segment["blocks"]:
            if merged and merged[-1]["state"] == block["state"] == "inactive":
                merged[-1]["size"] += block["size"]
            else:
                merged.append(block)
        segment["blocks"] = merged

    def snapshot(self) -> dict[str, Any]:
        for segment in self.segments:
            used = [block for block in segment["blocks"] if block["state"] != "inactive"]
            size = sum(block["size"] for block in used)
            asked = sum(block["requested_size"] for block in used)
            segment |= {"allocated_size": size, "active_size": size, "requested_size": asked}
        settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False}
        return {
            "segments": self.segments,
            "device_traces": [self.trace],
            "allocator_settings": settings,
            "external_annotations": [],
        }


def leaking(steps: int = 60) -> dict[str, Any]:
    """Every step frees its activations and keeps one small tensor."""
    device = Allocator(1 << 40)
    model = [device.allocate(10 * MIB, stack("build", 5)) for _ in range(6)]
    assert all(model)
    for _ in range(steps):
        held = [device.allocate(8 * MIB, stack("forward", 31)) for _ in range(4)]
        device.allocate(2 * MIB, stack("log_loss", 44))
        for address in held:
            device.free(address or 0, stack("backward", 35))
    return device.snapshot()


def level(steps: int = 60) -> dict[str, Any]:
    """Every step gives back all it took."""
    device = Allocator(1 << 40)
    for _ in range(6):
        device.allocate(10 * MIB, stack("build", 5))
    for _ in range(steps):
        held = [device.allocate(8 * MIB, stack("forward", 31)) for _ in range(4)]
        for address in held:
            device.free(address or 0, stack("backward", 35))
    return device.snapshot()


def fragmented() -> dict[str, Any]:
    """Small tensors stay in every segment, so that larger requests fit nowhere though most is idle."""
    device = Allocator(400 * MIB)
    temporary = []
    for _ in range(20):
        temporary.append(device.allocate(9 * MIB, stack("forward", 31)))
        device.allocate(2 * MIB, stack("cache", 50))
        temporary.append(device.allocate(9 * MIB, stack("forward", 31)))
    for address in temporary:
        device.free(address or 0, stack("backward", 35))
    assert device.allocate(16 * MIB, stack("forward", 31)) is None
    return device.snapshot()
