"""Predicted peak memory against what a GPU allocates, for twelve configurations.

    python tests/benchmarks/memory_on_device.py            # a table, then one JSON document
    pytest tests/benchmarks/memory_on_device.py            # fails where a prediction is off by more than 10 %

Every step is predicted first, on tensors without data, then two real steps are run and `max_memory_allocated` is read.
Without a GPU it says so and measures nothing; a configuration that the free memory cannot hold is left out.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from rca.experiments.memory.arithmetic import peak_of
from rca.experiments.memory.question import GIB, MemoryQuestion, traced

WITHIN = 0.10
SIZES: dict[str, Any] = {"hidden": 2048, "layers": 16, "heads": 16, "kv_heads": 16, "ff": 5632, "vocab": 32000}
CASES: dict[str, dict[str, Any]] = {
    "llama 0.9B, fp32": {"batch": 2, "seq": 512},
    "llama 0.9B, fp32, fused": {"batch": 2, "seq": 512, "foreach": False},
    "llama 0.9B, autocast": {"batch": 4, "seq": 1024, "compute": "bf16"},
    "llama 0.9B, autocast, checkpointing": {"batch": 4, "seq": 1024, "compute": "bf16", "checkpointing": True},
    "llama 0.9B, bf16": {"batch": 4, "seq": 1024, "weights": "bf16", "compute": "bf16"},
    "llama 0.9B, bf16, eager": {
        "batch": 4, "seq": 1024, "weights": "bf16", "compute": "bf16", "attention": "eager"},
    "llama 0.9B, bf16, LoRA": {"batch": 4, "seq": 1024, "weights": "bf16", "compute": "bf16", "lora_r": 16},
    "llama 0.9B, bf16, LoRA, checkpointing": {
        "batch": 8, "seq": 2048, "weights": "bf16", "compute": "bf16", "lora_r": 16, "checkpointing": True},
    "llama 0.9B, forward only": {"batch": 8, "seq": 2048, "weights": "bf16", "compute": "bf16", "task": "generate"},
    "gpt2 medium, autocast": {
        "family": "gpt2", "hidden": 1024, "layers": 24, "ff": 4096, "vocab": 50257, "batch": 4, "seq": 1024,
        "compute": "bf16"},
    "bert large, fp32": {
        "family": "bert", "hidden": 1024, "layers": 24, "ff": 4096, "vocab": 30522, "batch": 16, "seq": 512},
    "t5 large, autocast, checkpointing": {
        "family": "t5", "hidden": 1024, "layers": 24, "ff": 4096, "vocab": 32128, "batch": 4, "seq": 512,
        "compute": "bf16", "checkpointing": True},
}  # fmt: skip


def predicted(step: MemoryQuestion) -> float:
    """Return the predicted peak bytes of the tensors of a step, without a key-value cache that is not filled."""
    from rca.experiments.memory.track import peak

    found = peak_of(step, peak(traced(step)))
    return found.total - found.cache


def measured(step: MemoryQuestion) -> float:
    """Return the most bytes that two real steps allocated on the GPU."""
    import torch

    from rca.experiments.memory.models import step_model
    from rca.experiments.memory.track import step_inputs

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    torch.set_default_dtype(torch.bfloat16 if step.weights == "bf16" else torch.float32)
    try:
        with torch.device("cuda"):
            model = step_model(step, step.layers)
            inputs = step_inputs(step)
    finally:
        torch.set_default_dtype(torch.float32)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    how = {"foreach": True} if step.foreach else {"fused": True}
    optimizer = torch.optim.AdamW(weights, **how) if step.training else None
    torch.cuda.reset_peak_memory_stats()
    low = step.compute != step.weights
    for _ in range(2):
        with torch.set_grad_enabled(step.training), torch.autocast("cuda", dtype=torch.bfloat16, enabled=low):
            output = model(**inputs)
        if optimizer is not None:
            loss = output.loss
            del output
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            del loss
    torch.cuda.synchronize()
    return float(torch.cuda.max_memory_allocated() - before)


def rows() -> list[dict[str, Any]]:
    """Return what was predicted and measured; a reason where nothing was."""
    import torch

    if not torch.cuda.is_available():
        return [{"case": name, "not_run": "no GPU"} for name in CASES]
    steps = {name: MemoryQuestion(**{"family": "llama", **SIZES, **change}) for name, change in CASES.items()}
    expected = {name: predicted(step) for name, step in steps.items()}
    found: list[dict[str, Any]] = []
    for name, step in steps.items():
        free, _ = torch.cuda.mem_get_info()
        row: dict[str, Any] = {"case": name, "predicted_gib": round(expected[name] / GIB, 3)}
        if 1.15 * expected[name] > free:
            found.append({**row, "not_run": f"{free / GIB:.1f} GiB are free"})
            continue
        real = measured(step)
        found.append({**row, "measured_gib": round(real / GIB, 3), "ratio": round(expected[name] / real, 4)})
    return found


@pytest.mark.gpu
def test_predictions_agree_with_the_device() -> None:
    found = rows()
    ran = [row for row in found if "ratio" in row]
    if not ran:
        pytest.skip(f"not run: {found[0]['not_run']}")
    assert {row["case"]: row["ratio"] for row in ran if abs(row["ratio"] - 1) > WITHIN} == {}


def main() -> None:
    """Print the table and the JSON document."""
    import torch

    found = rows()
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    for row in found:
        figures = (
            f"not run: {row['not_run']}"
            if "not_run" in row
            else f"predicted {row['predicted_gib']:7.2f}  measured {row['measured_gib']:7.2f} GiB  x{row['ratio']:.3f}"
        )
        sys.stdout.write(f"{row['case']:<40} {figures}\n")
    sys.stdout.write(json.dumps({"device": name, "torch": torch.__version__, "rows": found}) + "\n")


if __name__ == "__main__":
    main()
