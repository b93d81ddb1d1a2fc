"""A function compiled for inputs that change: how often. Imported in the child process only: loads torch.

Dynamo captures and guards as ever; the captured graph runs eagerly, so that no compiler is needed and nothing is slow.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import nn

from rca.experiments.loops.config import LoopConfig, Setting

_STEPS = 12
"""More than the eight compilations of one function that torch allows."""


def compilation(config: LoopConfig, setting: Setting) -> dict[str, float]:
    """Return `compilations` of the function over twelve steps, and `gave_up`: 1 where the limit was reached."""
    del setting
    from torch._dynamo import config as limits

    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    torch.compiler.reset()
    made = _Backend()
    model = _Small()
    dynamic = {"off": False, "auto": None, "on": True}[config.dynamic]
    compiled = torch.compile(model, backend=made, dynamic=dynamic)
    with torch.no_grad():
        for number in range(_STEPS):
            model.number = number if config.varies == "value" else 0
            compiled(torch.ones((4, 16 + 8 * number if config.varies == "size" else 16), dtype=torch.int64))
    torch.compiler.reset()
    limit = int(getattr(limits, "recompile_limit", 8))
    return {"compilations": float(made.count), "gave_up": float(made.count >= limit)}


class _Backend:
    """Runs captured graphs as they are and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, graph: torch.fx.GraphModule, _inputs: list[Any]) -> Any:
        """Compile one graph."""
        self.count += 1
        return graph.forward


class _Small(nn.Module):
    """Embedding, one layer, and a Python number that the result depends on."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(8, 16)
        self.layer = nn.Linear(16, 16)
        self.number = 0

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return one value a sample."""
        return torch.relu(self.layer(self.embedding(tokens))).mean(dim=(1, 2)) + self.number
