"""The search for the cheapest way to fit, on traces that are made up: 4 GiB of weights, activations by tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rca.experiments.memory.question import GIB, MemoryQuestion
from rca.experiments.memory.search import TRACES, Search, applies, fill
from rca.experiments.memory.table import cheapest, in_words, what_if
from rca.rules.load import remedies
from tests.experiments.memory.steps import question

REMEDIES = remedies()


class Traced:
    """Counts the traces that are asked for."""

    def __init__(self, *, weights: float = 4.0, per_token: float = 0.004) -> None:
        self.weights, self.per_token, self.asked = weights, per_token, 0

    def __call__(self, questions: Sequence[MemoryQuestion]) -> list[Mapping[str, float]]:
        self.asked += len(questions)
        return [self._one(step) for step in questions]

    def _one(self, step: MemoryQuestion) -> dict[str, float]:
        width = 4 if step.weights == "fp32" else 2
        count = self.weights * GIB / 4
        kept = 1.0 if step.training else 0.001
        held = step.batch * step.seq * self.per_token * GIB * (0.1 if step.checkpointing else kept)
        trainable = 0.01 * count if step.lora_r else count
        return {
            "weights": count * width,
            "layer": count * width / 32,
            "parameters": count,
            "trainable": trainable,
            "matrices": 0.9 * count,
            "largest": 0.01 * count,
            "start.gradients": 0.0,
            "start.logits": 0.1 * held,
            "start.activations": 0.9 * held,
        }


def found(step: MemoryQuestion, capacity: float, tracer: Traced | None = None) -> tuple[list[Any], Traced]:
    tracer = tracer or Traced()
    return Search(step, capacity * GIB, tracer, REMEDIES).rows(), tracer


def test_rows_are_in_order_of_price_and_the_step_itself_is_first() -> None:
    rows, _ = found(question(batch=4), 40)
    assert rows[0].choice.remedies == ()
    prices = [row.choice.price for row in rows]
    assert prices == sorted(prices)
    assert rows[cheapest(rows)].choice.label == "gradient checkpointing"
    assert rows[cheapest(rows)].choice.paste == "gradient_checkpointing=True"


def test_what_fits_needs_no_change() -> None:
    rows, _ = found(question(batch=1), 80)
    assert cheapest(rows) == 0
    assert "as it is" in in_words(rows, 80 * GIB)


def test_changes_are_combined_where_none_is_enough() -> None:
    rows, tracer = found(question(batch=16), 19, Traced(per_token=0.002))
    best = rows[cheapest(rows)]
    assert len(best.choice.remedies) == 2
    assert best.fits
    alone = [row for row in rows if len(row.choice.remedies) == 1 and row.fits]
    assert all(row.choice.price > best.choice.price for row in alone)
    assert tracer.asked <= TRACES + 1
    assert best.choice.label in in_words(rows, 19 * GIB)


def test_a_batch_is_halved_as_often_as_needed_before_more_is_changed() -> None:
    rows, _ = found(question(task="serve", batch=64, weights="bf16", compute="bf16", utilization=0.95), 24)
    assert rows[cheapest(rows)].choice.label == "concurrency 16"
    assert "max_num_seqs=16" in rows[cheapest(rows)].choice.paste


def test_nothing_fits_a_card_that_is_far_too_small() -> None:
    rows, tracer = found(question(batch=4), 1.5, Traced(weights=400.0))
    assert cheapest(rows) is None
    assert "No combination of up to three changes fits" in in_words(rows, 1.5 * GIB)
    assert what_if(rows, 1.5 * GIB).marked is None
    assert tracer.asked < 14


def test_more_devices_are_offered_last_and_sharding_only_with_devices() -> None:
    one, _ = found(question(batch=4), 40)
    assert "ZeRO-3 or FSDP over 8 devices" in {row.choice.label for row in one}
    assert not any("ZeRO-1" in row.choice.label for row in one)
    many, _ = found(question(batch=4, devices=4), 40)
    assert "ZeRO-1 over 4 devices" in {row.choice.label for row in many}


def test_remedies_know_when_they_make_sense() -> None:
    known = {remedy.id: remedy for remedy in REMEDIES}
    assert applies(known["sdpa"], question(attention="eager"))
    assert not applies(known["sdpa"], question())
    assert applies(known["zero_1"], question(devices=2))
    assert not applies(known["zero_1"], question())
    assert not applies(known["fused_optimizer"], question(foreach=False))


def test_every_remedy_can_be_made_and_filled_in() -> None:
    assert len({remedy.id for remedy in REMEDIES}) == len(REMEDIES)
    for remedy in REMEDIES:
        assert set(remedy.change) | set(remedy.when) <= set(MemoryQuestion.model_fields), remedy.id
        for text in (remedy.title, remedy.paste):
            assert not any(f"{{{name}}}" in fill(text, question()) for name in MemoryQuestion.model_fields), remedy.id
        assert "{" not in fill(remedy.title, question()), remedy.id


def test_the_table_leaves_out_what_the_step_does_not_have() -> None:
    rows, _ = found(question(batch=4), 40)
    table = what_if(rows, 40 * GIB)
    assert "KV cache" not in table.columns
    assert table.columns[-2:] == ("Fits", "What it asks of you")
    serving, _ = found(question(task="serve", batch=64, weights="bf16", compute="bf16"), 24)
    assert "Optimizer" not in what_if(serving, 24 * GIB).columns
    assert {len(row) for row in table.rows} == {len(table.columns)}
