from __future__ import annotations

import json
from typing import Any

import pytest


def log(sent: str, read: str, limit: int) -> str:
    rows = [
        {"turn": turn, sent: 400 * turn, read: min(400 * turn + turn % 3, limit - 7 * turn)} for turn in range(1, 16)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("client_prompt_tokens", "prompt_eval_count"),
        ("sent.input_tokens", "usage.prompt_tokens"),
        ("n_prompt", "context_len"),
    ],
)
def test_what_was_sent_and_what_was_read(facts_of: Any, sent: str, read: str) -> None:
    found = facts_of({"audit.jsonl": log(sent, read, 4096)})
    assert found["requests.truncated_share"] == pytest.approx(5 / 15, abs=0.07)
    assert 3900 < found["requests.truncated_to"] <= 4096
    assert found["requests.longest_sent"] == 6000


def test_whole_inputs_and_other_columns(facts_of: Any) -> None:
    assert "requests.truncated_share" not in facts_of(
        {"a.jsonl": log("client_prompt_tokens", "prompt_eval_count", 99_999)}
    )
    rows = "".join(json.dumps({"prompt_tokens": 90 + n, "context_tokens": 4 * n}) + "\n" for n in range(1, 20))
    assert "requests.truncated_share" not in facts_of({"b.jsonl": rows})


def test_inputs_of_one_greatest_length(facts_of: Any) -> None:
    rows = "".join(json.dumps({"prompt_tokens": min(300 * n, 2048), "latency_s": 1.0}) + "\n" for n in range(1, 15))
    assert facts_of({"c.jsonl": rows})["requests.at_limit_share"] == pytest.approx(8 / 14, abs=1e-3)


def test_counts_in_a_log(facts_of: Any) -> None:
    text = "".join(
        f"09:{n:02d}:00 chat turn={n} input_tokens_sent={300 * n} input_tokens={min(300 * n, 2048 - n)} "
        f"output_tokens=90 time=2.0s\n"
        for n in range(1, 15)
    )
    assert facts_of({"chat.log": text})["requests.truncated_share"] == pytest.approx(8 / 14, abs=0.08)
