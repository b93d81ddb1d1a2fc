"""Harmless warnings stay harmless, by themselves and in the log of a training that ends well."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rca.diagnosis import Diagnosis
from rca.pipeline import Options, examine
from rca.rules.load import load

KNOWLEDGE = load()
OPTIONS = Options(experiments="none", redact="none", strict=True)
ROWS = yaml.safe_load(Path(__file__).with_name("benign.yaml").read_text("utf-8"))
BENIGN = {row["name"]: row["log"] for row in ROWS}
START = "epoch 1 step 100 loss 2.3026\nepoch 1 step 200 loss 1.9120\n"
END = "epoch 1 step 300 loss 1.6034\nepoch 2 step 400 loss 1.4471\nepoch 2 step 500 loss 1.3518\nTraining completed\n"


def diagnosed(folder: Path, log: str) -> Diagnosis:
    (folder / "train.log").write_text(log, encoding="utf-8")
    return examine(folder, KNOWLEDGE, options=OPTIONS).diagnosis


def raised(diagnosis: Diagnosis) -> dict[str, float]:
    """Return the causes that come out above one half."""
    return {item.cause: item.probability for item in diagnosis.hypotheses if item.probability > 0.5}


@pytest.mark.parametrize("name", [row["name"] for row in ROWS if row.get("alone", True)])
def test_alone(tmp_path, name) -> None:
    assert raised(diagnosed(tmp_path, BENIGN[name])) == {}


@pytest.mark.parametrize("name", BENIGN)
def test_in_a_training_that_ends_well(tmp_path, name) -> None:
    diagnosis = diagnosed(tmp_path, START + BENIGN[name] + END)
    assert raised(diagnosis) == {}
    assert diagnosis.verdict.cause in {"none", "unknown"}


def test_the_corpus_covers_many_emitters() -> None:
    assert len(BENIGN) >= 50
    assert len({name.split(",")[0] for name in BENIGN}) >= 30
