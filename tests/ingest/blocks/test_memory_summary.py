"""Statistics of the allocator as programs print them."""

# ruff: noqa: E501 - tables stand as they are printed

from __future__ import annotations

from typing import Any

import pytest

ONE_LINE = "OrderedDict([('active_bytes.all.current', 1073741824), ('allocated_bytes.all.current', 1073741824), ('inactive_split_bytes.all.current', 536870912), ('num_alloc_retries', 12), ('num_ooms', 1), ('reserved_bytes.all.current', 2147483648)])\n"
ONE_KEY_A_LINE = """{'active_bytes.all.current': 1073741824,
 'allocated_bytes.all.current': 1073741824,
 'inactive_split_bytes.all.current': 536870912,
 'num_alloc_retries': 12,
 'num_ooms': 1,
 'reserved_bytes.all.current': 2147483648}
"""


@pytest.mark.parametrize("text", [ONE_LINE, ONE_KEY_A_LINE])
def test_printed_statistics(read: Any, text: str) -> None:
    found = read("train.log", f"step 5 loss 2.0\n{text}")
    summary = found.one("system.memory_summary")
    assert (summary.attr("retries"), summary.attr("ooms"), summary.attr("inactive_bytes")) == (12, 1, 2**29)
    assert found.metrics("memory_reserved") == [(5, 2.0)]


TABLE = """|===========================================================================|
|                  PyTorch CUDA memory summary, device ID {device}                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 0            |        cudaMalloc retries: 3         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |   {used} MiB |   4096 MiB |  99999 MiB |  99998 MiB |
|       from large pool |   1024 MiB |   4096 MiB |  99999 MiB |  99998 MiB |
| GPU reserved memory   |   4096 MiB |   8192 MiB |   8192 MiB |      0 B   |
|===========================================================================|

"""


def test_every_device_has_a_curve_of_its_own(read: Any) -> None:
    text = "".join(TABLE.format(device=device, used=1024 * (device + 1)) for device in range(2))
    found = read("train.log", text)
    assert {item.device: item.value.tolist() for item in found.table.all_metrics("memory_allocated")} == {
        "": [1.0],
        "1": [2.0],
    }
    assert [event.attr("retries") for event in found.table.named("system.memory_summary")] == [3, 3]
