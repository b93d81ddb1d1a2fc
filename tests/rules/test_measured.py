"""Counted outcomes and stated chances become one prediction."""

from __future__ import annotations

from pathlib import Path

import pytest

from rca.rules.check import check
from rca.rules.load import load
from rca.rules.measured import OutcomeCounts, with_outcomes
from rca.rules.schema import ExperimentRule

RULE = ExperimentRule.model_validate({
    "id": "trial", "title": "A trial", "question": "Does it help?", "change": {"lr": "x0.1"},
    "confirms": ["numerics.lr_too_high"], "says": "-", "cost": 1,
    "predicts": {
        "numerics.lr_too_high": {"confirmed": 0.8, "refuted": 0.1, "inconclusive": 0.1},
        "other": {"confirmed": 0.2, "refuted": 0.6, "inconclusive": 0.2},
    },
})  # fmt: skip


def test_stated_chances_count_like_one_and_a_half_outcomes() -> None:
    counts = {"trial": {"numerics.lr_too_high": OutcomeCounts(confirmed=3, inconclusive=1)}}
    found = with_outcomes({"trial": RULE}, counts)["trial"].predicts["numerics.lr_too_high"]
    assert found.confirmed == pytest.approx((1.5 * 0.8 + 3) / 5.5)
    assert found.refuted == pytest.approx(1.5 * 0.1 / 5.5)
    assert found.inconclusive == pytest.approx((1.5 * 0.1 + 1) / 5.5)


def test_a_cause_that_was_only_counted_starts_from_the_rest_and_adds_to_it() -> None:
    counts = {"trial": {"data.leakage": OutcomeCounts(refuted=2), "data.corrupt_sample": OutcomeCounts(confirmed=1)}}
    predicts = with_outcomes({"trial": RULE}, counts)["trial"].predicts
    assert predicts["data.leakage"].refuted == pytest.approx((1.5 * 0.6 + 2) / 3.5)
    assert predicts["other"].refuted == pytest.approx((1.5 * 0.6 + 2) / 4.5)
    assert predicts["other"].confirmed == pytest.approx((1.5 * 0.2 + 1) / 4.5)
    assert predicts["numerics.lr_too_high"] == RULE.predicts["numerics.lr_too_high"]


def test_an_experiment_without_counts_or_without_chances_stays_as_it_is() -> None:
    plain = RULE.model_copy(update={"predicts": {}})
    assert with_outcomes({"trial": RULE}, {"trial": {}}) == {"trial": RULE}
    assert with_outcomes({"trial": plain}, {"trial": {"data.leakage": OutcomeCounts(refuted=1)}}) == {"trial": plain}


def test_unknown_ids_are_found_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "likelihoods.yaml").write_text(
        "command: by hand\nruns: 2\noutcomes:\n  lr_tenht:\n    numerics.lr_too_high: {confirmed: 1}\n"
        "  warmup:\n    numerics.lr_to_high: {confirmed: 1}\n",
        encoding="utf-8",
    )
    found = check(load([tmp_path]), facts={})
    told = sorted((item for item in found if item.file.name == "likelihoods.yaml"), key=lambda item: item.line or 0)
    assert [(finding.level, finding.line) for finding in told] == [("error", 4), ("error", 7)]
    assert "lr_tenth" in str(told[0])
    assert "numerics.lr_too_high" in str(told[1])
