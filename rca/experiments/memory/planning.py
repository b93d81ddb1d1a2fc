"""A step that nobody has run yet: from the configuration of a model and a few settings to the table of what fits."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rca.errors import ExperimentError
from rca.experiments.memory.arithmetic import room
from rca.experiments.memory.experiment import Tracer
from rca.experiments.memory.question import MemoryQuestion, checked
from rca.experiments.memory.search import Row, Search
from rca.experiments.memory.table import COMPONENTS, cheapest
from rca.experiments.twin.config import DENSE, FAMILIES
from rca.experiments.workbench import Workbench
from rca.rules.advice_schema import Remedy

_LIKE = {
    "mt5": "t5",
    "umt5": "t5",
    "xlm-roberta": "roberta",
    "camembert": "roberta",
    "gemma2": "gemma",
    "gemma3_text": "gemma",
    "olmo2": "olmo",
    "phi3": "llama",
    "qwen2_5": "qwen2",
    "mbart": "bart",
}
"""Model types whose layers hold the same tensors as those of a class that is traced, to a few percent."""
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_OWN = {
    "hidden_dim": "intermediate_size",
    "ffn_hidden_size": "intermediate_size",
    "num_kv_heads": "num_key_value_heads",
    "encoder_layers": "num_layers",
    "encoder_attention_heads": "num_attention_heads",
    "encoder_ffn_dim": "intermediate_size",
}
"""Names that single families use for sizes."""


class Plan(NamedTuple):
    """What is known of a step before it runs."""

    question: MemoryQuestion
    capacity: float
    parameters: float
    rows: tuple[Row, ...]
    """In order of price; the first is the step as asked for."""
    note: str = ""
    """How the model was read, where that is not plain."""

    @property
    def chosen(self) -> Row | None:
        """The row that asks least of the user and fits."""
        number = cheapest(self.rows)
        return None if number is None else self.rows[number]

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values; sizes in bytes."""
        return {
            "step": self.question.model_dump(mode="json"),
            "parameters": int(self.parameters),
            "capacity": int(self.capacity),
            "usable": int(room(self.question, self.capacity)),
            "note": self.note,
            "rows": [_row_as_json(row) for row in self.rows],
            "cheapest": cheapest(self.rows),
        }


def step_of(config: Mapping[str, Any], *, settings: Mapping[str, Any]) -> tuple[MemoryQuestion, str]:
    """Return the step of a model with these settings, and a note where a similar class stands in for the model's.

    `config` has the common names of sizes (`hidden_size`, `num_layers`). Raises ExperimentError.
    """
    sizes = {**{_OWN[name]: value for name, value in config.items() if name in _OWN}, **config}
    name = str(sizes.get("model_type") or "")
    family = _LIKE.get(name, name)
    experts = next((sizes[key] for key in _EXPERTS if isinstance(sizes.get(key), int) and sizes[key] > 1), None)
    if experts:
        raise ExperimentError(f"this is a mixture of {experts} experts, whose memory is not predicted yet")
    if family not in FAMILIES - DENSE:
        known = ", ".join(sorted(FAMILIES - DENSE))
        raise ExperimentError(f"model_type {name!r} is not among the classes that are traced: {known}")
    missing = [key for key in ("hidden_size", "num_layers", "vocab_size") if not isinstance(sizes.get(key), int)]
    if missing:
        raise ExperimentError(f"the configuration has no {', '.join(missing)}")
    heads = sizes.get("num_attention_heads")
    heads = max(1, sizes["hidden_size"] // 64) if heads is None else heads
    if not isinstance(heads, int) or heads < 1 or sizes["hidden_size"] % heads:
        raise ExperimentError(f"hidden size {sizes['hidden_size']} and {heads} heads do not fit together")
    question = checked(
        {
            "family": family,
            "hidden": sizes["hidden_size"],
            "layers": sizes["num_layers"],
            "heads": heads,
            "kv_heads": sizes.get("num_key_value_heads") or heads,
            "ff": sizes.get("intermediate_size") or 4 * sizes["hidden_size"],
            "vocab": sizes["vocab_size"],
            "head_dim": sizes.get("head_dim"),
            "positions": sizes.get("max_position_embeddings"),
            "tied": sizes.get("tie_word_embeddings"),
            **settings,
        }
    )
    return question, f"traced as {family}, whose layers hold the same tensors" if family != name else ""


def plan(
    question: MemoryQuestion, capacity: float, *, remedies: Sequence[Remedy], seconds: float, note: str = ""
) -> Plan:
    """Trace the step and its remedies in a child process. Raises ExperimentError where the step cannot be traced."""
    bench = Workbench(device="cpu")
    try:
        search = Search(question, capacity, Tracer(bench, time.monotonic() + seconds), remedies)
        rows = tuple(search.rows())
    finally:
        bench.close()
    return Plan(question, capacity, rows[0].peak.parameters, rows, note)


def _row_as_json(row: Row) -> dict[str, Any]:
    return {
        "change": row.choice.label,
        "remedies": [remedy.id for remedy, _ in row.choice.remedies],
        "price": row.choice.price,
        "costs": row.choice.costs,
        "paste": row.choice.paste,
        "components": {name: int(getattr(row.peak, name)) for name in COMPONENTS},
        "peak": int(row.peak.total),
        "moment": row.peak.moment,
        "fits": row.fits,
    }
