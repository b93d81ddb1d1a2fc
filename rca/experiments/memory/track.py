"""Peak memory of a step at the run's real sizes, without the memory: fake tensors and a tracker of live bytes.

Imported in the child process only: loads torch. The model is built from tensors that have shapes and no data; every
storage that an operation creates is counted until it dies. Two and four layers are tracked and continued to the full
depth. Where the peak lies changes with depth (early: activations of all layers; late: gradients of all layers), so
each moment of the backward pass that can hold it is continued by itself and the highest is taken afterwards.
Fake *CPU* tensors on purpose: fake CUDA tensors abort the process in CPU builds of torch.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rca.experiments.memory.models import step_model
from rca.experiments.memory.question import MemoryQuestion, stacks
from rca.experiments.precision import FullPrecisionList
from rca.experiments.twin.config import ENCODERS, SEQ2SEQ

_DEPTHS = (2, 4)
_LOW = {"bf16": torch.bfloat16, "fp16": torch.float16}
FORWARD = "start"
"""The moment in which a step begins."""
KINDS = ("gradients", "logits", "activations")
"""What live bytes that are no weights belong to."""


@dataclass
class _Held:
    size: int
    kind: str


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all storages alive, by kind, and their peak in every moment of the step."""

    def __init__(self, *, logits: tuple[int, int] = (0, 0)) -> None:
        """`logits`: number of tokens and entries of the vocabulary, by which their tensors are recognised."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = 0
        self.peak = 0
        self.weights: list[nn.Parameter] = []
        self.moment = FORWARD
        self.moments: dict[str, tuple[int, dict[str, int]]] = {}
        self._logits = logits
        self._shapes: set[tuple[tuple[int, ...], torch.dtype]] = set()
        self._by_kind = dict.fromkeys(("held", *KINDS), 0)
        self._known: dict[int, tuple[weakref.ref[Any], _Held]] = {}

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Count the storages that one operation makes."""
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.watch(leaf)
        return result

    def hold(self, weights: Sequence[nn.Parameter]) -> None:
        """Count the weights of the model, and know their gradients by their shapes."""
        self.weights = list(weights)
        for weight in weights:
            self.watch(weight, "held")
            if weight.requires_grad and weight.dim() == 2:
                shape = tuple(weight.shape)
                self._shapes |= {(shape, weight.dtype), (shape[::-1], weight.dtype)}

    def watch(self, tensor: torch.Tensor, kind: str = "") -> None:
        """Count the storage of a tensor, once, until it dies; a `kind` given later replaces the first."""
        storage = tensor.untyped_storage()
        key = id(storage)
        known = self._known.get(key)
        if known is not None and known[0]() is storage:
            if kind:
                self._move(known[1], kind)
            return
        size = storage.nbytes()
        entry = _Held(size, kind or self._kind(tensor))
        self.live += size
        self._by_kind[entry.kind] += size

        def gone(_reference: Any) -> None:
            self.live -= size
            self._by_kind[entry.kind] -= size
            self._known.pop(key, None)

        self._known[key] = (weakref.ref(storage, gone), entry)
        self._look()

    def _kind(self, tensor: torch.Tensor) -> str:
        if self.moment != FORWARD and (tuple(tensor.shape), tensor.dtype) in self._shapes:
            return "gradients"
        tokens, vocab = self._logits
        wide = tokens and tensor.dim() >= 2 and tensor.shape[-1] == vocab
        return "logits" if wide and 0.9 * tokens <= tensor.numel() // vocab <= tokens else "activations"

    def _move(self, entry: _Held, kind: str) -> None:
        self._by_kind[entry.kind] -= entry.size
        self._by_kind[kind] += entry.size
        entry.kind = kind

    def _look(self) -> None:
        self.peak = max(self.peak, self.live)
        if self.live > self.moments.get(self.moment, (0, {}))[0]:
            self.moments[self.moment] = (self.live, dict(self._by_kind))

    def enter(self, moment: str) -> None:
        """Begin a moment of the step."""
        self.moment = moment
        self._look()


def peak(question: MemoryQuestion) -> dict[str, float]:
    """Return what the step holds at full depth, in bytes: `weights`, `layer` (weights of one layer of each stack), and
    for each moment `<moment>.gradients`, `.logits` and `.activations`; as counts `parameters`, `trainable`, `matrices`
    (weights that quantization packs) and `largest` (entries of the largest of them)."""
    return at_depth(question, _track)


def at_depth(question: MemoryQuestion, measure: Callable[[MemoryQuestion, int], dict[str, float]]) -> dict[str, float]:
    """Measure at two small depths and continue to the full one; what only one of them has is left out."""
    few, more = (measure(question, depth) for depth in _DEPTHS)
    steps = (question.layers - _DEPTHS[0]) / (_DEPTHS[1] - _DEPTHS[0])
    return {name: few[name] + (more[name] - few[name]) * steps for name in few if name in more}


@contextmanager
def fake_step(question: MemoryQuestion, depth: int) -> Iterator[tuple[LiveBytes, Callable[[], Any]]]:
    """Yield the tracker and a function that does one forward pass with a loss, both on tensors without data."""
    with FakeTensorMode(allow_non_fake_inputs=True), _one_sequence_a_row(), step(question, depth) as made:
        yield made


