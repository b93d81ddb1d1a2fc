"""Counts of verdicts, and the file that the knowledge base reads."""

from __future__ import annotations

from pathlib import Path

from rca.lab.likelihoods import counted, write
from rca.rules.load import load
from rca.rules.measured import OutcomeCounts


def row(run: str, experiment: str, verdict: str, cause: str = "numerics.lr_too_high") -> dict[str, object]:
    return {"run": run, "experiment": experiment, "verdict": verdict, "cause": cause}


ROWS = [
    {"run": "a", "cause": "numerics.lr_too_high", "hypotheses": []},
    row("a", "lr_tenth", "confirmed"),
    row("b", "lr_tenth", "not_reproduced"),
    row("c", "lr_tenth", "mitigates"),
    row("d", "lr_tenth", "not_testable"),
    row("e", "lr_tenth", "refuted", "numerics.bad_batch"),
]


def test_verdicts_that_say_nothing_are_left_out() -> None:
    assert counted(ROWS) == {
        "lr_tenth": {
            "numerics.bad_batch": OutcomeCounts(refuted=1),
            "numerics.lr_too_high": OutcomeCounts(confirmed=1, inconclusive=2),
        }
    }


def test_the_written_file_changes_what_the_experiment_predicts(tmp_path: Path) -> None:
    assert write(tmp_path / "likelihoods.yaml", ROWS, command="rca lab matrix --seeds 0") == 4
    text = (tmp_path / "likelihoods.yaml").read_text(encoding="utf-8")
    assert "command: rca lab matrix --seeds 0" in text
    assert "torch:" in text
    builtin, merged = load(), load([tmp_path])
    assert merged.outcomes["lr_tenth"]["numerics.bad_batch"].refuted == 1
    before = builtin.experiments["lr_tenth"].predicts["numerics.bad_batch"]
    after = merged.experiments["lr_tenth"].predicts["numerics.bad_batch"]
    assert after != before
    assert abs(after.confirmed + after.refuted + after.inconclusive - 1) < 1e-9
