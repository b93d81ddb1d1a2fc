"""What is said of the run as a whole."""

from __future__ import annotations

from rca.collect.overview import on_run
from rca.diagnosis import Experiment


def test_the_command_that_repeats_an_experiment_names_the_run() -> None:
    named = Experiment(
        id="a", title="", question="", prediction="", verdict="confirmed", repro="rca experiment a RUN_DIR"
    )
    alone = named.model_copy(update={"repro": 'python -m rca.experiments.repeat \'{"name": "RUN_DIR"}\''})
    found = on_run((named, alone), "runs/my job")
    assert [item.repro for item in found] == ["rca experiment a 'runs/my job'", alone.repro]
