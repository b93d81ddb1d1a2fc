"""Makes `sample_logs/` again: `python -m rca.lab.samples FOLDER [FAULT ...]`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from rca.lab.faults import FAULTS, variant
from rca.lab.make import make


def make_samples(folder: Path, names: Sequence[str] = ()) -> None:
    """Run every fault that is kept as a sample, or only the named ones, and replace its folder."""
    for fault in FAULTS.values():
        if (fault.name in names) if names else fault.sample:
            target = folder / fault.name
            shutil.rmtree(target, ignore_errors=True)
            make(variant(fault.name), target)


if __name__ == "__main__":
    make_samples(Path(sys.argv[1]), sys.argv[2:])
