"""Which task analyses: the first of its job, whatever an earlier job left."""

from __future__ import annotations

import os
import time
from pathlib import Path

from rca.integrations.recorder import Recorder
from rca.launch.tasks import claimed


def test_the_first_of_a_job_claims_and_an_earlier_job_does_not_count(tmp_path: Path) -> None:
    start = time.time() - 1
    assert claimed(tmp_path, since=start)
    assert not claimed(tmp_path, since=start)
    os.utime(tmp_path / "analysed-by", (start - 100, start - 100))
    assert claimed(tmp_path, since=start)


def test_a_run_in_the_folder_of_an_earlier_one_is_analysed_again(tmp_path: Path) -> None:
    for attempt in range(2):
        recorder = Recorder(tmp_path / "job", rank=0, world_size=1, analyze=True, output=tmp_path / "reports")
        recorder.failed(ValueError("Expected input batch_size (4) to match target batch_size (2)"))
        reports = list((tmp_path / "reports").glob("*.json"))
        assert len(reports) == 1, attempt
        reports[0].unlink()
        mark = tmp_path / "job" / "rca-run" / "analysed-by"
        os.utime(mark, (mark.stat().st_mtime - 100,) * 2)
