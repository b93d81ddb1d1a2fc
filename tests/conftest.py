"""Fixtures that every test may use."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Callable
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


@pytest.fixture(scope="session")
def on_terminal() -> Callable[..., str]:
    """Run a command on a terminal of 80 columns and return what it draws; variables are added to its environment."""
    return _drawn


def _drawn(*command: str, **variables: str) -> str:
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    environment |= {"TERM": "xterm", "COLUMNS": "80", **variables}
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    child = subprocess.Popen(command, cwd=ROOT, env=environment, **streams)
    os.close(theirs)
    drawn = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        drawn += part
    os.close(ours)
    assert child.wait(timeout=120) == 0
    return drawn.decode()
