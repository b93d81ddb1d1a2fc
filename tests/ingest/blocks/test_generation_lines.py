"""Sentences about one generation: how many tokens, in what time."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("generated 64 tokens in 3.2s (20.0 tok/s)", {"new_tokens": 64, "latency_s": 3.2, "ms_per_token": 50.0}),
        ("Generated: 128 new tokens, took 6400 ms", {"new_tokens": 128, "latency_s": 6.4, "ms_per_token": 50.0}),
        ("2025-08-13 09:00:30 rollout step 1: new tokens 256 elapsed 25.6s (10.0 tok/s)",
         {"new_tokens": 256, "latency_s": 25.6, "ms_per_token": 100.0}),
        ("512 output tokens, 102.4 sec, prompt tokens: 40",
         {"new_tokens": 512, "prompt_tokens": 40, "ms_per_token": 200.0}),
        ("Output generated in 12.50 seconds (10.00 tokens/s, 125 tokens, context 52, seed 1)",
         {"new_tokens": 125, "latency_s": 12.5, "ms_per_token": 100.0}),
    ],
)  # fmt: skip
def test_one_generation(read: Any, line: str, expected: dict[str, float]) -> None:
    found = read("out.log", f"{line}\n")
    for name, value in expected.items():
        assert [number for _, number in found.metrics(name)] == [pytest.approx(value)]
    assert found.metrics("throughput") == []


@pytest.mark.parametrize(
    "line",
    [
        "added 12 new tokens in 0.1 s",
        "tokenized 250000 tokens in 3.1 s",
        "step 12 generated 64 tokens",
        "resized embeddings for 4 new tokens, took 0.2 s",
    ],
)
def test_other_tokens(read: Any, line: str) -> None:
    assert read("out.log", f"{line}\n").metrics("new_tokens") == []
