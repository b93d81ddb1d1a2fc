"""By how many places labels are moved, in every form in which batches are dumped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rca.ingest.weights.token_alignment import label_offset

IDS = [7, 91, 14, 3, 55, 82, 41, 6, 77, 20, 13, 99, 38, 64, 2]


def moved(offset: int, masked: int = 4) -> list[int]:
    ahead = [IDS[k + offset] if 0 <= k + offset < len(IDS) else -100 for k in range(len(IDS))]
    return [-100] * masked + ahead[masked:]


@pytest.mark.parametrize("offset", [-1, 0, 1, 2])
def test_the_offset(offset: int) -> None:
    assert label_offset(IDS, moved(offset)) == offset


def test_what_tells_no_offset() -> None:
    assert label_offset(IDS, [-100] * 12 + IDS[12:]) is None
    assert label_offset(IDS, [5] * len(IDS)) is None
    assert label_offset([4] * 15, [4] * 15) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("batch.json", json.dumps({"step": 0, "input_ids": IDS, "labels": moved(1)})),
        ("batch.json", json.dumps({"input_ids": [IDS, IDS], "labels": [moved(1), moved(1)]})),
        ("rows.jsonl", "\n".join(json.dumps({"input_ids": IDS, "labels": moved(1)}) for _ in range(3))),
        ("train.log", f"example:\ninput_ids:\n{IDS}\ninputs:\na text\nlabel_ids:\n{moved(1)}\nlabels:\nx\n"),
        ("train.log", f"input_ids: tensor({IDS})\nlabels: tensor({moved(1)})\n"),
    ],
)  # fmt: skip
def test_dumped_batches(read: Any, name: str, text: str) -> None:
    values = {value for _step, value in read(name, text + "\n").metrics("labels_offset")}
    assert values == {1.0}


@pytest.mark.parametrize(
    "text",
    [
        f"sample x[0,:15] = {IDS}\nsample y[0,:15] = {IDS}\n",
        f"xb: tensor([{IDS}])\nshape (1, 15)\nyb: tensor([{IDS}])\n",
    ],
)
def test_targets_of_a_loop_of_its_own(read: Any, text: str) -> None:
    found = read("train.log", text)
    assert [value for _step, value in found.metrics("targets_offset")] == [0.0]
    assert found.metrics("labels_offset") == []
