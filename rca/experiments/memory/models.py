"""The model of a step as the run has it: adapters, checkpoints, marks on what quantization packs.

Imported in the child process only: loads torch.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from rca.experiments.memory.question import MemoryQuestion
from rca.experiments.twin.models import transformer

_ADAPTED = {
    "attention": ("q_proj", "v_proj", "query", "value", "c_attn", "query_key_value", "q", "v", "q_lin", "v_lin"),
    "linear": (),
}
"""Last names of the projections that get adapters; empty: every matrix inside the layers."""


def step_model(question: MemoryQuestion, depth: int) -> nn.Module:
    """Return the model of the step at a depth, with its adapters and checkpoints."""
    model = transformer(
        question.family,
        hidden=question.hidden,
        layers=depth,
        heads=question.heads,
        kv_heads=question.kv_heads,
        ff=question.ff,
        vocab=question.vocab,
        positions=max(question.seq, question.positions or 0, 8),
        labels=question.labels,
        tied=question.tied,
        attention=question.attention,
    ).train(question.training)
    _note_matrices(model)
    if question.lora_r:
        _freeze_for_lora(model, question.lora_r, question.lora_targets)
    if question.checkpointing:
        _checkpoint(model)
    return model


def _note_matrices(model: nn.Module) -> None:
    """Mark what quantization packs: every linear map but the head."""
    head = getattr(model, "get_output_embeddings", lambda: None)()
    for module in model.modules():
        if module is not head and (isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"):
            matrix: Any = module.weight
            matrix.quantizable = True


def _checkpoint(model: nn.Module) -> None:
    # transformers 5.2x renamed the method and its argument.
    enable = getattr(model, "activation_checkpointing_enable", None)
    if enable is not None:
        enable(activation_checkpointing_kwargs={"use_reentrant": False})
        return
    enable = getattr(model, "gradient_checkpointing_enable", None)
    if enable is None:
        raise ValueError("this model class has no gradient checkpointing")
    enable(gradient_checkpointing_kwargs={"use_reentrant": False})


def _freeze_for_lora(model: nn.Module, rank: int, targets: str) -> None:
    """Freeze all weights and give the chosen projections low-rank adapters."""
    for weight in model.parameters():
        weight.requires_grad_(False)
    names = _ADAPTED[targets]
    for name, module in list(model.named_modules()):
        matrix = isinstance(getattr(module, "weight", None), torch.Tensor) and module.weight.dim() == 2
        chosen = name.rsplit(".", 1)[-1] in names if names else any(part.isdigit() for part in name.split("."))
        if matrix and chosen and not isinstance(module, nn.Embedding):
            _adapt(module, rank)


def _adapt(module: nn.Module, rank: int) -> None:
    sizes = tuple(int(size) for size in module.weight.shape)  # type: ignore[union-attr]
    inside, outside = (sizes[1], sizes[0]) if isinstance(module, nn.Linear) else sizes
    down = nn.Parameter(torch.empty(inside, rank).normal_(std=1 / math.sqrt(inside)))
    up = nn.Parameter(torch.zeros(rank, outside))
    module.register_parameter("lora_down", down)
    module.register_parameter("lora_up", up)

    def add(_module: nn.Module, args: tuple[Any, ...], output: torch.Tensor) -> torch.Tensor:
        adapter: torch.Tensor = args[0].to(down.dtype) @ down @ up
        return output + adapter.to(output.dtype)

    module.register_forward_hook(add)
