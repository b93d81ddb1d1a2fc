"""Missing and unexpected names that are the same but for their beginning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

Reported = Callable[[Mapping[str, Any]], dict[str, Any]]
NAMES = [f"layer{k}.conv.weight" for k in range(8)]


def listed(missing: list[str], unexpected: list[str]) -> dict[str, str]:
    return {
        "train.log": f"missing_keys=[{', '.join(missing)}], unexpected_keys=[{', '.join(unexpected)}]\nstep 1 loss 2\n"
    }


@pytest.mark.parametrize(
    ("missing", "unexpected", "prefix"),
    [
        (NAMES, ["backbone." + name for name in NAMES], "backbone."),
        (["net.body." + name for name in NAMES], NAMES, "net.body."),
        (NAMES, ["module." + name for name in NAMES] + ["fc.weight", "fc.bias"], "module."),
        (NAMES, ["head.weight", "head.bias"], None),
        (NAMES[:3], ["module." + name for name in NAMES[:3]], None),
    ],
)
def test_the_prefix_that_one_side_has(
    reported: Reported, missing: list[str], unexpected: list[str], prefix: str
) -> None:
    assert reported(listed(missing, unexpected)).get("weights.other_prefix") == prefix
