"""Conditions: met, not met, and no data."""

from __future__ import annotations

import pytest

from rca.events import EventBuilder, EventTable
from rca.facts.interface import Fact
from rca.hypotheses.match import View, ask, compare
from rca.rules.load import inline_id
from rca.rules.schema import Condition


def view(*, text: bool = True, facts: tuple[Fact, ...] = ()) -> View:
    builder = EventBuilder("rank_0.log", rank=0)
    builder.add(kind="log", name="cuda.oom", line=5, attrs={"tried_bytes": 2**31, "op": "forward"}, text="CUDA oom")
    builder.add(kind="log", name=inline_id("lease lost"), line=6)
    builder.add(kind="exception", name="torch.OutOfMemoryError", line=7, text="CUDA out of memory")
    builder.add(kind="config", name="learning_rate", value=0.1, text="0.1")
    builder.add(kind="config", name="bf16", text="True", attrs={"value": True})
    builder.add(kind="package", name="transformers", text="4.46.3")
    other = EventBuilder("rank_1.log", rank=1)
    other.add(kind="log", name="nccl.timeout", line=1)
    quiet = EventBuilder("rank_2.log", rank=2)
    quiet.add(kind="log", name="nccl.timeout", line=1)
    table = EventTable.from_parts([builder.build(), other.build(), quiet.build()], text_sources=3 if text else 0)
    return View(events=table, facts={fact.name: fact for fact in facts})


def outcome(condition: dict, **kwargs) -> str:
    return ask(Condition.model_validate(condition), view(**kwargs)).outcome


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"signature": "cuda.oom"}, "met"),
        ({"signature": "cuda.*"}, "met"),
        ({"signature": "cuda.absent"}, "not_met"),
        ({"signature": "cuda.oom", "where": {"tried_bytes": ">= 1 GiB"}}, "met"),
        ({"signature": "cuda.oom", "where": {"tried_bytes": "> 3 GiB"}}, "not_met"),
        ({"signature": "cuda.oom", "where": {"op": "matches ^for"}}, "met"),
        ({"signature": "cuda.oom", "where": {"absent": 1}}, "not_met"),
        ({"signature": "cuda.oom", "rank": "only"}, "met"),
        ({"signature": "nccl.timeout", "rank": "only"}, "not_met"),
        ({"signature": "cuda.oom", "rank": "outlier"}, "met"),
        ({"signature": "nccl.timeout", "rank": "outlier"}, "not_met"),
        ({"signature": "nccl.timeout", "rank": "all"}, "not_met"),
        ({"log": "lease lost"}, "met"),
        ({"log": "lease found"}, "not_met"),
        ({"exception": "OutOfMemoryError"}, "met"),
        ({"exception": "torch.OutOfMemoryError", "where": {"message": "matches memory"}}, "met"),
        ({"exception": "KeyError"}, "not_met"),
        ({"config": "learning_rate", "op": ">", "value": 0.01}, "met"),
        ({"config": "bf16", "value": True}, "met"),
        ({"config": "fp16", "value": True}, "no_data"),
        ({"package": "transformers", "op": "<", "value": "4.50"}, "met"),
        ({"package": "transformers", "op": ">=", "value": "4.50"}, "not_met"),
        ({"package": "deepspeed"}, "not_met"),
        ({"fact": "loss.nan_step"}, "no_data"),
        ({"order": ["cuda.oom", "nccl.timeout"]}, "met"),
        ({"order": ["nccl.timeout", "cuda.oom"]}, "not_met"),
        ({"all": [{"signature": "cuda.oom"}, {"config": "fp16", "value": True}]}, "no_data"),
        ({"all": [{"signature": "cuda.absent"}, {"config": "fp16", "value": True}]}, "not_met"),
        ({"any": [{"signature": "cuda.oom"}, {"config": "fp16", "value": True}]}, "met"),
        ({"any": [{"signature": "cuda.absent"}, {"config": "fp16", "value": True}]}, "no_data"),
        ({"not": {"signature": "cuda.absent"}}, "met"),
        ({"not": {"config": "fp16", "value": True}}, "no_data"),
    ],
)
def test_outcomes(condition, expected) -> None:
    assert outcome(condition) == expected


def test_without_any_log_text_a_silent_signature_is_no_data() -> None:
    assert outcome({"signature": "cuda.absent"}, text=False) == "no_data"
    assert outcome({"not": {"signature": "cuda.absent"}}, text=False) == "no_data"


def test_a_fact_that_exists_is_compared() -> None:
    facts = (Fact("oom.tried_gib", 2.0), Fact("failure.rank", 0), Fact("loss.diverged", value=False))
    assert outcome({"fact": "oom.tried_gib", "op": ">=", "value": 1}, facts=facts) == "met"
    assert outcome({"fact": "oom.tried_gib", "op": "<", "value": 1}, facts=facts) == "not_met"
    assert outcome({"fact": "loss.diverged", "value": True}, facts=facts) == "not_met"
    assert outcome({"signature": "cuda.oom", "rank": "first"}, facts=facts) == "met"
    assert outcome({"signature": "nccl.timeout", "rank": "first"}, facts=facts) == "not_met"


@pytest.mark.parametrize(
    ("value", "op", "wanted", "expected"),
    [
        (True, "==", "true", True),
        ("False", "==", False, True),
        ("1e-3", "==", 0.001, True),
        ("adamw_torch", "matches", "^adam", True),
        ("auto", ">", 1, False),
        ("auto", "==", 1, False),
        (3, "in", (1, 2, 3), True),
        ("BF16", "in", ("bf16", "fp16"), True),
        (1, "!=", 2, True),
        (0, "==", False, True),
    ],
)
def test_compare(value, op, wanted, expected) -> None:
    assert compare(value, op, wanted) is expected


def test_words_of_a_harmless_warning_are_no_evidence() -> None:
    builder = EventBuilder("train.log")
    builder.add(kind="log", name=inline_id("might be slow"), line=3)
    builder.add(kind="log", name="pytorch.worker_count_advice", line=3, role="benign", severity="warning")
    builder.add(kind="log", name=inline_id("is slow"), line=9)
    builder.add(kind="log", name="run.saved", line=9, role="benign", severity="info")
    seen = View(events=EventTable.from_parts([builder.build()], text_sources=1), facts={})
    assert ask(Condition(log="might be slow"), seen).outcome == "not_met"
    assert ask(Condition(log="is slow"), seen).outcome == "met"
