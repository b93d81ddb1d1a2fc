"""Scores of one model in several number formats."""

from __future__ import annotations

import pytest

from ..tables import Run


def scored(*rows: tuple[str, str, float]) -> dict[str, object]:
    run = Run()
    for line, (variant, metric, value) in enumerate(rows, start=1):
        attrs = {"variant": variant, "metric": metric, "value": value}
        run.source("bench.log").add(kind="log", name="quality.variant_score", line=line, attrs=attrs)
    return run.values()


def test_the_quantised_format_is_held_against_the_widest() -> None:
    found = scored(("FP16", "mAP", 0.70), ("fp32", "mAP", 0.72), ("int8", "mAP", 0.09))
    assert found["quality.lost_share"] == pytest.approx(1 - 0.09 / 0.72, abs=1e-3)
    assert found["quality.of"] == "quantised"


def test_formats_alone_or_of_other_metrics_are_not_compared() -> None:
    assert "quality.lost_share" not in scored(("int8", "mAP", 0.09))
    assert "quality.lost_share" not in scored(("fp32", "accuracy", 0.72), ("int8", "mAP", 0.09))


def tables(first: str, second: str, *, scores: tuple[float, float]) -> dict[str, object]:
    run = Run()
    for source, model, score in (("a.txt", first, scores[0]), ("b.txt", second, scores[1])):
        builder = run.source(source)
        builder.add(kind="log", name="eval.model", line=1, attrs={"model": f"pretrained={model},dtype=auto"})
        builder.add(kind="metric", name="score.acc", line=4, value=score, attrs={"label": "mmlu"})
    return run.values()


def test_tables_of_two_models_are_compared_when_one_is_quantised() -> None:
    found = tables("models/8b", "models/8b-awq", scores=(0.65, 0.26))
    assert found["quality.lost_share"] == pytest.approx(0.6)
    assert found["quality.of"] == "quantised"
    assert "quality.lost_share" not in tables("models/8b", "models/9b", scores=(0.65, 0.26))
    assert "quality.lost_share" not in tables("models/8b", "models/8b-int4", scores=(5.9, 812.0))
