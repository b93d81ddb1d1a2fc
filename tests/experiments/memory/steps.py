"""Steps of the tests: a model of 7 billion weights, and small ones."""

from __future__ import annotations

from typing import Any

from rca.experiments.memory.question import MemoryQuestion


def question(**update: Any) -> MemoryQuestion:
    """A training step of Llama 7B at one sample of 2048 tokens, with changes."""
    sizes = {
        "family": "llama",
        "hidden": 4096,
        "layers": 32,
        "heads": 32,
        "kv_heads": 32,
        "ff": 11008,
        "vocab": 32000,
        "batch": 1,
        "seq": 2048,
    }
    return MemoryQuestion(**{**sizes, **update})


SMALL = {"hidden": 128, "layers": 6, "heads": 4, "kv_heads": 4, "ff": 344, "vocab": 2048, "batch": 8, "seq": 128}
"""A model of a million weights."""
