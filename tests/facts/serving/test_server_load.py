from __future__ import annotations

import json
from typing import Any

import pytest


def stats(rows: list[tuple[float, int, int, float]], *, devices: int | None = None) -> str:
    """Lines that vLLM prints: generation speed, running, waiting, cache use in percent."""
    head = "" if devices is None else f"INFO config: model='m', tensor_parallel_size={devices}, dtype=torch.bfloat16\n"
    return head + "".join(
        f"INFO 01-02 03:04:{index:02d} [loggers.py:1] Engine 000: Avg prompt throughput: 10.0 tokens/s, "
        f"Avg generation throughput: {speed} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, "
        f"GPU KV cache usage: {cache}%, Prefix cache hit rate: 0.0%\n"
        for index, (speed, running, waiting, cache) in enumerate(rows)
    )


def test_a_full_cache_with_a_queue(facts_of: Any) -> None:
    rows = [(900.0, 40, 0, 80.0)] * 4 + [(120.0, 8, 52, 98.5)] * 8
    found = facts_of({"server.log": stats(rows)})
    assert found["server.cache_full_share"] == pytest.approx(8 / 12, abs=1e-3)
    assert found["server.waiting_share"] > 0.8
    assert found["server.running_drop"] > 0.7


def test_an_idle_server_is_not_under_pressure(facts_of: Any) -> None:
    assert "server.cache_full_share" not in facts_of({"server.log": stats([(0.0, 0, 0, 0.0)] * 9)})
    found = facts_of({"server.log": stats([(300.0, 9, 0, 12.0)] * 9)})
    assert (found["server.cache_full_share"], found["server.waiting_share"], found["server.running_drop"]) == (0, 0, 0)


@pytest.mark.parametrize(("many", "low", "high"), [(250.0, 0.6, 0.65), (900.0, 2.2, 2.3)])
def test_what_more_devices_bring(facts_of: Any, many: float, low: float, high: float) -> None:
    one = stats([(400.0, 16, 0, 50.0)] * 6, devices=1)
    four = stats([(many, 16, 0, 9.0)] * 6, devices=4)
    found = facts_of({"one.log": one, "four.log": four})
    assert low < found["serving.parallel_speedup"] < high
    assert found["serving.parallel_devices"] == 4


def test_no_comparison_at_different_loads(facts_of: Any) -> None:
    one = stats([(400.0, 16, 0, 50.0)] * 6, devices=1)
    four = stats([(900.0, 64, 0, 9.0)] * 6, devices=4)
    assert "serving.parallel_speedup" not in facts_of({"one.log": one, "four.log": four})


def test_what_a_token_costs_with_more_requests_at_once(facts_of: Any) -> None:
    table = [{"concurrency": level, "mean_tpot_ms": time} for level, time in ((1, 30.0), (8, 30.4), (64, 31.0))]
    found = facts_of({"load.jsonl": "".join(json.dumps(row) + "\n" for row in table)})
    assert found["serving.concurrency_cost"] == pytest.approx(1.033, abs=1e-3)
    assert found["serving.concurrency_range"] == 64


def test_what_a_token_costs_by_the_server_itself(facts_of: Any) -> None:
    rows = [(30.0, 1, 0, 1.0)] * 4 + [(240.0, 16, 0, 5.0)] * 4
    assert facts_of({"server.log": stats(rows)})["serving.concurrency_cost"] == pytest.approx(2.0)


def test_the_length_of_a_load_test_is_no_limit(facts_of: Any) -> None:
    table = [{"concurrency": level, "output_len": 128, "mean_tpot_ms": 9.0} for level in (1, 2, 4, 8, 16, 32)]
    assert "generation.one_length_share" not in facts_of({"load.jsonl": "".join(json.dumps(r) + "\n" for r in table)})


def test_traffic_over_the_bus(facts_of: Any) -> None:
    text = "# gpu    pwr     sm  rxpci  txpci \n# Idx      W      %   MB/s   MB/s \n"
    text += "    0    120     97   4000   3000 \n    1    121     98   5000   2000 \n" * 6
    assert facts_of({"dmon.txt": text})["gpu.pcie_gb_s"] == pytest.approx(7.0)


def block(level: int, tpot: float, speed: float) -> str:
    return (
        "============ Serving Benchmark Result ============\n"
        "Successful requests:                     40        \n"
        f"Maximum request concurrency:             {level}         \n"
        f"Output token throughput (tok/s):         {speed}     \n"
        "-----Time per Output Token (excl. 1st token)------\n"
        f"Mean TPOT (ms):                          {tpot}     \n"
        "==================================================\n\n"
    )


def test_blocks_of_a_serving_benchmark(facts_of: Any) -> None:
    text = "$ bench serve\n" + "".join(block(level, 20.0 + level / 8, 40.0 * level) for level in (1, 8, 32))
    found = facts_of({"bench.txt": text})
    assert found["serving.concurrency_cost"] == pytest.approx(24 / 20.125, abs=1e-3)
    assert found["serving.concurrency_range"] == 32


@pytest.mark.parametrize(("many", "ratio"), [(310.0, 0.775), (1200.0, 3.0)])
def test_a_table_of_splits(facts_of: Any, many: float, ratio: float) -> None:
    rows = f"tp,concurrency,output_tok_s\n1,8,400\n4,8,{many}\n1,1,60\n4,1,70\n"
    assert facts_of({"scaling.csv": rows})["serving.parallel_speedup"] == pytest.approx(ratio)
