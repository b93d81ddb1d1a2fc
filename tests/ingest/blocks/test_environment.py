from __future__ import annotations

from typing import Any

import pytest

COLLECT_ENV = """Collecting environment information...
PyTorch version: 2.6.0+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.3 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Libc version: glibc-2.35

Python version: 3.11.7 (main, Dec  4 2023, 18:10:11) [GCC 11.4.0] (64-bit runtime)
Is CUDA available: False
CUDA runtime version: Could not collect
GPU models and configuration:
GPU 0: NVIDIA A100-SXM4-80GB
GPU 1: NVIDIA A100-SXM4-80GB

Nvidia driver version: 535.104.05
cuDNN version: Could not collect

Versions of relevant libraries:
[pip3] numpy==1.26.4
[pip3] triton==3.2.0
[conda] torch                     2.6.0+cu124              pypi_0    pypi
"""


@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_collect_env(read: Any, prefix: str) -> None:
    found = read("env.txt", "".join(f"{prefix}{line}\n" for line in COLLECT_ENV.splitlines()))
    assert found.packages() == {"torch": "2.6.0+cu124", "numpy": "1.26.4", "triton": "3.2.0"}
    told: dict[str, Any] = {}
    for event in found.table.named("system.environment"):
        told |= event.attrs or {}
    assert told["cuda_build"] == "12.4"
    assert (told["cuda_available"], told["driver"], told["libc"]) == ("False", "535.104.05", "glibc-2.35")
    assert told["python"] == "3.11.7"
    assert not {"rocm_build", "cudnn", "cuda_runtime"} & told.keys()
    assert [event.attr("index") for event in found.table.named("system.gpu")] == [0, 1]


def test_collect_env_writes_a_single_device_behind_its_heading(read: Any) -> None:
    report = COLLECT_ENV.replace("GPU 1: NVIDIA A100-SXM4-80GB\n", "").replace("configuration:\n", "configuration: ")
    found = read("env.txt", report).table.named("system.gpu")
    assert [(event.attr("index"), event.attr("name")) for event in found] == [(0, "NVIDIA A100-SXM4-80GB")]


@pytest.mark.parametrize("lines", [4, 19, 23, 24])
def test_a_failure_right_after_a_report_is_still_an_exception(read: Any, lines: int) -> None:
    head = "\n".join(COLLECT_ENV.splitlines()[:lines])
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    x\nNameError: name x\n'
    assert [event.name for event in read("job.log", f"{head}\n{trace}").table.of_kind("exception")] == ["NameError"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- `transformers` version: 4.46.3", {"transformers": "4.46.3"}),
        ("- PyTorch version (GPU?): 2.5.1+cu121 (True)", {"torch": "2.5.1+cu121"}),
        ("INFO:root:torch 2.0.1+cu118 transformers 4.31.0 accelerate 0.21.0",
         {"torch": "2.0.1+cu118", "transformers": "4.31.0", "accelerate": "0.21.0"}),
        ("INFO 10-02 05:59:59 [api_server.py:1680] vLLM API server version 0.10.2", {"vllm": "0.10.2"}),
        ("Initializing a V1 LLM engine (v0.8.5.post1) with config: model='x'", {"vllm": "0.8.5.post1"}),
        ("node1:123:123 [0] NCCL INFO NCCL version 2.21.5+cuda12.4", {"nccl": "2.21.5+cuda12.4"}),
        ("vllm 0.8.5.post1", {"vllm": "0.8.5.post1"}),
        ("torch.__version__ = 2.6.0", {"torch": "2.6.0"}),
        ("PyTorch version 2.1.2 available.", {"torch": "2.1.2"}),
        ("we saw torch 2 times", {}),
        ("step 3 ray 1.5 loss 2.0", {}),
    ],
)  # fmt: skip
def test_versions_in_lines(read: Any, line: str, expected: dict[str, str]) -> None:
    assert read("job.log", f"hello\n{line}\nbye\n").packages() == expected


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("torch.version.cuda 12.4", "cuda_build", "12.4"),
        ("torch.version.cuda: None", "cuda_build", None),
        ("torch.cuda.get_arch_list() ['sm_80', 'sm_90']", "arch_list", "['sm_80', 'sm_90']"),
        ("torch.cuda.get_device_capability(0) (12, 0)", "compute_capability", "12.0"),
        ("driver 570.133.20 (CUDA 12.8)", "driver_cuda", "12.8"),
        ("torch.cuda.is_available(): False", "cuda_available", "False"),
        ("torch.cuda.device_count() = 4", "gpu_count", "4"),
    ],
)
def test_what_lines_tell_of_the_platform(read: Any, line: str, key: str, value: str | None) -> None:
    told = [event.attr(key) for event in read("env.txt", f"{line}\n").table.named("system.environment")]
    assert (value in told) if value is not None else not any(told)


