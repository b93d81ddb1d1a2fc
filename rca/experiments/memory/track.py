"""Peak memory of a training step at the run's real sizes, without the memory: fake tensors and a tracker of live bytes.

Imported in the child process only: loads torch. The model is built from tensors that have shapes and no data; every
storage that an operation creates is counted until it dies. Two and four layers are tracked and the peak is continued to
the full depth (it is linear in depth; at full batch and length, in which it is not linear when the peak moves).
Measured against the CPU allocator: 0 to 10 % above it, never more than one tensor of logits. Fake *CPU* tensors on
purpose: fake CUDA tensors abort the process in CPU builds of torch.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rca.experiments.memory.question import MemoryQuestion
from rca.experiments.precision import FullPrecisionList
from rca.experiments.twin.config import ENCODERS, SEQ2SEQ
from rca.experiments.twin.models import transformer

_DEPTHS = (2, 4)
_LOW = {"bf16": torch.bfloat16, "fp16": torch.float16}


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all storages alive, and their peak."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = 0
        self.peak = 0
        self.weights: list[nn.Parameter] = []
        self._sizes: dict[int, tuple[weakref.ref[Any], int]] = {}

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Count the storages that one operation makes."""
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.watch(leaf)
        return result

    def watch(self, tensor: torch.Tensor) -> None:
        """Count the storage of a tensor, once, until it dies."""
        storage = tensor.untyped_storage()
        key = id(storage)
        known = self._sizes.get(key)
        if known is not None and known[0]() is storage:
            return
        size = storage.nbytes()
        self.live += size
        self.peak = max(self.peak, self.live)

        def gone(_reference: Any) -> None:
            self.live -= size
            self._sizes.pop(key, None)

        self._sizes[key] = (weakref.ref(storage, gone), size)


def peak(question: MemoryQuestion) -> dict[str, float]:
    """Return bytes at full depth: `forward_backward` (weights, gradients and activations at their peak), `weights`,
    `parameters` (a count) and `trainable` (a count)."""
    return at_depth(question, _track)


def at_depth(question: MemoryQuestion, measure: Callable[[MemoryQuestion, int], dict[str, float]]) -> dict[str, float]:
    """Measure at two small depths and continue to the full one."""
    few, more = (measure(question, depth) for depth in _DEPTHS)
    steps = (question.layers - _DEPTHS[0]) / (_DEPTHS[1] - _DEPTHS[0])
    return {name: few[name] + (more[name] - few[name]) * steps for name in few}


@contextmanager
def fake_step(question: MemoryQuestion, depth: int) -> Iterator[tuple[LiveBytes, Callable[[], Any]]]:
    """Yield the tracker and a function that does one forward pass with a loss, both on tensors without data."""
    with FakeTensorMode(allow_non_fake_inputs=True), ExitStack() as stack:
        torch.set_default_dtype(_LOW.get(question.weights, torch.float32))
        stack.callback(torch.set_default_dtype, torch.float32)
        model = _model(question, depth)
        tracker = stack.enter_context(LiveBytes())
        for tensor in (*model.parameters(), *model.buffers()):
            tracker.watch(tensor)
        if question.compute != question.weights:
            stack.enter_context(torch.autocast("cpu", dtype=_LOW[question.compute]))
            stack.enter_context(FullPrecisionList())
        tokens = torch.zeros((question.batch, question.seq), dtype=torch.int64)
        inputs: dict[str, Any] = {"input_ids": tokens, "labels": tokens}
        if question.family in SEQ2SEQ:
            inputs["decoder_input_ids"] = tokens
        if question.family in ENCODERS:
            inputs["labels"] = torch.zeros(question.batch, dtype=torch.int64)
        tracker.weights = list(model.parameters())
        yield tracker, lambda: model(**inputs)


def _track(question: MemoryQuestion, depth: int) -> dict[str, float]:
    with fake_step(question, depth) as (tracker, forward):
        weights = tracker.weights
        held = float(sum(weight.nbytes for weight in weights))
        forward().loss.backward()
        return {
            "forward_backward": float(tracker.peak),
            "weights": held,
            "parameters": float(sum(weight.numel() for weight in weights)),
            "trainable": float(sum(weight.numel() for weight in weights if weight.requires_grad)),
        }


def _model(question: MemoryQuestion, depth: int) -> nn.Module:
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
    ).train()
    if question.lora_r:
        _freeze_for_lora(model, question.lora_r)
    if question.checkpointing:
        _checkpoint(model)
    return model


def _checkpoint(model: nn.Module) -> None:
    enable = getattr(model, "gradient_checkpointing_enable", None)
    if enable is None:
        raise ValueError("this model class has no gradient checkpointing")
    enable(gradient_checkpointing_kwargs={"use_reentrant": False})


def _freeze_for_lora(model: nn.Module, rank: int) -> None:
    """Freeze all weights and give the query and value projections low-rank adapters."""
    for weight in model.parameters():
        weight.requires_grad_(False)
    names = ("q_proj", "v_proj", "query", "value", "c_attn", "query_key_value")
    for name, module in list(model.named_modules()):
        if name.rsplit(".", 1)[-1] in names and isinstance(getattr(module, "weight", None), torch.Tensor):
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
