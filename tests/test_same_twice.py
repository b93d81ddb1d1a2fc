"""The same run gives the same diagnosis, byte for byte but times, on an idle and on a busy machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rca.experiments import run
from rca.pipeline import Options, examine
from rca.rules.load import load

SAMPLES = Path(__file__).resolve().parents[1] / "sample_logs"
BUSY = "import time\nend = time.monotonic() + 300\nwhile time.monotonic() < end: pass"


def diagnosis(sample: str) -> str:
    """Without what was remembered of trainings before, without times, and without experiments that measure times:
    on a busy machine those may end otherwise."""
    run.close()
    options = Options(budget_s=1000, device="cpu", experiments="skip_bad_batch,loss_fp32")
    found = examine(SAMPLES / sample / "run", load(), options=options).diagnosis
    return json.dumps(_timeless(found.model_dump(mode="json")), indent=1, sort_keys=True)


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        times = {"seconds", "timings", "generated"}
        return {name: _timeless(item) for name, item in value.items() if name not in times}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_the_same_diagnosis_under_load() -> None:
    first = diagnosis("bad_batch")
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
    try:
        second = diagnosis("bad_batch")
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert json.loads(first)["experiments"]
    assert first == second
