"""What an experiment tracker says about the end of a run."""

from __future__ import annotations

from typing import Any

META = "lifecycle_stage: active\nrun_id: e522e927fbec423bb76c87ffb83d26bb\nrun_name: big\nstatus: {}\n"


def test_a_run_that_the_tracker_has_as_failed(facts_of: Any) -> None:
    found = facts_of(
        {"mlruns/1/e522e927fbec423bb76c87ffb83d26bb/meta.yaml": META.format(4), "train.log": "step 1 loss 2.0\n"}
    )
    assert (found["run.tracker_status"], found["run.failed"], found["run.completed"]) == ("FAILED", True, False)


def test_a_finished_run_has_not_failed(facts_of: Any) -> None:
    found = facts_of(
        {"mlruns/1/e522e927fbec423bb76c87ffb83d26bb/meta.yaml": META.format(3), "train.log": "step 1 loss 2.0\n"}
    )
    assert (found["run.tracker_status"], found["run.failed"]) == ("FINISHED", False)
