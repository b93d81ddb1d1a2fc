"""The real trainers on the CPU: a run that fails leaves its record and its report, one that goes well no report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

HUGGINGFACE = """
import torch
from transformers import Trainer, TrainingArguments
from rca.integrations.huggingface import RcaCallback

class Model(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer, self.kind, self.calls = torch.nn.Linear(4, 1), kind, 0
    def forward(self, x, labels):
        self.calls += 1
        if self.kind == "raise" and self.calls == 6:
            raise ValueError("Expected input batch_size (4) to match target batch_size (2)")
        loss = ((self.layer(x) - labels) ** 2).mean()
        return {"loss": loss * float("nan") if self.kind == "nan" and self.calls > 5 else loss}

data = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(64)]
for kind in ("well", "nan", "raise"):
    args = TrainingArguments(kind, max_steps=12, logging_steps=1, per_device_train_batch_size=4, report_to=[],
                             use_cpu=True, logging_nan_inf_filter=False, save_strategy="no", disable_tqdm=True)
    Trainer(Model(kind), args, train_dataset=data, callbacks=[RcaCallback()]).train()
"""
LIGHTNING = """
import torch, lightning.pytorch as pl
from rca.integrations.lightning import RcaCallback

class Model(pl.LightningModule):
    def __init__(self, kind):
        super().__init__()
        self.layer, self.kind = torch.nn.Linear(4, 1), kind
    def training_step(self, batch, index):
        if self.kind == "raise" and index == 5:
            raise ValueError("Expected input batch_size (4) to match target batch_size (2)")
        return self.layer(batch[0]).pow(2).mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(48, 4)), batch_size=4)
for kind in ("well", "raise"):
    quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer = pl.Trainer(max_epochs=1, accelerator="cpu", log_every_n_steps=1, callbacks=[RcaCallback(kind)], **quiet)
    trainer.fit(Model(kind), data)
"""
SCRIPTS = {"huggingface": HUGGINGFACE, "lightning": LIGHTNING}


@pytest.mark.parametrize("trainer", sorted(SCRIPTS))
def test_what_fails_is_analysed_where_it_fails(tmp_path: Path, trainer: str) -> None:
    if trainer == "lightning":
        pytest.importorskip("lightning")
    command = [sys.executable, "-c", SCRIPTS[trainer]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=500, check=False)
    assert done.returncode == 1
    kinds = [item.name for item in tmp_path.iterdir() if (item / "rca-run").is_dir()]
    assert {"well", "raise"} <= set(kinds)
    for kind in kinds:
        rows = metrics(tmp_path / kind)
        assert [row["step"] for row in rows[:3]] == [1, 2, 3]
        assert sum("loss" in row for row in rows) >= (4 if kind == "raise" else 11)
    reports = {file.stem: json.loads(file.read_text()) for file in (tmp_path / "reports").glob("*.json")}
    assert sorted(reports) == sorted({*kinds} - {"well"})
    assert all(report["verdict"]["cause"] != "none" for report in reports.values())
    failure = reports["raise"]["failure"]
    assert failure["source"] == "rca-run/stderr.log"
    assert "batch_size" in failure["what"]


def metrics(run_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run_dir / "rca-run" / "metrics.jsonl").read_text().splitlines()]
