"""What the events of a profiler trace are, told by their category and name; old and new names of Kineto alike."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Role(IntEnum):
    """Who has a piece of the step time; where several are active at once, the first in this order has it.

    The order is that of torch-tb-profiler (event_parser.ProfileRole), so that the two can be compared.
    """

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    COMMUNICATION = 3
    RUNTIME = 4
    DATALOADER = 5
    CPU = 6
    STEP = 7
    IGNORED = 8


PARTS = tuple(role for role in Role if role < Role.STEP)
"""Roles that take part in the step breakdown, in their order."""
DEVICE = (Role.KERNEL, Role.MEMCPY, Role.MEMSET)

SKIPPED = frozenset(
    {"python_function", "gpu_user_annotation", "ac2g", "fwdbwd", "forward_backward", "async", "async_gpu", "overhead",
     "trace", "Trace", "cuda_sync", "cuda_profiler_range", "cpu_instant_event"}
)  # fmt: skip
"""Categories that the breakdown does not need; half of a trace with stacks is `python_function`."""

KERNELS = frozenset({"kernel", "Kernel", "concurrent_kernel"})
_MEMCPY = {"memcpy", "gpu_memcpy"}
_MEMSET = {"memset", "gpu_memset"}
_RUNTIME = {"runtime", "cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "xpu_runtime", "xpu_driver",
            "mtia_runtime", "privateuse1_runtime", "privateuse1_driver", "glow_runtime"}  # fmt: skip
_HOST = {"cpu_op", "operator", "python"}

_COLLECTIVE_KERNELS = ("nccl", "rccl", "oneccl", "msccl", "cross_device_reduce", "one_shot_all_reduce",
                       "two_shot_all_reduce", "multimem_all_reduce", "nvshmem", "deep_ep::")  # fmt: skip
"""Parts of the names of kernels that move data between devices (ncclKernel_* until NCCL 2.18, then ncclDevKernel_*)."""
_BLOCKING = ("gloo:", "mpi:", "ucc:")
"""Operators of host backends, which last as long as the transfer; `nccl:` on the host only enqueues a kernel."""
_HOST_ANNOTATIONS = ("Optimizer.", "DistributedDataParallel.", "DataParallel.")
"""Annotations of the framework around its own work; those of users may span anything and are left out."""

_TENSOR_CORE = ("h884", "s884", "h1688", "s1688", "hmma", "i8816", "16816", "16832", "c1688", "nvjet", "tensorop",
                "wgmma", "gmma", "bmma", "warpspecialized", "warp_specialized", "tf32f32", "bf16bf16", "f16f16", "e4m3",
                "bf16xbf16", "mxfp4", "flash", "fmha", "xdlops", "mfma", "gtcx", "triton_tem_", "_mi16x16",
                "_mi32x32")  # fmt: skip
"""Parts of the names (lower case) of kernels that run on matrix units: torch-tb-profiler's list (from NVIDIA PyProf),
the Hopper libraries it predates (nvjet, wgmma), CUTLASS' tensorop, attention kernels, and AMD's xdlops and MFMA."""
_NO_TENSOR_CORE = ("simt", "sgemm_", "ffma")
_MATMUL = ("gemm", "gemv", "conv", "wgrad", "dgrad", "fprop", "winograd", "cutlass", "cijk_", "matmul", "attention",
           "_mm_", "scudnn", "bmm")  # fmt: skip
"""Parts of the names of kernels that multiply matrices or convolve, on whatever unit."""
_NO_MATMUL = ("convert", "splitkreduce", "im2col", "padding", "nchwtonhwc", "nhwctonchw", "offsets", "prepostprocess")

_COMPILING = "(dynamo_timed)"
"""End of the names of the timed sections of torch.compile; `_compile.compile_inner` (2.4 on) or `_compile` is a frame's
whole compilation (torch/_dynamo/convert_frame.py)."""

_SYNC = ("cudamemcpy", "hipmemcpy", "hipmemcpywithstream", "cudafree", "hipfree")
_LAUNCH = ("launchkernel", "modulelaunch", "launchcooperative")


class Kind(NamedTuple):
    """What the events of one category and name are."""

    role: Role
    launch: bool = False
    """A call that starts a kernel."""
    graph: bool = False
    """A call that starts a whole graph of kernels: then kernels are not linked to launches one by one."""
    sync: bool = False
    """A call in which the host waits for the device."""
    to_host: bool = False
    """A copy from the device to the host."""
    to_device: bool = False
    item: bool = False
    """A read of one element as a Python number."""
    tensor_core: bool = False
    matmul: bool = False
    compiling: bool = False
    """A part of torch.compile's work."""
    compilation: bool = False
    """One compilation of one frame: the first, or another one because a guard failed."""


def kind_of(category: str, name: str) -> Kind:
    """Tell what the events of that category and name are."""
    group = category.lower()
    if category in KERNELS:
        return _kernel(name.lower())
    if group in _MEMCPY:
        return Kind(Role.MEMCPY, to_host="DtoH" in name or "DeviceToHost" in name, to_device="HtoD" in name)
    if group in _MEMSET:
        return Kind(Role.MEMSET)
    if group in _RUNTIME:
        return _call(name.lower())
    if group == "mtia_ccp_events":
        return Kind(
            Role.MEMCPY if name == "dma_request" else Role.IGNORED if name.startswith("event_") else Role.KERNEL
        )
    if group in _HOST or group == "user_annotation":
        return _host(name, annotation=group == "user_annotation")
    return Kind(Role.IGNORED)


def _kernel(name: str) -> Kind:
    if any(part in name for part in _COLLECTIVE_KERNELS):
        return Kind(Role.COMMUNICATION)
    core = any(part in name for part in _TENSOR_CORE) and not any(part in name for part in _NO_TENSOR_CORE)
    product = core or (any(part in name for part in _MATMUL) and not any(part in name for part in _NO_MATMUL))
    return Kind(Role.KERNEL, tensor_core=core, matmul=product)


def _call(name: str) -> Kind:
    return Kind(
        Role.RUNTIME,
        launch=any(part in name for part in _LAUNCH),
        graph="graphlaunch" in name,
        sync="synchronize" in name or name in _SYNC,
    )


def _host(name: str, *, annotation: bool) -> Kind:
    if name.startswith("ProfilerStep#"):
        return Kind(Role.STEP)
    if (name.startswith("enumerate(DataLoader)#") and name.endswith(".__next__")) or name.startswith(
        "enumerate(DataPipe)#"
    ):
        return Kind(Role.DATALOADER)
    if name.startswith(_BLOCKING):
        return Kind(Role.COMMUNICATION)
    if annotation and not name.startswith(_HOST_ANNOTATIONS):
        return Kind(Role.IGNORED)
    return Kind(
        Role.CPU,
        item=name == "aten::_local_scalar_dense",
        compiling=name.endswith(_COMPILING),
        compilation=name.endswith(_COMPILING) and name.startswith("_compile"),
    )