def test_a_freeze_list_inside_a_log(read: Any) -> None:
    found = read("job.log", "pip freeze:\nnumpy==1.26.4\ntorch==2.1.0\ntrl==0.9.6\nstarting\nsingle==1.0\n")
    assert found.packages() == {"numpy": "1.26.4", "torch": "2.1.0", "trl": "0.9.6"}


def test_a_pip_list_inside_a_log(read: Any) -> None:
    found = read(
        "job.log",
        "x\nPackage    Version\n---------- -------\nnumpy      1.26.4\ntorch      2.1.0\ntrl        0.9.6\ny\n",
    )
    assert found.packages() == {"numpy": "1.26.4", "torch": "2.1.0", "trl": "0.9.6"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "HOME=/home/ana\nNCCL_DEBUG=INFO\nWORLD_SIZE=8\n",
            {"home": "/home/ana", "nccl_debug": "INFO", "world_size": 8},
        ),
        ("running\nCUDA_VISIBLE_DEVICES=0,1\ndone\n", {"cuda_visible_devices": "0,1"}),
        ('declare -x HF_HOME="/data"\nexport TOKENIZERS_PARALLELISM=false\n',
         {"hf_home": "/data", "tokenizers_parallelism": "false"}),
        ("LOSS=0.3\nnext\n", {}),
    ],
)  # fmt: skip
def test_environment_variables(read: Any, text: str, expected: dict[str, Any]) -> None:
    assert read("env.txt", text).config() == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("INFO:chat:req=0 prompt=652 new=200 time=40.0s tok/s=5.0",
         {"prompt_tokens": 652, "new_tokens": 200, "latency_s": 40.0, "ms_per_token": 200.0}),
        (
            "sample 3 prompt 512 new_tokens 50 time 2.50 s (50.0 ms/token)",
            {"prompt_tokens": 512, "new_tokens": 50, "latency_s": 2.5, "ms_per_token": 50.0},
        ),
        ("id=1 prompt_tokens=10 completion_tokens: 50 ttft=100ms total=1.1s",
         {"prompt_tokens": 10, "new_tokens": 50, "latency_s": 1.1, "ttft_s": 0.1, "ms_per_token": 20.0}),
        ("llama_print_timings:        eval time =   309.60 ms /    24 runs   (   12.90 ms per token)",
         {"new_tokens": 24, "ms_per_token": 12.9}),
        ("Engine 000: Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 45.5 tokens/s, Running: 3 reqs, "
         "Waiting: 7 reqs, GPU KV cache usage: 99.5%, Prefix cache hit rate: 57.0%",
         {"generation_throughput": 45.5, "requests_waiting": 7, "kv_cache_usage": 0.995}),
    ],
)  # fmt: skip
def test_request_lines_and_server_statistics(read: Any, line: str, expected: dict[str, float]) -> None:
    found = read("serve.log", f"{line}\n")
    for name, value in expected.items():
        assert [number for _, number in found.metrics(name)] == [pytest.approx(value)]


@pytest.mark.parametrize("line", ["the prompt 3 of 10 made 4 new things", "input 12 of 40: 5 output files"])
def test_counts_of_other_things_are_no_requests(read: Any, line: str) -> None:
    found = read("serve.log", f"{line}\n")
    assert found.metrics("prompt_tokens") == found.metrics("new_tokens") == []
