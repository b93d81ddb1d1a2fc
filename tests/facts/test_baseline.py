"""Facts of a comparison with a healthy run."""

from __future__ import annotations

from typing import Any

import pytest

from rca.baseline import Baseline, CurveDifference, Difference, MessageDifference
from rca.events import EventTable
from rca.facts.baseline import CATALOGUE, baseline_facts

from .tables import Run

EVENTS = EventTable.from_parts([])


def difference(name: str, value: str | None, baseline: str | None, group: str = "configuration") -> Difference:
    ratio = None
    if value is not None and baseline is not None and value.replace(".", "").isdigit() and float(baseline) > 0:
        ratio = float(value) / float(baseline)
    return Difference.model_validate(
        {"group": group, "name": name, "value": value, "baseline": baseline, "ratio": ratio, "source": "config.json"}
    )


def facts(*differences: Difference, events: EventTable = EVENTS, **more: Any) -> dict[str, Any]:
    baseline = Baseline(name="good", path="good", used=True, differences=differences, **more)
    found = {fact.name: fact.value for fact in baseline_facts(baseline, events)}
    assert found.keys() <= CATALOGUE.keys()
    return found


def test_ratios_of_settings_and_of_a_setting_that_is_the_same() -> None:
    found = facts(difference("learning_rate", "0.3", "0.1"), same=("batch_size",), unchanged=1)
    assert found["baseline.lr_ratio"] == pytest.approx(3)
    assert found["baseline.batch_ratio"] == 1.0
    assert found["baseline.only_change"] == "learning_rate"
    assert "baseline.sequence_ratio" not in found


def test_the_samples_of_a_step_are_the_product_of_their_parts() -> None:
    parts = (
        difference("batch_size", "2", "8"),
        difference("gradient_accumulation_steps", "2", "1"),
        difference("processes", "4", "8", "system"),
    )
    assert facts(*parts)["baseline.effective_batch_ratio"] == pytest.approx(0.25)
    whole = difference("global_batch_size", "64", "128")
    assert facts(*parts, whole)["baseline.effective_batch_ratio"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("name", "value", "baseline", "fact"),
    [
        ("warmup_steps", "0", "100", "baseline.warmup_removed"),
        ("warmup_ratio", None, "0.03", "baseline.warmup_removed"),
        ("max_grad_norm", "none", "1.0", "baseline.clipping_removed"),
    ],
)
def test_what_was_taken_away(name: str, value: str | None, baseline: str, fact: str) -> None:
    assert facts(difference(name, value, baseline))[fact] is True
    assert fact not in facts(difference(name, "50", baseline))


def test_precision_and_optimizer() -> None:
    found = facts(difference("precision", "fp16", "bf16"), difference("adam_beta2", "0.999", "0.95"))
    assert found["baseline.precision_change"] == "bf16 -> fp16"
    assert found["baseline.optimizer_changes"] == 1


def test_packages_and_machine() -> None:
    found = facts(
        difference("torch", "2.5", "2.4", "packages"),
        difference("flash-attn", None, "2.6", "packages"),
        difference("NVIDIA driver", "525", "550", "system"),
        difference("NCCL_P2P_DISABLE", "1", None),
    )
    assert found["baseline.package_changes"] == "torch 2.4 -> 2.5"
    assert found["baseline.packages_missing"] == 1
    assert found["baseline.driver_changed"] is True
    assert found["baseline.variable_changes"] == 1
    assert "baseline.gpu_changed" not in found


def test_curves() -> None:
    line = CurveDifference(name="loss", label="Training loss", points=50, value=4, baseline=2, ratio=2, says="It is 4.")
    assert facts(curves=(line,))["baseline.loss_alike"] is True
    found = facts(curves=(line.model_copy(update={"parts_at": 30.0}),))
    assert (found["baseline.loss_ratio"], found["baseline.loss_parts_at_step"]) == (2, 30.0)
    assert found["baseline.loss_alike"] is False


def test_a_curve_is_shown_by_the_point_where_it_leaves() -> None:
    events = EventTable.from_parts([source.build() for source in _sources({"loss": [3.0, 2.0, 5.0, 6.0]})])
    line = CurveDifference(name="loss", label="Loss", points=4, value=6, baseline=2, ratio=3, parts_at=2.0, says="Up.")
    baseline = Baseline(name="good", path="good", used=True, curves=(line,))
    shown = {fact.name: fact.events for fact in baseline_facts(baseline, events)}
    assert events.get(shown["baseline.loss_parts_at_step"][0]).step == 2


def _sources(curves: dict[str, list[float]]) -> list[Any]:
    run = Run().curves(curves)
    return [run.source("train.log")]


def test_messages() -> None:
    rows = (
        MessageDifference(kind="template", status="new", name="it broke", severity="error", text="it broke"),
        MessageDifference(kind="template", status="new", name="it went on", severity="info"),
        MessageDifference(kind="signature", status="both", name="nccl.warn"),
    )
    found = facts(messages=rows)
    assert (found["baseline.new_error_templates"], found["baseline.shared_messages"]) == (1, 1)


def test_a_comparison_that_counts_for_nothing_gives_no_facts() -> None:
    baseline = Baseline(name="x", path="x", used=False, notes=("It failed.",), differences=(difference("a", "1", "2"),))
    assert list(baseline_facts(baseline, EVENTS)) == []
