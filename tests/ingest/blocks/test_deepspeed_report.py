from __future__ import annotations

from typing import Any

REPORT = """--------------------------------------------------
DeepSpeed C++/CUDA extension op report
--------------------------------------------------
NOTE: Ops not installed will be just-in-time (JIT) compiled at
      runtime if needed. Op compatibility means that your system
      meet the required dependencies to JIT install the op.
--------------------------------------------------
ninja .................. [OKAY]
--------------------------------------------------
op name ................ installed .. compatible
--------------------------------------------------
async_io ............... [NO] ....... [NO]
fused_adam ............. [YES] ...... [OKAY]
--------------------------------------------------
DeepSpeed general environment info:
torch install path ............... ['/opt/conda/lib/python3.10/site-packages/torch']
torch version .................... 2.1.0+cu118
deepspeed info ................... 0.12.3, unknown, unknown
torch cuda version ............... 11.8
torch hip version ................ None
shared memory (/dev/shm) size .... 64.00 MB
step 10 loss 2.0
"""


def test_the_report_of_an_installation(read: Any) -> None:
    found = read("ds_report.txt", REPORT)
    assert found.packages() == {"torch": "2.1.0+cu118", "deepspeed": "0.12.3"}
    assert found.one("system.operators").attr("operators")["async_io"] == {"installed": False, "compatible": False}
    assert found.one("system.environment").attr("cuda_build") == "11.8"
    assert found.one("system.filesystem").attr("size_bytes") == 64 * 2**20
    assert found.metrics("loss") == [(10, 2.0)]


def test_the_environment_of_accelerate(read: Any) -> None:
    text = "- PyTorch version (GPU?): 2.3.0+cu121 (True)\n- GPU type: NVIDIA A100-SXM4-80GB\n"
    events = read("env.txt", text).table.named("system.environment")
    assert [event.attrs for event in events] == [{"cuda_available": "True"}, {"gpu_name": "NVIDIA A100-SXM4-80GB"}]
