from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest


def rows(count: int = 40, *, growth: float, model: str = "a", noise: float = 0.03) -> list[dict[str, Any]]:
    """Requests whose time per token grows with the length: `growth` ms for every token in front."""
    random = np.random.default_rng(3)
    found = []
    for _ in range(count):
        prompt, new = int(random.integers(50, 1500)), int(random.integers(30, 400))
        per_token = (20 + growth * (prompt + new / 2)) * (1 + noise * random.standard_normal())
        found.append({"model": model, "prompt_tokens": prompt, "new_tokens": new, "latency_s": per_token * new / 1000})
    return found


def lines(items: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def test_time_per_token_that_grows_with_the_length(facts_of: Any) -> None:
    found = facts_of({"requests.jsonl": lines(rows(growth=0.1) + rows(growth=0.0, model="base"))})
    assert 3 < found["latency.token_growth"] < 7
    assert 0.8 < found["latency.token_growth_least"] < 1.2
    assert found["requests.count"] == 80


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.3])
def test_time_per_token_that_does_not_grow(facts_of: Any, noise: float) -> None:
    assert 0.7 < facts_of({"requests.jsonl": lines(rows(growth=0.0, noise=noise))})["latency.token_growth"] < 1.4


def test_no_trend_from_few_or_equal_requests(facts_of: Any) -> None:
    assert "latency.token_growth" not in facts_of({"requests.jsonl": lines(rows(5, growth=0.1))})
    same = [{"prompt_tokens": 100, "new_tokens": 50, "latency_s": 1 + 0.01 * index} for index in range(20)]
    assert "latency.token_growth" not in facts_of({"requests.jsonl": lines(same)})


def test_requests_told_in_a_log(facts_of: Any) -> None:
    text = "".join(
        f"INFO:chat:req={index} prompt={item['prompt_tokens']} new={item['new_tokens']} time={item['latency_s']:.3f}s\n"
        for index, item in enumerate(rows(growth=0.1))
    )
    found = facts_of({"serve.log": text})
    assert found["latency.token_growth"] > 3
    assert found["latency.tokens_per_s"] < 50


@pytest.mark.parametrize(
    ("values", "low", "high"), [([130, 131, 129, 128, 3380], 20, 30), ([130, 131, 129, 128, 131], 0.9, 1.1)]
)
def test_a_jump_of_the_latency(facts_of: Any, values: list[float], low: float, high: float) -> None:
    text = "date,p50_ms\n" + "".join(f"2024-08-0{day},{value}\n" for day, value in enumerate(values, start=1))
    assert low < facts_of({"history.csv": text})["latency.jump"] < high


def test_generations_at_the_limit(facts_of: Any) -> None:
    items = [{"id": index, "finish_reason": "length" if index % 4 else "stop"} for index in range(40)]
    assert facts_of({"out.jsonl": lines(items)})["generation.hits_limit_share"] == 0.75
    server = (
        "# TYPE vllm:request_success_total counter\n"
        'vllm:request_success_total{finished_reason="stop"} 30.0\n'
        'vllm:request_success_total{finished_reason="length"} 10.0\n'
    )
    assert facts_of({"metrics.txt": server, "out.jsonl": "{}\n"})["generation.hits_limit_share"] == 0.25


@pytest.mark.parametrize(
    ("text", "repeats"), [("la la la la la la la la la la la", True), ("a word that is said once only here now", False)]
)
def test_generations_that_repeat(facts_of: Any, text: str, repeats: bool) -> None:
    items = [{"id": index, "output": f"{text} {index}"} for index in range(10)]
    assert facts_of({"out.jsonl": lines(items)})["generation.repeats"] is repeats


def test_the_server_speaks_for_itself(facts_of: Any) -> None:
    stats = (
        "Engine 000: Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 45.5 tokens/s, Running: 3 reqs, "
        "Waiting: {} reqs, GPU KV cache usage: {}%, Prefix cache hit rate: 57.0%\n"
    )
    found = facts_of({"serve.log": stats.format(0, 10.0) + stats.format(40, 99.9)})
    assert (found["server.waiting"], found["server.kv_cache_usage"]) == (40, 0.999)


