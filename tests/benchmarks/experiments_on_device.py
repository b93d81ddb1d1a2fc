"""The same experiments on a GPU and on the CPU: verdicts, losses, seconds and peak memory side by side.

    python tests/benchmarks/experiments_on_device.py [--devices cpu,cuda] [--write]

Carries out five twin experiments (about 60 CPU-seconds) on every device named; those that are not there are skipped and
said to be. `--write` replaces `experiments_on_device.json` beside this file. Verdicts must agree between devices;
losses need not be equal, because sums are taken in another order there.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from rca.experiments.devices import choose_device, free_gpu
from rca.experiments.interface import RunProfile
from rca.experiments.twin.experiment import TwinExperiment
from rca.experiments.workbench import Workbench
from rca.rules.load import load

RESULT = Path(__file__).with_suffix(".json")
_RUN: dict[str, Any] = {
    "family": "llama",
    "hidden_size": 256,
    "num_layers": 4,
    "num_attention_heads": 8,
    "optimizer": "adamw",
    "batch_size": 8,
    "seq_length": 32,
    "precision": "bf16",
}
CASES: dict[str, RunProfile] = {
    "lr_tenth": RunProfile(**_RUN, learning_rate=0.05, symptoms=("diverged", "plateau")),
    "lr_x10": RunProfile(**_RUN, learning_rate=1e-6, symptoms=("stuck",)),
    "skip_bad_batch": RunProfile(**_RUN, learning_rate=1e-3, symptoms=("nan_abrupt",), failure_step=20),
    "loss_fp32": RunProfile(**{**_RUN, "precision": "fp16"}, learning_rate=1e-3, symptoms=("nan_at_start", "skipping")),
    "unfreeze": RunProfile(**_RUN, learning_rate=1e-3, symptoms=("stuck",)),
}


def carry_out(device: str, *, seconds: float = 600.0) -> dict[str, dict[str, Any]]:
    """Return what every experiment found on one device."""
    bench = Workbench(device=device)
    found: dict[str, dict[str, Any]] = {}
    rules = load().experiments
    for name, profile in CASES.items():
        until = time.monotonic() + seconds
        bench.known.clear()
        experiment = TwinExperiment(rules[name], profile, bench, until).carry_out()
        control = experiment.control
        found[name] = {
            "verdict": experiment.verdict,
            "reason": experiment.reason,
            "effect": None if experiment.effect is None else experiment.effect.value,
            "control": () if control is None else control.values,
            "seconds": experiment.seconds,
            "peak MiB on the device": max((answer.device_bytes for answer in bench.known.values()), default=0) >> 20,
        }
    bench.close()
    return found


def compared(found: dict[str, dict[str, dict[str, Any]]]) -> dict[str, bool]:
    """Return whether the verdict of each experiment is the same on all devices."""
    return {name: len({rows[name]["verdict"] for rows in found.values()}) == 1 for name in CASES}


def main() -> None:
    """Run, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="cpu,cuda")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    names = asked.devices.split(",")
    there = [name for name in names if name != "cuda" or free_gpu()]
    found = {name: carry_out(name) for name in there}
    document = {
        "devices": there,
        "not there": [name for name in names if name not in there],
        "auto takes": choose_device("auto"),
        "same verdict": compared(found) if len(found) > 1 else "only one device is there",
        "experiments": found,
    }
    text = json.dumps(document, indent=1) + "\n"
    if asked.write:
        RESULT.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
