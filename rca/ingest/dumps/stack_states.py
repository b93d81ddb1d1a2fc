"""What a process was doing when its stack was taken: waiting for other ranks, for data, for a lock, or working."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Frame = Mapping[str, Any]
"""`file`, `line`, `function` and `code` of one call."""

COLLECTIVE = re.compile(
    r"\b(all_?reduce(?:_coalesced)?|broadcast(?:_object_list|_coalesced)?|_?all_?gather\w{0,24}|"
    r"_?reduce_?scatter\w{0,24}|all_?to_?all\w{0,16}|monitored_?barrier|barrier|wait_for_everyone|"
    r"(?:batch_)?i?send(?:_recv)?|i?recv|gather(?:_object)?|scatter(?:_object_list)?|reduce)$",
    re.I,
)
"""A function that returns only when other ranks have called it as well."""
_TELLING: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "rendezvous",
        re.compile(
            r" (?:[\w.]{0,40}\.)?(?:init_process_group|_store_based_barrier|next_rendezvous|_create_\w{0,8}store|"
            r"init_distributed|initialize_distributed)$|TCPStore|FileStore|distributed/rendezvous\.py|"
            r"elastic/(?:rendezvous|utils/store)"
        ),
    ),
    (
        "collective",
        re.compile(
            r"distributed/(?:distributed_c10d|_functional_collectives|c10d_logger)\.py|deepspeed/comm/|horovod/|"
            r"mpi4py|multihost_utils|c10d::(?!detail)|ProcessGroup(?:NCCL|Gloo|MPI|UCC)|\bgloo::|"
            r"\bp?nccl[A-Z]\w{2,40}|\bMPI_[A-Z]|ray/util/collective|wait_for_everyone$"
        ),
    ),
    ("data", re.compile(r"torch/utils/data/_utils/(?:fetch|collate|pin_memory)\.py|tf/data/ops/.*_map_func")),
    ("idle", re.compile(r"torch/utils/data/_utils/worker\.py .*_worker_loop$")),
    (
        "data_wait",
        re.compile(
            r"torch/utils/data/dataloader\.py .*(?:_try_get_data|_get_data|_next_data|__next__|_reset|"
            r"_shutdown_workers)$|"
            r"tensorflow/python/data/ops/iterator_ops\.py|ray/data/.* iter_batches$"
        ),
    ),
    (
        "save",
        re.compile(
            r"torch/serialization\.py .*save|state_dict_saver|save_(?:checkpoint|pretrained|state|model|file|plan)|"
            r"checkpoint/.*(?:write_data|filesystem\.py)|_save_checkpoint"
        ),
    ),
    (
        "load",
        re.compile(
            r"torch/serialization\.py .*load|state_dict_loader|load_(?:checkpoint|state_dict|pretrained|model|dataset|"
            r"weights|file)$| from_pretrained$|safe_open"
        ),
    ),
    (
        "compile",
        re.compile(
            r"torch/(?:_inductor|_functorch/_?aot)|torch/_dynamo/(?:convert_frame|symbolic_convert|output_graph|"
            r"guards)\.py|triton/(?:compiler|runtime/(?:autotuner|build|jit))|torch/utils/cpp_extension\.py|"
            r"jax/_src/(?:compiler|pjit)\.py .*compile"
        ),
    ),
    (
        "device",
        re.compile(
            r"torch/cuda/(?:__init__|streams)\.py .*synchronize|\bcu(?:da)?(?:Stream|Device|Event|Ctx)Synchronize|"
            r"_local_scalar_dense|torch/xpu/.*synchronize|torch_xla/.*mark_step"
        ),
    ),
    (
        "network",
        re.compile(
            r"huggingface_hub/|urllib3/|requests/|httpx/|httpcore/|botocore/|s3fs/|gcsfs/|aiohttp/|wandb/|mlflow/"
        ),
    ),
    (
        "backward",
        re.compile(r"_engine_run_backward$|torch/(?:_tensor|autograd/__init__|autograd/graph)\.py .*backward$"),
    ),
    (
        "optimizer",
        re.compile(r"torch/optim/|clip_grad_norm|accelerate/optimizer\.py|torch/amp/grad_scaler\.py .*step$"),
    ),
    ("forward", re.compile(r"torch/nn/modules/module\.py .*_call_impl$|torch/nn/modules/(?!module\.py)")),
    ("import", re.compile(r"<frozen importlib|importlib/(?:_bootstrap|__init__)")),
)
"""What the innermost telling frame says, searched in `file function`; of one frame the first that fits."""
_WEAK = frozenset({"backward", "optimizer", "forward", "import"})
"""States in which a process works unless something further in says that it waits."""
_WAITS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("interpreter lock", re.compile(r"\btake_gil$|PyEval_(?:Restore|Acquire)Thread$|PyGILState_Ensure$")),
    (
        "lock",
        re.compile(
            r"\bthreading\.py .*(?:acquire|wait|join|_wait_for_tstate_lock|__enter__)$|multiprocessing/synchronize\.py|"
            r"filelock/|pthread_mutex_lock|__lll_lock_wait|lock_PyThread_acquire_lock|PyThread_acquire_lock|"
            r"concurrent/futures/_base\.py .*result$|portalocker/|GOMP_|gomp_|__kmp"
        ),
    ),
    ("process", re.compile(r"\bsubprocess\.py .*(?:wait|communicate|_try_wait|run)$|multiprocessing/popen_")),
    ("queue", re.compile(r"multiprocessing/(?:queues|connection)\.py|\bqueue\.py .*(?:get|put)$")),
    ("input", re.compile(r"\b(?:socket|ssl|selectors)\.py |asyncio/|(?:_|\b)e?p?poll(?:_p?wait)?$")),
)
"""What a process waits for, apart from its work; innermost frame first."""
LAUNCHERS = re.compile(r"torch/distributed/(?:elastic/(?:agent|multiprocessing)|run\.py|launcher)|accelerate/commands/")
_WORKER = re.compile(r"torch/utils/data/_utils/worker\.py|DataLoader worker|pt_data_worker")
_COMPILER = re.compile(r"_inductor/compile_worker|subproc_pool")
_TRACKER = re.compile(r"multiprocessing/(?:resource_tracker|forkserver|managers)\.py")
_COMPILED = re.compile(r"\.(?:c|cc|cpp|cxx|h|hpp|cu|cuh|S|rs|pyx|so[\d.]*)$")
_LIBRARY = re.compile(
    r"(?:site|dist)-packages/|/lib(?:64)?/python\d|/python3\.\d+/|^<|^\.\.?/|^Python/|^Modules/|\.so\b"
)
_KNOWN = sys.stdlib_module_names | frozenset({
    "torch", "torchvision", "torchaudio", "torchdata", "transformers", "accelerate", "deepspeed", "lightning",
    "pytorch_lightning", "lightning_fabric", "datasets", "numpy", "scipy", "pandas", "pyarrow", "PIL", "cv2", "triton",
    "tensorflow", "keras", "jax", "jaxlib", "flax", "ray", "wandb", "mlflow", "huggingface_hub", "urllib3", "requests",
    "tqdm", "click", "hydra", "omegaconf", "peft", "trl", "bitsandbytes", "xformers", "flash_attn", "vllm", "apex",
    "diffusers", "timm", "sklearn", "safetensors", "tokenizers", "fsspec", "s3fs", "botocore", "aiohttp", "httpx",
    "ignite", "mmengine", "mmcv", "composer", "fairscale", "horovod", "dask", "distributed", "uvicorn", "zmq",
    "filelock", "multiprocess", "joblib", "torch_xla", "debugpy", "fire", "typer", "pydantic", "attr", "absl",
})  # fmt: skip
"""Top-level names of libraries: py-spy prints paths without the folder of the installation."""


class Doing(NamedTuple):
    """What one stack says."""

    state: str
    """collective | rendezvous | data_wait | data | save | load | compile | device | network | backward | optimizer |
    forward | import | lock | queue | process | input | interpreter lock | idle | running."""
    operation: str | None
    """Which collective."""
    waits_on: str | None
    """What the innermost frames wait for, where they say it."""


def doing(frames: Sequence[Frame]) -> Doing:
    """Say what a stack, outermost frame first, is doing; `running` where no frame tells."""
    places = [f"{frame['file']} {frame['function']}" for frame in reversed(frames)]
    told = next(
        ((at, state) for at, place in enumerate(places) for state, what in _TELLING if what.search(place)), None
    )
    deep = len(places) if told is None else told[0]
    waits = next((kind for place in places[:deep] for kind, what in _WAITS if what.search(place)), None)
    state = "running" if told is None else told[1]
    if waits is not None and (told is None or state in _WEAK):
        return Doing(waits, None, waits)
    if state == "backward" and any("c10d::" in place for place in places):
        state = "collective"
    return Doing(state, _operation(places) if state == "collective" else None, waits)


def _operation(places: Sequence[str]) -> str | None:
    """Name the collective by the outermost function of the distributed package, which is what the program called."""
    found = None
    for place in places:
        if _TELLING[1][1].search(place) and (named := COLLECTIVE.search(place.split("(")[0])):
            found = named[1].lower().strip("_")
    return found


def role_of_process(frames: Sequence[Frame], command: str) -> str:
    """Say what kind of process a stack belongs to: main, data worker, launcher, compiler or service."""
    text = "\n".join(f"{frame['file']} {frame['function']}" for frame in frames)
    for role, pattern in (("data worker", _WORKER), ("compiler", _COMPILER), ("launcher", LAUNCHERS)):
        if pattern.search(text) or pattern.search(command[:400]):
            return role
    return "service" if _TRACKER.search(text) or "resource_tracker" in command[:400] else "main"


def is_library(file: str) -> bool:
    """Say whether a frame is of the interpreter or a library, by its full path or by its path inside the package."""
    if _LIBRARY.search(file):
        return True
    return not file.startswith("/") and file.split("/", 1)[0].removesuffix(".py") in _KNOWN


def innermost(frames: Sequence[Frame]) -> Frame:
    """Return the innermost frame of Python, or of anything where there is none."""
    return next((frame for frame in reversed(frames) if _is_python(frame)), frames[-1])


def _is_python(frame: Frame) -> bool:
    return frame["line"] is not None and not _COMPILED.search(frame["file"])


def user_frame(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame that belongs to the program itself."""
    return next(
        (frame for frame in reversed(frames) if frame["line"] is not None and not is_library(frame["file"])), None
    )
