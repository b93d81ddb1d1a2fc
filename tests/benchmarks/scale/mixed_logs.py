"""Logs as the ranks, servers and launchers of a cluster leave them, made up line by line: the same bytes every time.

About one line in twenty to one in a hundred of a training log holds metrics, as in logs of real jobs; the rest is what
libraries, data pipelines and applications say meanwhile. A few lines report real trouble.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

_WORDS = [
    "shard",
    "cache",
    "worker",
    "bucket",
    "sample",
    "prefetch",
    "manifest",
    "stage",
    "layout",
    "tokenizer",
    "sequence",
    "batcher",
    "index",
    "offset",
    "segment",
    "queue",
    "replica",
    "partition",
    "checkpoint",
    "reader",
    "writer",
    "planner",
    "scheduler",
    "router",
    "broker",
    "snapshot",
    "cursor",
    "buffer",
    "arena",
]
_VERBS = [
    "opened",
    "closed",
    "flushed",
    "merged",
    "rotated",
    "verified",
    "refreshed",
    "assigned",
    "released",
    "resumed",
    "packed",
    "scanned",
]
_MODULES = [
    "datasets.pipeline",
    "train.loop",
    "io.storage",
    "core.engine",
    "launcher.agent",
    "metrics.sink",
    "ckpt.async_writer",
]

Line = Callable[[random.Random, int], str]


def _clock(second: float) -> str:
    whole = int(second)
    return f"2026-03-{1 + whole // 86_400:02d} {whole // 3600 % 24:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _hash(rng: random.Random) -> str:
    return f"{rng.getrandbits(64):016x}"


def _application(rng: random.Random, tick: int) -> str:
    stamp = f"{_clock(tick / 9)},{tick % 1000:03d}"
    word, verb, module = rng.choice(_WORDS), rng.choice(_VERBS), rng.choice(_MODULES)
    return rng.choice(
        (
            f"{stamp} - {module} - INFO - {word} {rng.randrange(9000)} {verb} in {rng.random() * 90:.1f} ms "
            f"({_hash(rng)})",
            f"{stamp} - {module} - DEBUG - {verb} {word} /mnt/data/part-{rng.randrange(99_999):05d}.parquet "
            f"rows={rng.randrange(1 << 20)} bytes={rng.randrange(1 << 30)}",
            f"[{stamp}] [INFO] [{module}:{rng.randrange(900)}:{verb}] {word} {_hash(rng)} -> {rng.choice(_WORDS)}",
            f"{stamp} {word}.{verb}: request {_hash(rng)} took {rng.randrange(4000)} us, {rng.randrange(64)} in flight",
            f"INFO:{module}:{word} {rng.randrange(500)} {verb}; next {rng.choice(_WORDS)} at {rng.randrange(1 << 22)}",
            f"  {word}[{rng.randrange(64)}]: {rng.random():.6f} {rng.random():.6f} {rng.random():.6f}",
            f"{stamp} - {module} - INFO - {verb} {rng.randrange(200)} of 200 {word}s, {rng.randrange(9)} left behind",
        )
    )


def _nccl(rng: random.Random, tick: int) -> str:
    host, pid, gpu = f"node-{rng.randrange(64):03d}", 20_000 + rng.randrange(64), rng.randrange(8)
    head = f"{host}:{pid}:{pid + 400 + gpu} [{gpu}] NCCL INFO"
    a, b, channel = rng.randrange(512), rng.randrange(512), rng.randrange(32)
    return rng.choice(
        (
            f"{head} Channel {channel:02d}/0 : {a}[{gpu}] -> {b}[{7 - gpu}] via P2P/CUMEM/read",
            f"{head} Channel {channel:02d}/32 :    {a}   {b}   {a ^ 1}   {b ^ 1}",
            f"{head} Trees [{channel}] {a}/-1/-1->{b}->{a ^ 1} [1] {b}/-1/-1->{a}->{b ^ 1}",
            f"{head} Connected all rings",
            f"{head} NET/IB : Using [0]mlx5_{gpu}:1/IB [RO]; OOB ib0:10.0.{a % 250}.{b % 250}<0>",
            f"{head} comm 0x{_hash(rng)[:12]} rank {a} nranks 512 cudaDev {gpu} busId {gpu}7000 - Init COMPLETE",
            f"{head} threadThresholds 8/8/64 | 4096/8/64 | 512 | 512",
        )
    )


def _server(rng: random.Random, tick: int) -> str:
    stamp = _clock(tick / 40)[5:]
    address = f"10.1.{rng.randrange(250)}.{rng.randrange(250)}:{30_000 + rng.randrange(30_000)}"
    name = f"chatcmpl-{_hash(rng)}{_hash(rng)}"
    return rng.choice(
        (
            f'INFO:     {address} - "POST /v1/chat/completions HTTP/1.1" 200 OK',
            f'INFO:     {address} - "POST /v1/completions HTTP/1.1" 200 OK',
            f"INFO {stamp} async_llm_engine.py:207] Added request {name}.",
            f"INFO {stamp} async_llm_engine.py:173] Finished request {name}.",
            f"INFO {stamp} logger.py:37] Received request {name}: params: SamplingParams(n=1, temperature=0.7, "
            f"top_p=0.95, max_tokens={256 << rng.randrange(4)}, stop=[]), prompt_token_ids: None, lora_request: None.",
            f"DEBUG {stamp} scheduler.py:{rng.randrange(900)}] {rng.choice(_WORDS)} {rng.randrange(4000)} blocks free",
        )
    )


def _server_metrics(rng: random.Random, tick: int) -> str:
    return (
        f"INFO {_clock(tick / 40)[5:]} metrics.py:455] Avg prompt throughput: {rng.random() * 4000:.1f} tokens/s, Avg "
        f"generation throughput: {rng.random() * 900:.1f} tokens/s, Running: {rng.randrange(64)} reqs, "
        "Swapped: 0 reqs, "
        f"Pending: {rng.randrange(9)} reqs, GPU KV cache usage: {rng.random() * 90:.1f}%, CPU KV cache usage: 0.0%."
    )


def _megatron(rng: random.Random, tick: int) -> str:
    step = tick // 20 + 1
    return (
        f" [{_clock(tick / 9)}] iteration {step:8d}/  500000 | consumed samples: {step * 512:12d} | elapsed time per "
        f"iteration (ms): {1400 + rng.random() * 90:.1f} | "
        f"throughput per GPU (TFLOP/s/GPU): {380 + rng.random():.1f} | "
        f"learning rate: {3e-4 * (1 - step / 5e5):.6E} | global batch size:   512 | "
        f"lm loss: {2 + 4 / (1 + step / 99):.6E}"
        f" | loss scale: 1.0 | grad norm: {rng.random():.3f} | number of skipped iterations:   0 | number of nan "
        f"iterations:   0 |"
    )


def _deepspeed(rng: random.Random, tick: int) -> str:
    step = tick // 50 + 1
    return (
        f"[{_clock(tick / 9)},{tick % 1000:03d}] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, "
        f"lr=[{3e-4 * (1 - step / 5e5):.10f}], mom=[(0.9, 0.95)]"
    )


def _trainer(rng: random.Random, tick: int) -> str:
    step = tick // 100 + 1
    return (
        f"{{'loss': {2 + 4 / (1 + step / 99):.4f}, 'grad_norm': {rng.random() * 3:.12f}, 'learning_rate': "
        f"{3e-5 * (1 - step / 5e5):.12e}, 'epoch': {step / 9000:.2f}}}"
    )


def _plain_loop(rng: random.Random, tick: int) -> str:
    step = tick // 30 + 1
    return (
        f"{_clock(tick / 9)},{tick % 1000:03d} - train.loop - INFO - step {step}/400000 | loss "
        f"{2 + 4 / (1 + step / 99):.4f} | lr {3e-4 * (1 - step / 5e5):.3e} | grad_norm {rng.random():.3f} | "
        f"{180_000 + rng.randrange(9000):,} tok/s | {700 + rng.random() * 9:.1f} ms/step"
    )


def _bar(rng: random.Random, tick: int) -> str:
    first = tick % 49_000
    states = (
        f"\rTraining:  {(first + item) // 500}%|{'#' * ((first + item) // 5000):10}| {first + item}/50000 "
        f"[{(first + item) // 240:02d}:{item:02d}<3:07:21,  4.{rng.randrange(100):02d}it/s]"
        for item in range(1, 1 + rng.randrange(2, 9))
    )
    return "".join(states)


def _warning(rng: random.Random, tick: int) -> str:
    return rng.choice(
        (
            "/opt/conda/lib/python3.11/site-packages/torch/utils/data/dataloader.py:627: UserWarning: This DataLoader "
            "will "
            "create 32 worker processes in total. Our suggested max number of worker in current system is 16, which is "
            "smaller than what this DataLoader is going to create.\n  warnings.warn(",
            "/opt/conda/lib/python3.11/site-packages/torch/storage.py:414: FutureWarning: You are using `torch.load` "
            "with "
            "`weights_only=False`, which is deprecated.\n  return torch.load(io.BytesIO(b))",
            f"\x1b[33mWARNING\x1b[0m [{_clock(tick / 9)}] retrying {rng.choice(_WORDS)} after {rng.randrange(30)} s",
            f"slurmstepd: info: task/cgroup: step {tick}: memory.current={rng.randrange(1 << 38)} swap=0",
            f"srun: Job {4_000_000 + tick % 9999} step creation temporarily disabled, retrying "
            "(Requested nodes are busy)",
            f"\x1b[36m(RayTrainWorker pid={rng.randrange(99_999)}, ip=10.0.0.{rng.randrange(250)})\x1b[0m "
            f"{rng.choice(_VERBS)} {rng.choice(_WORDS)}",
        )
    )


def _trouble(rng: random.Random, tick: int) -> str:
    host = f"node-{rng.randrange(64):03d}"
    return rng.choice(
        (
            f"{host}:2114:2511 [3] transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_3:1 Got async event : port error",
            "Traceback (most recent call last):\n"
            f'  File "/opt/app/io/storage.py", line {rng.randrange(900)}, in fetch\n    return self._get(key)\n'
            f'  File "/opt/app/io/remote.py", line {rng.randrange(900)}, in _get\n    raise Throttled(key)\n'
            f"app.io.remote.Throttled: part-{rng.randrange(9999)}",
            f"{_clock(tick / 9)},000 - ckpt.async_writer - ERROR - could not link {_hash(rng)}: "
            f"retry {rng.randrange(9)}",
        )
    )


_FILES: tuple[tuple[str, float, dict[Line, float]], ...] = (
    (
        "ranks/rank_0.log",
        0.24,
        {_application: 55, _nccl: 30, _megatron: 5, _warning: 6, _bar: 0.5, _trouble: 0.02},
    ),
    ("ranks/rank_1.log", 0.14, {_application: 60, _nccl: 32, _warning: 4, _plain_loop: 3.3, _trouble: 0.02}),
    ("ranks/rank_2.log", 0.14, {_application: 50, _nccl: 44, _warning: 4, _deepspeed: 2, _trouble: 0.02}),
    ("finetune/stderr.log", 0.10, {_application: 70, _warning: 14, _bar: 4, _trainer: 1, _trouble: 0.1}),
    ("serving/vllm.log", 0.22, {_server: 94, _server_metrics: 2, _application: 4, _trouble: 0.02}),
    ("slurm-4000001.out", 0.12, {_application: 40, _nccl: 40, _warning: 18, _deepspeed: 1, _trouble: 0.1}),
    *((f"workers/worker_{index}.log", 0.04 / 8, {_application: 95, _warning: 5}) for index in range(8)),
)
"""Path, share of all bytes, and how often each kind of line comes."""


def write_logs(folder: Path, size: int = 200_000_000) -> list[Path]:
    """Write about `size` bytes of logs below a folder; return the files."""
    written = []
    for number, (path, share, mix) in enumerate(_FILES):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as out:
            for block in _blocks(random.Random(number), mix, int(size * share)):
                out.write(block)
        written.append(file)
    return written


def _blocks(rng: random.Random, mix: dict[Line, float], size: int) -> Iterator[bytes]:
    kinds, weights = list(mix), list(mix.values())
    tick, left = 0, size
    while left > 0:
        lines = [kind(rng, tick + index) for index, kind in enumerate(rng.choices(kinds, weights, k=1000))]
        tick += 1000
        block = ("\n".join(lines) + "\n").encode()
        yield block
        left -= len(block)
