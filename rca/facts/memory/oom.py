"""Out of device memory: how much was asked for, who held the rest, where in the job it happened."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.failure.phase import stack_text
from rca.facts.failure.progress import progress
from rca.facts.failure.roles import owner
from rca.facts.interface import Fact, FactFunction
from rca.facts.memory.allocator_message import GIB, OutOfMemory, refusals
from rca.facts.training.curves import Curve, curve

CATALOGUE: Mapping[str, str] = {
    "oom.tried_gib": "size of the refused allocation (GiB)",
    "oom.capacity_gib": "memory of the device (GiB)",
    "oom.free_gib": "free memory of the device at that moment (GiB)",
    "oom.allocated_gib": "memory held by live tensors of this process (GiB)",
    "oom.allocated_share": "that over the capacity",
    "oom.reserved_unallocated_gib": "memory that PyTorch keeps but does not use (GiB)",
    "oom.reserved_share": "that over the capacity",
    "oom.reserved_over_tried": "that over the refused allocation (x); from 1 on such a block was held, in pieces",
    "oom.tried_share": "refused allocation over the capacity",
    "oom.others_gib": "memory held by other processes (GiB)",
    "oom.others_share": "that over the capacity",
    "oom.step": "last step reported before the first refusal (step)",
    "oom.phase": "what the run was doing when memory ran out: load | forward | backward | optimizer | eval | "
    "generate | startup",
    "oom.ranks": "number of ranks that ran out of memory",
    "oom.count": "number of refused allocations that were reported",
    "oom.tried_jump": "refused allocation over the usual step-to-step change of the memory in use (x)",
    "oom.first_allocation": "this process held almost nothing yet when it was refused",
    "oom.steps_before": "number of reported steps before the first refusal",
    "oom.late": "at least 20 reported steps went well before",
    "oom.frame": "innermost frame outside the libraries: file:line in function",
    "oom.capped": "a cap on the memory of the process refused it, not the device",
    "oom.attention": "the stack shows attention, softmax or logits: terms that grow with the length",
}

CONTEXT_GIB = 1.0
"""CUDA context, cuBLAS and NCCL buffers of one process stay below this; more belongs to somebody else."""
LATE_STEPS = 20
_RESUMED = frozenset({"checkpoint.loaded", "hf.resume_checkpoint", "lightning.checkpoint_loaded"})

_PHASES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "optimizer",
        re.compile(
            r"optimizer\.step|optim\.step|_init_group|_(?:multi|single)_tensor_|optimizer_states?|fused_adam|adamw?\b"
        ),
    ),
    (
        "generate",
        re.compile(r"\bgenerate\b|_sample\b|greedy_search|_beam_search|execute_model|prepare_inputs_for_generation"),
    ),
    (
        "eval",
        re.compile(
            r"evaluat|prediction_(?:loop|step)|validat(?!ion_(?:data|split)\b)|nested_concat|\bpredict\b|eval_step|eval_loop"
        ),
    ),
    ("backward", re.compile(r"backward|autograd|run_backward|_engine_run_backward|unscale_|reduce_scatter_grad")),
    (
        "forward",
        re.compile(
            r"(?:\b|_)forward\b|\bsoftmax\b|_call_impl|compute_loss|training_step|train_step\b|TFE_Py_Execute|F\.\w+|logits"
        ),
    ),
    (
        "load",
        re.compile(
            r"from_pretrained|load_state_dict|\.to\(|\.cuda\(|\b_apply\b|\bto\b|\bcuda\b|torch\.load|load_model|__init__|"
            r"dispatch_model|convert|_move_|deepspeed\.initialize|fully_shard|_flatten|prepare_model|load_weights"
        ),
    ),
)
"""Most specific first. `optimizer` only counts on the innermost frames: a training step is named after it as well."""
_OPTIMIZER_FILE = re.compile(r"(?m)(?:^|/)(?:optim(?:izers?)?/[\w/]+|\w*optimizer|adam\w*)\.py$")
_IN_TRAINING = re.compile(r"\btrain(?:ing)?_step\b|\w_train_step\b")
"""Deeper on the stack than the name of an evaluation, this says that `train_and_evaluate` was training."""
_ATTENTION = re.compile(r"attention|attn|softmax|logits|lm_head|cross_entropy|baddbmm|\.float\(\)")


def sizes(events: EventTable) -> Iterator[Fact]:
    """What did the allocator say?"""
    head = _first(events)
    if head is None:
        return
    seen = [head.event.event_id]
    for name, value, words in (
        ("tried", head.tried, "The refused allocation was"),
        ("capacity", head.capacity, "The device has"),
        ("free", head.free, "Free on the device were"),
        ("allocated", head.allocated, "Live tensors of this process held"),
        ("reserved_unallocated", head.reserved_unallocated, "PyTorch kept without using it"),
    ):
        if value is not None:
            yield from emit(f"oom.{name}_gib", value / GIB, f"{words} {_gib(value)}.", unit="GiB", events=seen)
    if head.capacity:
        for name, value, words in (
            ("allocated", head.allocated, "Live tensors of this process held"),
            ("reserved", head.reserved_unallocated, "Reserved but unallocated memory was"),
            ("tried", head.tried, "The refused allocation was"),
        ):
            if value is not None:
                says = f"{words} {_gib(value)}, {percent(value / head.capacity)} of {_gib(head.capacity)}."
                yield from emit(f"oom.{name}_share", value / head.capacity, says, events=seen)
    if head.reserved_unallocated is not None and head.tried:
        ratio = head.reserved_unallocated / head.tried
        says = f"{_gib(head.reserved_unallocated)} were reserved but unallocated when {_gib(head.tried)} were refused."
        yield from emit("oom.reserved_over_tried", ratio, says, unit="x", events=seen)
    if head.allowed is not None and head.capacity:
        says = f"The process was allowed {_gib(head.allowed)} of {_gib(head.capacity)}."
        yield from emit("oom.capped", head.allowed < 0.98 * head.capacity, says, events=seen)
    yield from _others(head, seen)


def _others(head: OutOfMemory, seen: list[int]) -> Iterator[Fact]:
    others = head.held_by_others
    if others is not None:
        says = f"Other processes (or memory that PyTorch does not manage) held {_gib(others)} of the device."
        yield from emit("oom.others_gib", others / GIB, says, unit="GiB", events=seen)
        if head.capacity:
            yield from emit("oom.others_share", others / head.capacity, says, events=seen)
    own = head.used if head.used is not None else head.reserved
    if own is not None:
        says = f"This process held {_gib(own)} when it was refused."
        yield from emit("oom.first_allocation", own < CONTEXT_GIB * GIB, says, events=seen)


def place(events: EventTable) -> Iterator[Fact]:
    """When and where in the job did it happen?"""
    found = refusals(events)
    head = _first(events)
    if head is None:
        return
    seen = [head.event.event_id]
    yield from emit("oom.count", len(found), f"{len(found)} refused allocations were reported.", events=seen)
    owners = {owner(item.event) for item in found} - {None}
    who = f"ranks {', '.join(str(rank) for rank in sorted(rank for rank in owners if rank is not None))}"
    says = f"Out of memory on {who if owners else 'one process'}."
    yield from emit("oom.ranks", max(len(owners), 1), says, events=[item.event.event_id for item in found])
    steps = progress(events)
    step = steps.step_before(head.event)
    before = steps_before(events, head)
    if step is not None:
        says = f"The last step reported before is {step}."
        yield from emit("oom.step", step, says, unit="step", events=seen)
    if before is not None:
        says = f"{before} reported steps went well before."
        yield from emit("oom.steps_before", before, says, events=seen)
        resumed = any(item.name in _RESUMED for item in events.of_kind("log"))
        late = before >= LATE_STEPS or (step is not None and step >= 5 * LATE_STEPS and not resumed)
        yield from emit("oom.late", late, says, events=seen)
    phase = oom_phase(events, head)
    if phase is not None:
        yield from emit("oom.phase", phase, f"Memory ran out in the phase {phase}.", events=seen)
    frames = list(head.frames)
    if frames:
        user = head.exception.attr("user_frame") if head.exception is not None else None
        frame = user if isinstance(user, dict) else frames[-1]
        where = f"{frame.get('file')}:{frame.get('line')} in {frame.get('function')}"
        yield from emit("oom.frame", where, f"It happened at {where}.", events=seen)
        deep = bool(_ATTENTION.search(stack_text(frames[-4:])))
        says = "The innermost frames are attention or logits." if deep else "The innermost frames are not attention."
        yield from emit("oom.attention", deep, says, events=seen)


def steps_before(events: EventTable, head: OutOfMemory) -> int | None:
    """Return how many distinct steps were reported before the refusal; None where the run reports no steps at all."""
    steps = progress(events)
    if not steps.stepped:
        return 0 if events.has_text and not steps.rows else None
    last = steps.step_before(head.event)
    return 0 if last is None else steps.steps_up_to(last)


def oom_phase(events: EventTable, head: OutOfMemory) -> str | None:
    """Return the phase of the job, read off the stack from the inside out, else off the steps."""
    frames = list(head.frames)
    if frames:
        stack = stack_text(frames)
        outer = next((name for name in ("eval", "generate") if dict(_PHASES)[name].search(stack)), None)
        if _in_optimizer(frames):
            return "optimizer"
        if outer is not None and _deepest(frames, dict(_PHASES)[outer]) > _deepest(frames, _IN_TRAINING):
            return outer
        for name in ("backward", "forward", "load"):
            if dict(_PHASES)[name].search(stack):
                return name
    steps = steps_before(events, head)
    if head.event.phase == "eval":
        return "eval"
    return "startup" if steps == 0 and not frames else None


def _in_optimizer(frames: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether the innermost frames are the update; a wrapper of optimizers also calls backward, which is deeper."""
    stepped = _deepest(frames[-4:], dict(_PHASES)["optimizer"])
    files = (str(frame.get("file") or "") for frame in frames[-2:])
    filed = max(
        (at for at, file in enumerate(files, max(len(frames) - 2, 0)) if _OPTIMIZER_FILE.search(file)), default=-1
    )
    deepest = max(filed, stepped + max(len(frames) - 4, 0) if stepped >= 0 else -1)
    return deepest >= 0 and deepest > _deepest(frames, dict(_PHASES)["backward"])