@contextmanager
def step(question: MemoryQuestion, depth: int) -> Iterator[tuple[LiveBytes, Callable[[], Any]]]:
    """Yield the tracker and the forward pass on whatever tensors the surrounding mode makes, real ones without any."""
    with ExitStack() as stack:
        torch.set_default_dtype(_LOW.get(question.weights, torch.float32))
        stack.callback(torch.set_default_dtype, torch.float32)
        model = step_model(question, depth)
        tracker = stack.enter_context(LiveBytes(logits=(question.batch * question.seq, question.vocab)))
        tracker.hold(list(model.parameters()))
        for tensor in model.buffers():
            tracker.watch(tensor, "held")
        _note_gradients(model, tracker)
        _note_layers(model, depth, tracker)
        inputs = step_inputs(question)

        def forward() -> Any:
            # Left before the backward pass, as a trainer does: the casts that autocast keeps die there.
            with ExitStack() as during:
                if question.compute != question.weights:
                    during.enter_context(torch.autocast("cpu", dtype=_LOW[question.compute]))
                    during.enter_context(FullPrecisionList())
                if not question.training:
                    during.enter_context(torch.no_grad())
                return model(**inputs)

        yield tracker, forward


def step_inputs(question: MemoryQuestion) -> dict[str, Any]:
    """Return what the model of the step is called with."""
    tokens = torch.zeros((question.batch, question.seq), dtype=torch.int64)
    if question.task in {"generate", "serve"}:
        seq2seq = {"decoder_input_ids": tokens} if question.family in SEQ2SEQ else {}
        decoder = {} if question.family in ENCODERS | SEQ2SEQ else {"logits_to_keep": 1}
        return {"input_ids": tokens, **seq2seq, **decoder}
    inputs: dict[str, Any] = {"input_ids": tokens, "labels": tokens}
    if question.family in SEQ2SEQ:
        inputs["decoder_input_ids"] = tokens
    if question.family in ENCODERS:
        inputs["labels"] = torch.zeros(question.batch, dtype=torch.int64)
    return inputs


def _track(question: MemoryQuestion, depth: int) -> dict[str, float]:
    with fake_step(question, depth) as (tracker, forward):
        weights = tracker.weights
        output = forward()
        if question.training:
            loss = output.loss
            del output
            tracker.enter("head")
            loss.backward()
            tracker.enter("end")
        matrices = [weight.numel() for weight in weights if getattr(weight, "quantizable", False)]
        found = {
            "weights": float(sum(weight.nbytes for weight in weights)),
            "parameters": float(sum(weight.numel() for weight in weights)),
            "trainable": float(sum(weight.numel() for weight in weights if weight.requires_grad)),
            "matrices": float(sum(matrices)),
            "largest": float(max(matrices, default=0)),
            "layer": float(sum(getattr(weight, "layer_bytes", 0) for weight in weights)) / (depth * stacks(question)),
        }
        for moment, (_, kinds) in tracker.moments.items():
            found |= {f"{moment}.{kind}": float(kinds[kind]) for kind in KINDS}
        return found


@contextmanager
def _one_sequence_a_row() -> Iterator[None]:
    """Keep transformers from building a mask for packed sequences: with real tensors it reads the positions, finds one
    sequence a row and lets the attention kernel do without; tensors without data cannot be read, and it would build
    the mask and copy queries and keys for it."""
    from transformers import masking_utils

    original = getattr(masking_utils, "find_packed_sequence_indices", None)
    if original is None:
        yield
        return
    masking_utils.find_packed_sequence_indices = lambda *_args, **_more: None
    try:
        yield
    finally:
        masking_utils.find_packed_sequence_indices = original


def _note_gradients(model: nn.Module, tracker: LiveBytes) -> None:
    for weight in model.parameters():
        if weight.requires_grad:
            hook: Any = weight.register_post_accumulate_grad_hook
            hook(lambda done: tracker.watch(done.grad, "gradients"))


def _note_layers(model: nn.Module, depth: int, tracker: LiveBytes) -> None:
    """Let the backward pass say when it enters the top, the middle and the bottom of each stack of layers."""
    found: dict[str, nn.ModuleList] = {}
    for name, module in model.named_modules():
        inside = any(name.startswith(f"{outer}.") for outer in found)
        if isinstance(module, nn.ModuleList) and len(module) == depth and not inside:
            found[name] = module
    for number, layers in enumerate(found.values()):
        for index, layer in enumerate(layers):
            place = "bottom" if index == 0 else "top" if index == depth - 1 else "middle"
            layer.register_forward_hook(_marker(tracker, f"{number} {place}"))
            for weight in layer.parameters():
                weight.layer_bytes = weight.nbytes  # type: ignore[attr-defined]


def _marker(tracker: LiveBytes, moment: str) -> Callable[..., None]:
    def after(_module: nn.Module, _args: Any, output: Any) -> None:
        first = output[0] if isinstance(output, tuple) else output
        if isinstance(first, torch.Tensor) and first.requires_grad:
            hook: Any = first.register_hook
            hook(lambda _gradient: tracker.enter(moment))

    return after
