"""The compiled search is made once for the same parts."""

from __future__ import annotations

from rca.ingest.logs.line_search import line_search
from rca.ingest.registry import AFTER_METRICS, BLOCKS
from rca.rules.schema import Signature

SIGNATURE = Signature(id="a.b", emitter="x", pattern="boom", matches=("boom",))


def test_signatures_metrics_and_triggers_share_one_index() -> None:
    search = line_search((SIGNATURE,), BLOCKS, AFTER_METRICS)
    assert search.count == 1
    assert min(search.metrics) == 1
    assert min(search.triggers) == max(search.metrics) + 1
    (hit,) = search.scanner.hits(b"x\nboom\n", {})
    assert 0 in hit.patterns


def test_the_same_parts_are_not_compiled_again() -> None:
    signatures = (SIGNATURE,)
    first = line_search(signatures, BLOCKS, AFTER_METRICS)
    assert line_search(signatures, BLOCKS, AFTER_METRICS) is first
    other = (SIGNATURE.model_copy(update={"role": "benign"}),)
    assert line_search(other, BLOCKS, AFTER_METRICS) is not first


def test_late_triggers_are_those_after_the_metrics() -> None:
    search = line_search((), BLOCKS[:1], AFTER_METRICS)
    assert {trigger.late for trigger in search.triggers.values() if trigger.block in AFTER_METRICS} == {True}
    assert {trigger.late for trigger in search.triggers.values() if trigger.block in BLOCKS} == {False}
