from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

Facts = Callable[[Mapping[str, Any]], dict[str, Any]]


def table(spread: float, *, slope: float = 0.0) -> str:
    noise = np.random.default_rng(0)
    rows = ["call,prompt_hash,batch_size,score"]
    for call in range(60):
        size = (1, 4, 16)[call % 3]
        level = 0.5 + 0.1 * (call % 4) + slope * np.log(size) + spread * noise.standard_normal()
        rows.append(f"{call},{'wxyz'[call % 4]}q,{size},{level:.5f}")
    return "\n".join(rows) + "\n"


def test_one_input_with_many_answers(facts_of: Facts) -> None:
    found = facts_of({"calls.csv": table(0.02, slope=0.1)})
    assert found["outputs.repeat_spread"] > 0.05
    assert found["outputs.repeat_inputs"] == 4
    assert found["outputs.batch_dependence"] > 0.8


def test_an_evaluated_model_repeats_itself(facts_of: Facts) -> None:
    found = facts_of({"calls.csv": table(1e-6)})
    assert found["outputs.repeat_spread"] < 1e-4


def test_a_curve_of_training_samples_is_no_repetition(facts_of: Facts) -> None:
    rows = "".join(f"{step},{'ab'[step % 2]}x,{1 / (step + 1):.4f}\n" for step in range(40))
    assert "outputs.repeat_spread" not in facts_of({"metrics.csv": "step,sample_id,loss\n" + rows})


def requests(**columns: Any) -> str:
    return "".join(json.dumps({key: value(i) for key, value in columns.items()}) + "\n" for i in range(20))


def test_settings_of_requests(facts_of: Facts) -> None:
    log = requests(temperature=lambda i: 1.5 if i % 4 else 0.0, top_p=lambda _: 0.9, completion_tokens=lambda _: 512)
    found = facts_of({"requests.jsonl": log})
    assert found["generation.temperature"] == pytest.approx(1.5)
    assert found["generation.top_p"] == pytest.approx(0.9)
    assert found["generation.one_length_share"] == pytest.approx(1.0)


def test_lengths_that_differ_and_a_hot_device(facts_of: Facts) -> None:
    log = requests(temperature=lambda i: 60 + i, completion_tokens=lambda i: 100 + i)
    found = facts_of({"requests.jsonl": log})
    assert "generation.temperature" not in found
    assert found.get("generation.one_length_share", 0) < 0.2


def test_markers_of_chat_turns_in_texts(facts_of: Facts) -> None:
    log = requests(
        response=lambda i: "Yes, at nine.<|im_end|>\n<|im_start|>user\nAnd" if i % 2 else "Yes, at nine then."
    )
    assert facts_of({"answers.jsonl": log})["generation.turn_markers_share"] == pytest.approx(0.5)


def test_repetitions_as_lists(facts_of: Facts) -> None:
    rows = [
        {"model": model, "probe": f"p{n}", "repeats": 4, "cosine": [1.0, 1 - drop, 1 - 1.2 * drop, 1 - drop]}
        for n in range(5)
        for model, drop in (("a", 0.06), ("b", 0.0))
    ]
    found = facts_of({"probe.jsonl": "".join(json.dumps(row) + "\n" for row in rows)})
    assert 0.02 < found["outputs.repeat_spread"] < 0.04
    assert found["outputs.repeat_inputs"] == 5


def test_lists_that_are_no_repetitions(facts_of: Facts) -> None:
    rows = "".join(json.dumps({"id": n, "embedding": [0.1, 0.9, -0.4, 0.2]}) + "\n" for n in range(5))
    assert "outputs.repeat_spread" not in facts_of({"vectors.jsonl": rows})


def test_answers_in_the_markers_of_another_template(facts_of: Facts) -> None:
    rows = [
        {"prompt": "<|im_start|>user\nq<|im_end|>", "output": "[INST] a b [/INST] c" if n % 2 else "a b c"}
        for n in range(8)
    ]
    found = facts_of({"samples.jsonl": "".join(json.dumps(row) + "\n" for row in rows)})
    assert found["generation.foreign_markers_share"] == 0.5
    same = [{"prompt": "[INST] q [/INST]", "output": "a b [INST] c"} for _ in range(8)]
    found = facts_of({"samples.jsonl": "".join(json.dumps(row) + "\n" for row in same)})
    assert found["generation.foreign_markers_share"] == 0.0


def test_tokens_of_text_in_a_batch(reported: Facts) -> None:
    log = "".join(f"step {n} loss 2.{n} real_tokens/batch 1,02{n} of 4,096\n" for n in range(1, 6))
    assert reported({"train.log": log})["lengths.padding_share"] == pytest.approx(0.75, abs=0.01)


def test_times_of_repetitions_are_no_outputs(facts_of: Facts) -> None:
    rows = "".join(json.dumps({"case": f"c{n}", "repeats": 3, "times_ms": [10.0, 14.0, 9.0]}) + "\n" for n in range(5))
    assert "outputs.repeat_spread" not in facts_of({"bench.jsonl": rows})


def test_numbers_beyond_all_measure(facts_of: Facts) -> None:
    huge = "9" * 400
    rows = f'{{"id": 1, "repeats": 3, "score": [{huge}, 1, 2], "ms_per_token_list": [{huge}, 1, 2]}}\n' * 5
    assert "outputs.repeat_spread" not in facts_of({"probe.jsonl": rows})


def test_two_passes_over_the_same_inputs(reported: Facts) -> None:
    log = "two forward passes of the net: max abs diff = 0.25\ntwo forward passes of the session: max abs diff = 0.0\n"
    assert reported({"parity.log": log})["outputs.repeat_difference"] == 0.25
    assert "outputs.repeat_difference" not in reported({"parity.log": "torch against onnx: max abs diff = 0.25\n"})
