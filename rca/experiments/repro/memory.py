"""A program for a memory experiment: the peaks of one step, with the change and without, traced without data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rca.errors import ExperimentError
from rca.experiments.memory.arithmetic import STATE_BYTES
from rca.experiments.memory.question import GIB, MemoryQuestion
from rca.experiments.repro import architecture
from rca.experiments.repro.render import Expression, dictionary, literal, rendered, rows
from rca.experiments.twin.config import ENCODERS, SEQ2SEQ

_SHOWN = ("layers", "batch", "seq", "weights", "compute", "attention", "checkpointing", "lora_r", "optimizer")
_ADAPTED = ("q_proj", "v_proj", "query", "value", "c_attn", "query_key_value", "q", "v", "q_lin", "v_lin")
"""Last names of the projections that LoRA adapts."""
_COPYING = frozenset({"adam", "adagrad"})
"""Optimizers whose step on all weights at once makes a copy as large as the gradients."""


def memory_program(
    control: MemoryQuestion,
    treatment: MemoryQuestion,
    *,
    capacity: float,
    title: str,
    parts: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the program for two steps; `capacity` in bytes, 0 where it is not known.

    Raises ExperimentError where the prediction is more than a trace and the optimizer's state.
    """
    _check(control, treatment)
    context = _context(control, treatment)
    return rendered("memory.jinja", {**context, "capacity": _gib(capacity)}, title=title, parts=parts)


def kept_program(
    question: MemoryQuestion, *, observed: float, title: str, parts: Sequence[tuple[str, str]] = ()
) -> str:
    """Return the program that traces what steps leave behind; `observed` in GiB a step.

    Raises ExperimentError where that is more than a trace.
    """
    _check(question, question)
    context = {**_context(question, question), "kept": True, "other_lines": (), "observed": literal(observed)}
    context["control_lines"] = [line.replace("CONTROL = ", "SIZES = ") for line in context["control_lines"]]
    return rendered("memory.jinja", context, title=title, parts=parts)


def _gib(size: float) -> str:
    return literal(round(size / GIB, 4)) if size else ""


def _context(control: MemoryQuestion, treatment: MemoryQuestion) -> dict[str, Any]:
    """What the template needs."""
    arms = (_listed(control), _listed(treatment))
    update = {name: value for name, value in arms[1].items() if arms[0][name] != value}
    used = {name for name in arms[0] if name != "compute" and any(arm[name] for arm in arms)}
    used |= {"compute"} if control.compute != control.weights or treatment.compute != treatment.weights else set()
    own = {name: value for name, value in arms[0].items() if name in update or name in _always(used)}

    def code(name: str) -> str:
        return f"s.{name}" if name in own else literal(getattr(control, name))

    sizes: dict[str, Any] = {name: getattr(control, name) for name in ("hidden", "heads", "kv_heads", "ff", "vocab")}
    sizes |= {"layers": Expression(code("layers")), "labels": control.labels, "tied": control.tied}
    positions = max(control.seq, treatment.seq, control.positions or 0, 8)
    settings = architecture.settings(control.family, {**sizes, "positions": positions})
    settings |= dict.fromkeys(architecture.dropouts(control.family), 0.0)
    lines = rows(settings, indent=16)
    tokens = '{"input_ids": tokens, "labels": tokens}'
    if control.family in ENCODERS:
        tokens = '{"input_ids": tokens, "labels": torch.zeros(s.batch, dtype=torch.int64)}'
    elif control.family in SEQ2SEQ:
        tokens = '{"input_ids": tokens, "decoder_input_ids": tokens, "labels": tokens}'
    return {
        "kept": False,
        "capacity": "",
        "auto_class": architecture.auto_class(control.family),
        "family": control.family,
        "control_lines": dictionary("CONTROL = ", own),
        "other_lines": dictionary("TREATMENT = CONTROL | ", update),
        "model_settings": (f"settings = {lines[0]}", *(f"settings |= {line}" for line in lines[1:])),
        "inputs": tokens,
        "mixed": "compute" in used,
        "lora": literal(_ADAPTED) if "lora_r" in used else "",
        "training": control.training,
        "buckets": control.training and control.devices > 1,
        "used": used,
        "s": code,
    }


def _always(used: set[str]) -> set[str]:
    """What the program reads from the settings whether or not the arms differ in it."""
    read = {"layers", "batch", "seq", "state_bytes", "step_copies"}
    return read | (used & {"checkpointing", "lora_r"}) | ({"compute", "weights"} if "compute" in used else set())


def _check(control: MemoryQuestion, treatment: MemoryQuestion) -> None:
    changed = {name for name in MemoryQuestion.model_fields if getattr(control, name) != getattr(treatment, name)}
    other = sorted(changed - {*_SHOWN, "foreach"})
    if other:
        raise ExperimentError(f"no script can show arms that differ in `{other[0]}`")
    for arm in (control, treatment):
        if arm.task not in {"train", "evaluate"}:
            raise ExperimentError("the key-value cache of generation is arithmetic, not a trace")
        if arm.weights in {"int8", "nf4"}:
            raise ExperimentError("packed weights are arithmetic, not a trace")
        if arm.zero_stage or (arm.accumulation > 1 and arm.training):
            raise ExperimentError(
                "what is sharded over devices or kept between micro-batches is arithmetic, not a trace"
            )
        if arm.lora_r and (arm.lora_targets != "attention" or bool(control.lora_r) is not bool(treatment.lora_r)):
            raise ExperimentError("no script can show these adapters")


def _listed(question: MemoryQuestion) -> dict[str, Any]:
    width = 4 if question.weights == "fp32" else 2
    kept = STATE_BYTES[question.optimizer]
    return {
        **{name: getattr(question, name) for name in _SHOWN if name != "optimizer"},
        "state_bytes": kept if question.optimizer == "8bit" else kept * width / 4,
        "step_copies": int(question.foreach and question.optimizer in _COPYING),
    }
