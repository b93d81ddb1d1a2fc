"""Diagnoses as the pipeline makes them: one confirmed, one suspected on many ranks, one unknown, one healthy.

The words stand in the YAML files beside this one; curves and the entries that all ranks repeat are added here.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import yaml

from rca.diagnosis import Diagnosis

HERE = Path(__file__).parent
Curve = list[tuple[float, float]]


def wobble(step: int) -> float:
    """A deterministic stand-in for noise in [-1, 1]."""
    return math.sin(step * 12.9898) * 0.6 + math.sin(step * 4.1414) * 0.4


def load(name: str) -> dict[str, Any]:
    """The words of one sample."""
    document: dict[str, Any] = yaml.safe_load((HERE / f"{name}.yaml").read_text(encoding="utf-8"))
    return document


def lr_too_high() -> Diagnosis:
    """Learning rate ten times too high, NaN at the peak, confirmed by experiment."""
    loss: Curve = [(s, 10.4 - 3.2 * (1 - math.exp(-s / 90)) + 0.08 * wobble(s)) for s in range(0, 392, 2)]
    loss += [(s, 7.4 + 0.004 * (s - 392) ** 1.9 + 0.3 * wobble(s)) for s in range(392, 424, 2)]
    loss += [(s, math.nan) for s in range(424, 450, 2)]
    norm = [(s, 1.3 + 0.4 * wobble(s) + (0 if s < 380 else math.exp((s - 380) / 6.5))) for s in range(0, 424, 2)]
    norm += [(s, math.nan) for s in range(424, 450, 2)]
    times = [(s, 0.412 + 0.02 * wobble(s) + (1.1 if s % 150 == 148 else 0)) for s in range(0, 450, 2)]
    document = load("confirmed")
    document["series"] = [
        {"name": "loss", "label": "training loss", "points": loss},
        {
            "name": "eval_loss",
            "label": "evaluation loss",
            "phase": "eval",
            "points": [(s, 10.2 - 2.9 * (1 - math.exp(-s / 90))) for s in range(50, 420, 50)],
        },
        {"name": "grad_norm", "label": "gradient norm", "points": norm, "log_scale": True},
        {
            "name": "learning_rate",
            "label": "learning rate",
            "points": [(s, 3e-2 * min(1.0, s / 400)) for s in range(0, 450, 2)],
        },
        {
            "name": "memory_allocated",
            "label": "allocated memory",
            "unit": "GiB",
            "points": [(s, 31.2 + 0.05 * wobble(s)) for s in range(0, 450, 2)],
        },
        {"name": "step_time", "label": "step time", "unit": "s", "points": times},
    ]
    control = [(s, 5.5 - 1.6 * (1 - math.exp(-s / 6)) + 0.25 * wobble(s)) for s in range(0, 60, 2)]
    treated = [(s, 5.5 - 3.9 * (1 - math.exp(-s / 18)) + 0.03 * wobble(s)) for s in range(0, 60, 2)]
    document["experiments"][0]["control"]["curve"] = control
    document["experiments"][0]["treatment"]["curve"] = treated
    document["experiments"][1]["control"]["curve"] = control
    document["experiments"][1]["treatment"]["curve"] = [(s, v + 0.05) for s, v in control]
    return Diagnosis.model_validate(document)


def oom_on_many_ranks() -> Diagnosis:
    """Eight ranks, rank 3 out of memory first, the others time out; suspected only."""
    document = load("suspected")
    (first,) = document["timeline"]
    others = [rank for rank in range(8) if rank != first["rank"]]
    document["timeline"] = [_step_line(rank) for rank in others] + [first] + [_timeout_line(rank) for rank in others]
    (source,) = document["sources"]
    document["sources"] = [{**source, "path": f"logs/rank_{rank}.log"} for rank in range(8)]
    steps = range(3900, 4120, 4)
    document["series"] = [
        {
            "name": "loss",
            "label": "training loss",
            "rank": rank,
            "points": [(s, 2.0 - (s - 3900) / 9000 + 0.02 * wobble(s + rank)) for s in steps],
        }
        for rank in range(8)
    ]
    for name, label, points in (
        ("memory_reserved", "reserved memory", [(s, 60 + (s - 3900) / 14) for s in steps]),
        ("memory_allocated", "allocated memory", [(s, 51 + 0.4 * wobble(s)) for s in steps]),
    ):
        document["series"].append({"name": name, "label": label, "unit": "GiB", "rank": 3, "points": points})
    return Diagnosis.model_validate(document)


def _step_line(rank: int) -> dict[str, Any]:
    return {
        "id": f"hb{rank}",
        "time": "2026-05-02T03:12:41.000Z",
        "relative_s": -3.5,
        "step": 4119,
        "rank": rank,
        "kind": "log",
        "name": "train.step",
        "source": f"logs/rank_{rank}.log",
        "line": 1990 + rank,
        "text": f"step 4119 | loss 1.98{rank} | 412 ms",
    }


def _timeout_line(rank: int) -> dict[str, Any]:
    return {
        "id": f"to{rank}",
        "time": f"2026-05-02T03:22:44.{900 + rank}Z",
        "relative_s": 600.4 + rank / 1000,
        "step": 4120,
        "rank": rank,
        "kind": "log",
        "name": "nccl.watchdog_timeout",
        "severity": "error",
        "role": "cascade",
        "source": f"logs/rank_{rank}.log",
        "line": 2011,
        "text": f"[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=98812, OpType=ALLREDUCE)",
    }


def unknown() -> Diagnosis:
    """Nothing decides the case; the report says what would."""
    return Diagnosis.model_validate(load("unknown"))


def healthy() -> Diagnosis:
    """A run that did what it should, with a frightening but harmless warning."""
    document = load("healthy")
    points = [(s, 10.4 * math.exp(-s / 700) + 1.6 + 0.05 * wobble(s)) for s in range(0, 2000, 10)]
    document["series"] = [{"name": "loss", "label": "training loss", "points": points}]
    return Diagnosis.model_validate(document)


def every() -> dict[str, Diagnosis]:
    """All samples by name."""
    return {"confirmed": lr_too_high(), "suspected": oom_on_many_ranks(), "unknown": unknown(), "healthy": healthy()}
