"""Conditions in words."""

from __future__ import annotations

import pytest

from rca.rules.schema import Cause, Condition
from rca.rules.words import condition_words, maturity_note, strength


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"fact": "loss.nan_step"}, "fact `loss.nan_step` is known"),
        ({"fact": "lr.peak", "op": ">", "value": 0.01}, "fact `lr.peak` > 0.01"),
        ({"config": "fp16", "value": True}, "config `fp16` is true"),
        ({"config": "precision", "op": "in", "value": ["16", "half"]}, "config `precision` is one of 16, half"),
        ({"package": "torch", "op": "<", "value": "2.1"}, "package `torch` < 2.1"),
        ({"log": "a.*b"}, "log line `a.*b`"),
        ({"order": ["a.b", "c.d"]}, "`a.b` before `c.d`"),
        ({"not": {"exception": "KeyError"}}, "not exception `KeyError`"),
        (
            {"signature": "cuda.oom", "where": {"tried_bytes": ">= 8 GiB"}, "rank": "only"},
            "message `cuda.oom` with tried_bytes >= 8 GiB on one rank only",
        ),
        (
            {"all": [{"log": "a"}, {"any": [{"log": "b"}, {"log": "c"}]}]},
            "all of: log line `a`; (any of: log line `b`; log line `c`)",
        ),
    ],
)
def test_every_kind_of_condition_reads_as_a_phrase(condition, words) -> None:
    assert condition_words(Condition.model_validate(condition)) == words


def test_weights_have_names() -> None:
    assert [strength(weight) for weight in (0.3, 1, 2.5, 5)] == ["hint", "supports", "strong", "decides"]


def test_only_a_verdict_by_an_experimental_rule_carries_a_note() -> None:
    cause = Cause(id="acme.x", title="T", sentence="S.", summary="S.", prior=0.01)
    assert "acme.x is an experimental rule" in maturity_note(cause)[0]
    assert maturity_note(cause.model_copy(update={"maturity": "test"})) == maturity_note(None) == ()