def test_lengths_padding_and_labels(facts_of: Any) -> None:
    lengths = [100] * 30 + [2000]
    batches = [{"input_ids": [1] * 10, "labels": [-100] * 10, "attention_mask": [1] * 4 + [0] * 6} for _ in range(3)]
    found = facts_of({"lengths.csv": "sample,length\n" + "".join(f"{i},{n}\n" for i, n in enumerate(lengths))})
    assert (found["lengths.max_over_median"], found["lengths.median"]) == (20.0, 100.0)
    limited = facts_of({"args.json": {"max_length": 1000, "learning_rate": 0.1}})
    assert limited["lengths.over_limit"] == 2.0
    dumped = facts_of({"lengths.csv": "", "batch.jsonl": lines(batches)})
    assert (dumped["lengths.padding_share"], dumped["labels.ignored_share"], dumped["labels.all_ignored"]) == (
        0.6,
        1.0,
        3,
    )
    assert dumped["tokens.max_id"] == 1


def test_validation_that_is_in_training(facts_of: Any) -> None:
    train = [{"text": f"Sample number {index}"} for index in range(9000)]
    held = [{"text": f"  sample NUMBER {index}"} for index in range(8000, 10_000)]
    found = facts_of({"data/train.jsonl": lines(train), "data/val.jsonl": lines(held)})
    assert 0.4 < found["data.overlap_share"] < 0.6
    assert found["data.duplicate_share"] == 0.0
    other = facts_of(
        {
            "data/train.jsonl": lines(train + train[:1000]),
            "data/val.jsonl": lines([{"text": f"x{i}"} for i in range(50)]),
        }
    )
    assert other["data.overlap_share"] == 0.0
    assert other["data.duplicate_share"] == pytest.approx(0.1)


def test_one_model_of_a_benchmark_becomes_slower(facts_of: Any) -> None:
    text = "".join(
        f"10:00:{place:02d} bench {model} prompt={place:02d} in={100 + place} out=256 total=5.1s "
        f"ms/token per 64 block=[{', '.join(str(round(20 + slope * step, 1)) for step in range(4))}]\n"
        for model, slope in (("base", 0.1), ("tuned", 9.0))
        for place in range(5)
    )
    found = facts_of({"bench.log": text})
    assert found["latency.token_growth"] == pytest.approx(47 / 20, abs=0.01)
    assert found["latency.token_growth_least"] < 1.05
    assert found["requests.count"] == 10


def test_times_of_blocks_in_a_record(facts_of: Any) -> None:
    items = [{"model": "m", "ms_per_token_blocks": [10.0, 14.0, 20.0, 30.0]} for _ in range(3)]
    assert facts_of({"bench.jsonl": lines(items)})["latency.token_growth"] == 3.0


def test_a_line_that_ends_with_its_time(facts_of: Any) -> None:
    text = "".join(f"[10:00:0{place}] req {place:03d} in=12{place} out=90 finish=length 1.8s\n" for place in range(9))
    found = facts_of({"chat.log": text})
    assert found["generation.hits_limit_share"] == 1.0
    assert found["latency.ms_per_token"] == pytest.approx(20.0)
    assert "latency.ms_per_token" not in facts_of({"chat.log": "block in=64 out=128 kernel=3\n" * 9})


def test_names_inside_a_usage_object(facts_of: Any) -> None:
    items = [
        {"id": f"c{n}", "usage": {"prompt_tokens": 9, "completion_tokens": 50 + n}, "latency_s": 1.0} for n in range(9)
    ]
    assert facts_of({"r.jsonl": lines(items)})["requests.count"] == 9


@pytest.mark.parametrize(("slow", "low", "high"), [(40.0, 5, 9), (5.1, 0.9, 1.1)])
def test_the_tail_of_the_times(facts_of: Any, slow: float, low: float, high: float) -> None:
    rows = "".join(f"{n},{5.0 if n % 5 else slow}\n" for n in range(40))
    assert low < facts_of({"times.csv": "file,wall_s\n" + rows})["latency.tail_ratio"] < high
