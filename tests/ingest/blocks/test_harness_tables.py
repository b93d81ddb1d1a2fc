"""The table of scores that lm-evaluation-harness prints."""

from __future__ import annotations

from typing import Any

TABLE = """hf (pretrained=models/8b,dtype=bfloat16), gen_kwargs: (None), limit: None, num_fewshot: 5, batch_size: 8
|  Tasks  |Version|Filter|n-shot| Metric |   |Value |   |Stderr|
|---------|------:|------|-----:|--------|---|-----:|---|-----:|
|arc_easy |      1|none  |     5|acc     |↑  |0.8100|±  |0.0080|
|         |       |none  |     5|acc_norm|↑  |0.7903|±  |0.0083|
| - mmlu  |      2|none  |      |acc     |↑  |0.6521|±  |0.0038|

done
"""


def test_every_metric_of_every_task(read: Any) -> None:
    found = read("results.txt", TABLE)
    assert [value for _step, value in found.metrics("score.acc")] == [0.81, 0.6521]
    assert [value for _step, value in found.metrics("score.acc_norm")] == [0.7903]


def test_a_table_without_values_is_none(read: Any) -> None:
    text = "|Tasks|Version|Metric|\n|-----|------:|------|\n|mmlu|2|acc|\n"
    assert read("results.txt", text).metrics("score.acc") == []
