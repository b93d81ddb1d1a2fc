"""Named checks that need no training. Imported in the child process only: loads torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from rca.experiments.memory.question import MemoryQuestion
from rca.experiments.memory.track import LiveBytes, at_depth, fake_step
from rca.experiments.twin.config import TwinConfig
from rca.experiments.twin.models import build


def run_probe(name: str, settings: Mapping[str, Any]) -> dict[str, float]:
    """Run one named check. Raises ValueError for an unknown name."""
    if name not in PROBES:
        raise ValueError(f"unknown probe {name!r}; known are {', '.join(sorted(PROBES))}")
    return PROBES[name](settings)


def kept_bytes(settings: Mapping[str, Any]) -> dict[str, float]:
    """Bytes that each step leaves behind at the run's sizes: `graph` when its graph is kept, `outputs` when only the
    logits are, `number` when nothing but a number is."""
    return at_depth(MemoryQuestion.model_validate(settings["question"]), _kept)


def _kept(question: MemoryQuestion, depth: int) -> dict[str, float]:
    growth = {}
    for keep in ("graph", "outputs", "number"):
        with fake_step(question, depth) as (tracker, forward):
            growth[keep] = _growth(tracker, forward, keep)
    return growth


def _growth(tracker: LiveBytes, forward: Callable[[], Any], keep: str) -> float:
    kept: list[Any] = []
    alive: list[int] = []
    for _ in range(3):
        output = forward()
        if keep == "graph":
            kept.append(output.loss)
        elif keep == "outputs":
            kept.append(output.logits.detach())
        del output
        alive.append(tracker.live)
    return float(alive[-1] - alive[-2])


def token_cost(settings: Mapping[str, Any]) -> dict[str, float]:
    """Arithmetic of the next token after a long prefix over that after one a quarter as long: `without` the key-value
    cache and `with` it, counted on the twin."""
    config = TwinConfig.model_validate({**settings["twin"], "seq": _LONG, "dropout": 0.0})
    model = build(config).eval()
    return {
        name: _next_token(model, _LONG, cached=cached) / _next_token(model, _LONG // 4, cached=cached)
        for name, cached in (("without", False), ("with", True))
    }


def _next_token(model: nn.Module, length: int, *, cached: bool) -> int:
    tokens = torch.ones((1, length), dtype=torch.int64)
    # transformers 5.2x renamed the argument.
    name = "cache" if "cache" in signature(model.forward).parameters else "past_key_values"
    with torch.no_grad():
        past = {}
        if cached:
            before = model(input_ids=tokens[:, :-1], use_cache=True)
            past = {name: getattr(before, name, None) or before.past_key_values}
        with FlopCounterMode(display=False) as counter:
            model(input_ids=tokens[:, -1:] if cached else tokens, use_cache=cached, **past)
    return int(counter.get_total_flops())


_LONG = 256
PROBES: dict[str, Callable[[Mapping[str, Any]], dict[str, float]]] = {
    "kept_bytes": kept_bytes,
    "token_cost": token_cost,
}
