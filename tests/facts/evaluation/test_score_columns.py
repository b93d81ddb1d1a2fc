from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("one", "other", "kind"), [("eager_acc", "onnx_acc", "export"), ("acc_bf16", "acc_int4", "quantised")]
)
def test_columns_of_two_versions_of_a_model(facts_of: Any, one: str, other: str, kind: str) -> None:
    found = facts_of({"replay.csv": f"bucket,{one},{other}\na,0.9,0.9\nb,0.9,0.6\nc,0.9,0.3\n"})
    assert found["quality.of"] == kind
    assert found["quality.lost_share"] == pytest.approx(2 / 3, abs=1e-3)


def test_columns_of_differences(facts_of: Any) -> None:
    found = facts_of({"replay.csv": "bucket,median_abs_logit_diff\na,2e-6\nb,3e-6\nc,0.4\nd,1.5\n"})
    assert found["outputs.differs_for_some"] is True
    assert "outputs.differs_for_some" not in facts_of({"replay.csv": "bucket,ms\na,2\nb,3\nc,4\n"})


@pytest.mark.parametrize(
    "files",
    [
        {"eval.json": {"offline": {"accuracy": 0.8, "n": 500}, "served": {"accuracy": 0.2, "n": 500}}},
        {
            "results_bf16.json": {"results": {"arc": {"acc": 0.8}}},
            "results_int4.json": {"results": {"arc": {"acc": 0.2}}},
        },
    ],
)
def test_scores_in_documents(facts_of: Any, files: dict[str, Any]) -> None:
    assert facts_of(files)["quality.lost_share"] == pytest.approx(0.75)


def test_settings_are_no_scores(facts_of: Any) -> None:
    assert "quality.lost_share" not in facts_of(
        {"config.json": {"train": {"batch_size": 32}, "serve": {"batch_size": 1}}}
    )
