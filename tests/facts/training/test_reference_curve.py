"""The loss against a curve kept for comparison."""

from __future__ import annotations

from tests.facts.tables import Run, decay


def test_a_loss_above_the_reference() -> None:
    run = Run().curves({"loss": list(3 * decay())}, source="train.log")
    run.curves({"loss": list(decay(40))}, every=5, source="ref/previous_run.csv")
    assert 2.9 < run.values()["loss.over_reference"] < 3.1


def test_without_a_reference_there_is_no_comparison() -> None:
    run = Run().curves({"loss": list(3 * decay())}, source="train.log")
    run.curves({"loss": list(decay(40))}, every=5, source="preference_model.csv")
    assert "loss.over_reference" not in run.values()
