"""The what-if table: every remedy with its predicted peak by component, the cheapest that fits marked."""

from __future__ import annotations

from collections.abc import Sequence

from rca.diagnosis import Table
from rca.experiments.memory.arithmetic import Peak, room
from rca.experiments.memory.question import GIB, MemoryQuestion
from rca.experiments.memory.search import Row

COMPONENTS = {
    "weights": "Weights",
    "gradients": "Gradients",
    "optimizer": "Optimizer",
    "activations": "Activations",
    "logits": "Logits",
    "cache": "KV cache",
    "scratch": "Workspace",
}
"""Component of a peak -> heading of its column."""
AS_IT_IS = "as the run"
NOTE = (
    "Each row is the state when most memory is taken, so a component can be 0 that is not 0 at other times. Not in it: "
    "fragmentation, workspaces of the libraries and the driver's context, for which {kept} are kept free, and other "
    "processes on the card."
)


def cheapest(rows: Sequence[Row]) -> int | None:
    """Return the index of the row that asks least of the user and fits."""
    return next((number for number, row in enumerate(rows) if row.fits), None)


def what_if(rows: Sequence[Row], capacity: float) -> Table:
    """Return the table of rows that are in order of price."""
    base = rows[0].choice.question
    shown = [name for name in COMPONENTS if any(gib(getattr(row.peak, name)) != "0.0" for row in rows)]
    number = cheapest(rows)
    limit = room(base, capacity)
    where = f"one of {base.devices} devices" if base.devices > 1 else "a device"
    title = f"Predicted peak memory in GiB, on {where} with {gib(capacity)} ({gib(limit)} usable)"
    return Table(
        title=title,
        columns=("Change", *(COMPONENTS[name] for name in shown), "Peak", "Fits", "What it asks of you"),
        rows=tuple(
            (
                row.choice.label or AS_IT_IS,
                *(gib(getattr(row.peak, name)) for name in shown),
                gib(row.peak.total),
                "fits" if row.fits else "no",
                row.choice.costs,
            )
            for row in rows
        ),
        marked=number,
        paste=rows[number].choice.paste if number is not None else "",
        note=NOTE.format(kept=f"{gib(capacity - limit)} GiB"),
    )


def in_words(rows: Sequence[Row], capacity: float) -> str:
    """Return one sentence: the cheapest way to make it fit, or that there is none."""
    number = cheapest(rows)
    if number is None:
        smallest = min(rows, key=lambda row: row.peak.total)
        return (
            f"No combination of up to three changes fits; the smallest, {smallest.choice.label or AS_IT_IS}, "
            f"takes {gib(smallest.peak.total)} of {gib(room(smallest.choice.question, capacity))} GiB."
        )
    row = rows[number]
    if not row.choice.remedies:
        return f"By this arithmetic it fits as it is: {gib(row.peak.total)} GiB."
    costs = f" (price: {row.choice.costs})" if row.choice.costs else ""
    return f"Cheapest that fits: {row.choice.label}, {gib(row.peak.total)} GiB{costs}."


def parts(peak: Peak) -> str:
    """Return the components of a peak for a sentence, largest first."""
    found = sorted(((getattr(peak, name), label.lower()) for name, label in COMPONENTS.items()), reverse=True)
    return ", ".join(f"{label} {gib(value)}" for value, label in found if value >= 0.05 * GIB)


def gib(value: float) -> str:
    """Return bytes as GiB with one decimal."""
    return f"{value / GIB:.1f}"


def question_words(question: MemoryQuestion) -> str:
    """Return the step in words."""
    types = question.weights if question.compute == question.weights else f"{question.weights}, {question.compute}"
    words = [
        f"{question.family} with {question.layers} layers of width {question.hidden}",
        f"batch {question.batch}, length {question.seq}",
        f"weights in {types}{' autocast' if ',' in types and question.weights == 'fp32' else ''}",
    ]
    if question.training:
        words.append(f"{question.optimizer} optimizer")
    if question.lora_r:
        words.append(f"LoRA rank {question.lora_r}")
    if question.devices > 1:
        kind = f"ZeRO stage {question.zero_stage}" if question.zero_stage else "replicas"
        words.append(f"{question.devices} devices ({kind if question.training else 'tensor parallel'})")
    return "; ".join(words)
