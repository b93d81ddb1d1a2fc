"""The phase of a job that the functions on a stack name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_PHASES = (
    ("save", re.compile(r"save_checkpoint|save_pretrained|torch/serialization.py.*save|_save$", re.I)),
    ("eval", re.compile(r"evaluat|validat|prediction_(?:loop|step)|test_step", re.I)),
    ("load", re.compile(r"from_pretrained|load_state_dict|load_checkpoint|load_model|safe_open", re.I)),
    ("inference", re.compile(r"\bgenerate\b|/vllm/|execute_model|predict\b", re.I)),
    ("train", re.compile(r"training_step|backward|optimizer|train_one_epoch|_inner_training_loop|train_epoch", re.I)),
)


def stack_phase(frames: Sequence[Mapping[str, Any]], worker: str | None) -> str | None:
    """Return the phase that the innermost telling frame names; work of a data loader's worker is `data`."""
    if (worker or "").startswith("DataLoader"):
        return "data"
    for frame in reversed(frames):
        place = f"{frame['file']} {frame['function']}"
        for phase, pattern in _PHASES:
            if pattern.search(place):
                return phase
    return None
