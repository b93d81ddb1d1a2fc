from __future__ import annotations

import numpy as np
import pytest

from ..tables import Run, decay


def test_run_that_says_goodbye() -> None:
    found = Run().curves({"loss": decay(100)}).log("run.completed", role="benign", severity="info").values()
    assert found["run.completed"] is True
    assert found["run.failed"] is False
    assert found["run.kind"] == "train"
    assert found["run.steps_done"] == 99
    assert found["run.has_metrics"] is True


@pytest.mark.parametrize("how", ["exit", "plan", "summary"])
def test_other_ways_to_finish(how: str) -> None:
    run = Run().config(max_steps=100).curves({"loss": decay(100)})
    if how == "exit":
        run = Run().curves({"loss": decay(100)}).exited(0)
    if how == "summary":
        run = Run().curves({"loss": decay(100)})
        run.source("train.log").add(kind="metric", name="train_runtime", value=10.0, line=run.line("train.log"))
    assert run.values()["run.completed"] is True


def test_run_that_stops_silently() -> None:
    found = Run().config(max_steps=5000).curves({"loss": decay(90)}, every=10).values()
    assert found["run.ended_silently"] is True
    assert found["run.completed"] is False
    assert found["run.progress"] == pytest.approx(890 / 5000)


def test_run_with_an_error_is_not_silent() -> None:
    found = Run().config(max_steps=5000).curves({"loss": decay(90)}).raised("ValueError", "x").values()
    assert found["run.ended_silently"] is False
    assert found["run.failed"] is True
    assert found["run.step_at_failure"] == 89
    assert found["run.phase"] == "train"


def test_total_of_an_epoch_is_no_plan() -> None:
    found = Run().config(max_steps=50).curves({"loss": decay(200)}).values()
    assert "run.steps_planned" not in found
    assert "run.completed" not in found


def test_planned_epochs() -> None:
    found = Run().config(epochs=10).curves({"loss": decay(50), "epoch": np.linspace(0, 3, 50)}).values()
    assert found["run.ended_silently"] is True
    assert found["run.progress"] == pytest.approx(0.3)


def test_metrics_without_text_do_not_deny_a_failure() -> None:
    found = Run().curves({"loss": decay(50)}).values(text_sources=0)
    assert "run.failed" not in found
    assert found["run.has_text"] is False


def test_device_readings_are_no_metrics_of_the_run() -> None:
    assert Run().curves({"gpu_utilization": [90.0] * 20}).values()["run.has_metrics"] is False


def test_kinds() -> None:
    assert Run().log("vllm.started", role="benign", severity="info").values()["run.kind"] == "inference"
    assert Run().curves({"eval_loss": [2.0, 1.9]}).values()["run.kind"] == "eval"
    assert Run().log("x.y", role="benign").values()["run.kind"] == "unknown"
    trainer = Run().raised("ValueError", "x", frames=[("main", "trainer.train()"), ("step", "self.f()")])
    assert trainer.values()["run.kind"] == "train"


def test_failure_before_the_first_step_is_startup() -> None:
    assert Run().raised("ModuleNotFoundError", "No module named 'x'").values()["run.phase"] == "startup"


@pytest.mark.parametrize(
    ("phase", "frames"),
    [
        ("save", [("train", "self._save_checkpoint(model)"), ("save", "torch.save(state, f)")]),
        ("data", [("train", "for batch in loader"), ("_next_data", "data = self._try_get_data()")]),
        ("eval", [("train", "self.evaluate()"), ("evaluation_loop", "step(")]),
        ("load", [("main", "AutoModel.from_pretrained(path)")]),
        ("eval", [("fit", "validate(model, loader)"), ("validate", "model(x)")]),
        ("train", [("initialize", "validate_args(args)"), ("validate_args", "assert a % b == 0")]),
        ("train", [("main", "loss.backward()")]),
    ],
)
def test_phase_by_the_stack(phase: str, frames: list[tuple[str, str]]) -> None:
    found = Run().curves({"loss": decay(20)}).raised("RuntimeError", "x", frames=frames).values()
    assert found["run.phase"] == phase


def test_ranks() -> None:
    run = Run().config(world_size=4)
    for rank in (0, 1, 3):
        run.log("run.started", role="benign", severity="info", source=f"rank_{rank}.log", rank=rank)
    found = run.values()
    assert found["run.ranks_seen"] == 3
    assert found["run.world_size"] == 4
    assert found["run.ranks_missing"] == 1


def test_errors_are_counted() -> None:
    run = Run().log("a.b").log("c.d", role="benign", severity="info").raised("ValueError", "x")
    assert run.values()["run.error_count"] == 2


def test_an_end_that_nothing_tells_of_is_unknown() -> None:
    assert Run().curves({"loss": decay(100)}).values()["run.end_unknown"] is True
    assert Run().config(max_steps=5000).curves({"loss": decay(90)}).values()["run.end_unknown"] is False
    assert "run.end_unknown" not in Run().curves({"loss": decay(100)}).exited(0).values()
    assert "run.end_unknown" not in Run().curves({"loss": decay(100)}).raised("ValueError", "x").values()


@pytest.mark.parametrize(("states", "completed"), [(("COMPLETED", "COMPLETED"), True), (("COMPLETED", "FAILED"), None)])
def test_the_accounting_says_that_the_job_completed(states: tuple[str, ...], completed: bool | None) -> None:
    run = Run().curves({"loss": decay(100)})
    for line, state in enumerate(states, start=1):
        run.source("sacct.txt").add(kind="system", name="system.slurm_job", line=line, attrs={"state": state})
    assert run.values().get("run.completed") is completed


@pytest.mark.parametrize(
    ("ends", "planned", "done"),
    [
        ([{"epoch": 1}, {"epoch": 2}], 2, True),
        ([{"ended": 1, "epochs": 2}, {"ended": 2, "epochs": 2}], None, True),
        ([{"took": 0}, {"took": 1}], 2, True),
        ([{"took": 0}], 2, None),
        ([{"ended": 1}, {"ended": 2}], None, None),
    ],
)
def test_the_last_planned_epoch_is_over(ends: list[dict[str, int]], planned: int | None, done: bool | None) -> None:
    run = Run().curves({"loss": decay(20)})
    for captures in ends:
        run = run.log("progress.epoch_over", "an epoch is over", role="benign", severity="info", **captures)
    assert (run.config(epochs=planned) if planned else run).values().get("run.completed") is done
