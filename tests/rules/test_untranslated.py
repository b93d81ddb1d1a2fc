"""What a language still lacks is found by exact text, and what a translation must keep is counted."""

from __future__ import annotations

import pytest

from rca.rules.load import Knowledge
from rca.rules.schema import Cause
from rca.rules.untranslated import Text, kept_parts, stale, texts, untranslated

CAUSE = Cause.model_validate(
    {
        "id": "acme.lease",
        "title": "Lease lost",
        "sentence": "The lease of {host} was lost.",
        "summary": "Lease lost",
        "prior": 0.1,
        "evidence": [
            {"id": "a", "log": "x", "weight": 1, "says": "{fact_says}"},
            {"id": "b", "log": "x", "weight": 1, "says": "{fact_says} So it is late."},
        ],
        "fixes": [{"action": "Ask again", "snippet": "ask()", "verify": "It answers."}],
    }
)


def test_every_text_is_named_once_and_snippets_and_bare_gaps_are_not() -> None:
    found = list(texts(Knowledge(causes={CAUSE.id: CAUSE}), ()))
    assert found == [
        Text("cause.title", "acme", "Lease lost"),
        Text("cause.sentence", "acme", "The lease of {host} was lost."),
        Text("evidence.says", "acme", "{fact_says} So it is late."),
        Text("fix.action", "acme", "Ask again"),
        Text("fix.verify", "acme", "It answers."),
    ]
    assert [item.text for item in untranslated(found, {"Lease lost": "租约丢失", "It answers.": ""})] == [
        "The lease of {host} was lost.",
        "{fact_says} So it is late.",
        "Ask again",
        "It answers.",
    ]
    assert stale(found, {"Lease lost": "租约丢失", "Lease found": "租约"}) == ["Lease found"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Set `a b` and {x.y}, then {x.y}.", {"`a b`": 1, "{x.y}": 2}),
        ("Run with --max-model-len or num_workers=0.", {"--max-model-len": 1, "num_workers": 1}),
        ("See https://example.org/a_b (page).", {"https://example.org/a_b": 1}),
        ("torch.cuda.memory_allocated() after zero_grad.", {"torch.cuda.memory_allocated": 1, "zero_grad": 1}),
        ("Plain words - and 0.5 of them.", {}),
    ],
)
def test_what_a_translation_keeps(text: str, kept: dict[str, int]) -> None:
    assert kept_parts(text) == kept