def _deepest(frames: Sequence[Mapping[str, Any]], pattern: re.Pattern[str]) -> int:
    return max((at for at, frame in enumerate(frames) if pattern.search(stack_text([frame]))), default=-1)


def jump(events: EventTable) -> Iterator[Fact]:
    """Was the refused allocation out of the ordinary for this run?"""
    head = _first(events)
    memory = curve(events, "memory_allocated")
    if head is None or head.tried is None or memory is None:
        return
    usual = _usual_change(memory)
    if usual is None or usual <= 0:
        return
    ratio = head.tried / GIB / usual
    says = f"{_gib(head.tried)} were refused; from step to step the memory in use moved by {number(usual)} GiB."
    yield from emit("oom.tried_jump", ratio, says, unit="x", events=[head.event.event_id])


def _usual_change(memory: Curve) -> float | None:
    """Return how far the memory in use moves between steps, at least a hundredth of its level (GiB)."""
    values = memory.value[memory.finite]
    if len(values) < 6:
        return None
    low, high = np.percentile(np.diff(values), [5, 95])
    return max(float(high - low), 0.01 * float(np.median(values)))


def _first(events: EventTable) -> OutOfMemory | None:
    """First refusal that shows numbers; a retry that succeeded is none."""
    found = refusals(events)
    return next((item for item in found if item.tried is not None), found[0] if found else None)


def _gib(value: float) -> str:
    return f"{number(value / GIB)} GiB" if value >= GIB / 10 else f"{number(value / 2**20)} MiB"


FACTS: tuple[FactFunction, ...] = (sizes, place, jump)
