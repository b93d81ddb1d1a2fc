"""Where experiments run, with the driver's answers played by a stand-in: no test machine has a GPU to share."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from rca.experiments import devices
from rca.experiments.devices import choose_device, environment, free_gpu, share, torch_has_cuda
from rca.experiments.twin.config import TwinConfig
from rca.experiments.workbench import Task, Workbench

GIB = 2**30


@dataclass
class Gpu:
    """What the driver says about one GPU."""

    used: float = 0.5
    total: float = 80.0
    processes: tuple[int, ...] = ()
    instances: bool = False
    broken: bool = False


@dataclass
class Driver:
    """Answers like NVML."""

    gpus: list[Gpu] = field(default_factory=list)
    open: int = 0

    NVMLError = pynvml.NVMLError

    def nvmlInit(self) -> None:  # noqa: N802
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        if self.gpus[index].broken:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"GPU-{handle}aaa-bbb"

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:  # noqa: N802
        if not self.gpus[handle].instances:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return [1, 1]

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> tuple[int, ...]:  # noqa: N802
        return self.gpus[handle].processes

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        gpu = self.gpus[handle]
        return SimpleNamespace(
            used=int(gpu.used * GIB), total=int(gpu.total * GIB), free=int((gpu.total - gpu.used) * GIB)
        )


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    monkeypatch.setitem(sys.modules, "pynvml", made)
    monkeypatch.setattr(devices, "torch_has_cuda", lambda: True)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return made


@pytest.mark.parametrize(
    ("gpu", "chosen"),
    [
        (Gpu(), "cuda"),
        (Gpu(processes=(4242,)), "cpu"),
        (Gpu(used=5), "cpu"),
        (Gpu(used=0.4, total=2.0), "cpu"),
        (Gpu(instances=True), "cpu"),
        (Gpu(broken=True), "cpu"),
    ],
)
def test_only_a_gpu_that_nobody_uses_is_taken(driver: Driver, gpu: Gpu, chosen: str) -> None:
    driver.gpus = [gpu]
    assert choose_device("auto") == chosen
    assert driver.open == 0


def test_of_several_the_one_with_most_free_memory_is_taken_and_the_child_sees_no_other(driver: Driver) -> None:
    driver.gpus = [Gpu(processes=(1,)), Gpu(total=24), Gpu(total=40), Gpu(broken=True)]
    assert free_gpu() == "GPU-2aaa-bbb"
    seen = environment("cuda")
    assert seen["CUDA_VISIBLE_DEVICES"] == "GPU-2aaa-bbb"
    assert seen["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert seen["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


@pytest.mark.parametrize(
    ("visible", "found"),
    [
        ("0", "GPU-0aaa-bbb"),
        ("1,0", "GPU-1aaa-bbb"),
        ("GPU-0aaa", "GPU-0aaa-bbb"),
        ("", None),
        ("-1", None),
        ("7", None),
    ],
)
def test_gpus_that_are_hidden_from_the_process_stay_hidden(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, visible: str, found: str | None
) -> None:
    driver.gpus = [Gpu(total=40), Gpu(total=80)]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert free_gpu() == found


def test_what_is_asked_for_is_taken_as_asked(driver: Driver) -> None:
    driver.gpus = [Gpu(processes=(1,))]
    assert [choose_device(name) for name in ("cpu", "cuda", "mps")] == ["cpu", "cuda", "mps"]
    assert "CUDA_VISIBLE_DEVICES" not in environment("cuda")


def test_without_a_driver_or_with_a_torch_for_the_cpu_the_cpu_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "torch_has_cuda", lambda: True)
    monkeypatch.setattr(sys, "platform", "linux")

    def missing() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", missing)
    assert choose_device("auto") == "cpu"
    monkeypatch.setattr(devices, "torch_has_cuda", lambda: False)
    monkeypatch.setattr(devices, "free_gpu", lambda: "GPU-0")
    assert choose_device("auto") == "cpu"


@pytest.mark.parametrize(("machine", "chosen"), [("arm64", "mps"), ("x86_64", "cpu")])
def test_on_a_mac_its_own_gpu_is_taken(monkeypatch: pytest.MonkeyPatch, machine: str, chosen: str) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(devices.platform, "machine", lambda: machine)
    assert choose_device("auto") == chosen


def test_a_child_on_the_cpu_sees_no_gpu() -> None:
    assert environment("cpu") == {"CUDA_VISIBLE_DEVICES": ""}


@pytest.mark.parametrize(
    ("line", "built"), [("cuda: Optional[str] = None", False), ("cuda: Optional[str] = '13.0'", True)]
)
def test_whether_torch_was_built_for_cuda_is_read_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, built: bool
) -> None:
    (tmp_path / "__init__.py").write_text("raise ImportError")
    (tmp_path / "version.py").write_text(f"__version__ = '2.13.0'\ndebug = False\n{line}\nhip: Optional[str] = None\n")
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: spec)
    assert torch_has_cuda() is built


def test_a_job_takes_at_most_a_tenth_and_at_most_half_of_what_is_free() -> None:
    assert share(79 * GIB, 80 * GIB) == 0.1
    assert share(8 * GIB, 80 * GIB) == pytest.approx(0.05)


def test_choosing_a_device_loads_no_torch() -> None:
    program = (
        "import sys\n"
        "import rca.experiments.workbench\n"
        "from rca.experiments.devices import choose_device\n"
        "choose_device('auto')\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=dict(os.environ))


@pytest.mark.gpu
def test_a_job_on_the_gpu_keeps_to_its_share() -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    program = (
        "import torch\n"
        "from rca.experiments.devices import confine, share\n"
        "confine('cuda')\n"
        "free, total = torch.cuda.mem_get_info()\n"
        "try:\n"
        "    torch.empty(int(0.11 * total), dtype=torch.uint8, device='cuda')\n"
        "except torch.OutOfMemoryError:\n"
        "    print('kept')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "kept"


@pytest.mark.gpu
def test_jobs_use_the_gpu_and_their_server_never_touches_it() -> None:
    if free_gpu() is None or not torch_has_cuda():
        pytest.skip("needs a CUDA device that nobody uses")
    config = TwinConfig(family="mlp", steps=3).model_dump(mode="json")
    bench = Workbench(device="cuda")
    task = Task("train", {"config": config, "seed": 0, "device": "cuda"})
    answer = bench.run([task], deadline=time.monotonic() + 120)[0]
    assert answer.error == ""
    assert answer.device_bytes > 0
    assert bench._child is not None
    assert "/dev/nvidia" not in Path(f"/proc/{bench._child.pid}/maps").read_text(encoding="utf-8", errors="replace")
    bench.close()
