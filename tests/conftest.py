"""Fixtures that every test may use."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no fault of the code; CI tries the same examples every time.
settings.register_profile(
    "rca", deadline=None, derandomize=bool(os.environ.get("CI")), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rca")

# A shell starts what it runs in the background deaf to Ctrl-C, and so would be the programs that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of labelled incidents and real traces that lies beside some checkouts."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("../shared (labelled incidents and real traces) is not beside this checkout")
    return folder
