"""Names that checkpoint and model do not share, as loaders list them."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("unexpected key in source state_dict: fc.weight, fc.bias", {"unexpected": ["fc.weight", "fc.bias"]}),
        ('Missing key(s) in state_dict: "a.0.w", "a.1.w". ', {"missing": ["a.0.w", "a.1.w"]}),
        (
            "_IncompatibleKeys(missing_keys=['n.w'], unexpected_keys=['m.n.w', 'm.n.b'])",
            {"missing": ["n.w"], "unexpected": ["m.n.w", "m.n.b"]},
        ),
        ("missing keys: []", {}),
        ("there are missing keys in the form", {}),
    ],
)
def test_lists_of_names(read: Any, line: str, keys: dict[str, list[str]]) -> None:
    rows = read("train.log", f"loading\n{line}\nstep 1 loss 2\n").table.named("weights.keys")
    assert {row.attr("kind"): list(row.attr("keys")) for row in rows} == keys
