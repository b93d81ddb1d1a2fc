"""Sentences of a diagnosis in another language."""

from __future__ import annotations

import pytest

from rca.report.sentences import Sentences

SAY = Sentences(
    {
        "The loss is not finite.": "loss 为非有限值。",
        "Bad values": "坏值",
        "slow": "慢",
        "diverged": "发散",
        "log text": "日志文本",
        "the setting {name}": "配置项 {name}",
        "It failed in the phase {run.phase}, after {steps}.": "在 {steps} 之后，失败于 {run.phase} 阶段。",
        "It failed in the phase {run.phase}.": "失败于 {run.phase} 阶段。",
        "{fact_says} That is too much.": "{fact_says} 这太多了。",
        "One part. And its other {what}.": "一部分及其另外的{what}。",
        "untranslated": "",
    }
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The loss is not finite.", "loss 为非有限值。"),
        ("It failed in the phase train.", "失败于 train 阶段。"),
        ("It failed in the phase slow, after 7.", "在 7 之后，失败于 慢 阶段。"),
        ("Peak is 3 GiB. That is too much.", "Peak is 3 GiB. 这太多了。"),
        ("Bad values: The loss is not finite.", "坏值：loss 为非有限值。"),
        ("slow, diverged", "慢、发散"),
        ("slow; diverged", "慢；发散"),
        ("Log text.", "日志文本。"),
        ("the setting lr; the setting seed; log text", "配置项 lr；配置项 seed；日志文本"),
        ("Line 7 says no. The loss is not finite. See there.", "Line 7 says no. loss 为非有限值。See there."),
        ("One part. And its other half. The loss is not finite.", "一部分及其另外的half。loss 为非有限值。"),
        ("It failed in the phase …", "失败于 … 阶段"),
    ],
)
def test_what_is_known_is_translated(text: str, shown: str) -> None:
    assert SAY(text) == shown


@pytest.mark.parametrize(
    "text", ["", "untranslated", "It failed in the phase .", "It failed", "RuntimeError: CUDA error", "slow, fast", "…"]
)
def test_what_is_not_known_stays(text: str) -> None:
    assert SAY(text) == text
