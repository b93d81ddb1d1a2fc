"""Real logs of healthy runs must give calm facts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from rca.events import EventTable
from rca.facts.failure.chronology import failure
from rca.facts.interface import Fact
from rca.facts.registry import extract
from rca.ingest.interface import IngestContext, Source
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS
from rca.rules.load import load

ALARMS = (
    "loss.diverged",
    "loss.plateau",
    "loss.masked_nan",
    "loss.huge",
    "loss.suspiciously_low",
    "loss.first_too_high",
    "grad_norm.rising",
    "grad_norm.tiny",
    "lr.high",
    "lr.low",
    "lr.always_zero",
    "loss_scale.at_floor",
    "loss_scale.fell_to_end",
    "eval.overfit",
    "eval.constant",
    "eval.perfect",
    "eval.loss_nan",
    "memory.grows",
    "memory.host_grows",
    "run.failed",
    "run.ended_silently",
    "failure.only_cascades",
)
NEVER = ("failure.event", "failure.rank", "loss.nan_step", "oom.count", "collective.culprit", "loss.ln_k")
LOGS = (
    "deepspeed-examples/training/step1_supervised_finetuning/training_log_output/opt-1.3b-globalBatchSize128.log",
    "deepspeed-examples/training/step2_dpo_finetuning/training_log_output/opt-350M_globalBatchSize-32.log",
    "deepspeed-examples/training/step2_reward_model_finetuning/training_log_output/opt-350m_globalBatchSize-64.log",
    "bigscience/experiments/gpt2-hf-ds/hf_ds_gpt2_base_n8-1832573.out",
    "modded-nanogpt/logs/2024-06-06_AdamW.log",
    "modded-nanogpt/logs/2024-10-10_Muon.txt",
    "modded-nanogpt/logs/2024-11-14_QuantizedFP4.txt",
    "modded-nanogpt/logs/2025-09-05_SkipMLPBlocks.txt",
)


def read(file: Path) -> EventTable:
    source = Source(path=file.name, file=file, size=file.stat().st_size)
    _, ingested = read_source(source, INGESTORS, IngestContext(signatures=load().patterns))
    assert ingested is not None
    return EventTable.from_parts([ingested.events], text_sources=int(ingested.text))


@pytest.mark.slow
@pytest.mark.parametrize("log", LOGS)
def test_healthy_run(shared: Path, log: str) -> None:
    file = shared / "data" / log
    if not file.is_file():
        pytest.skip(f"{log} is not in ../shared/data")
    table = read(file)
    facts: Mapping[str, Fact] = extract(table)
    assert [name for name in ALARMS if name in facts and facts[name].value is True] == []
    assert [name for name in NEVER if name in facts] == []
    assert failure(table, facts) is None
