"""Progress on standard error."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from rca.progress import progress

SCRIPT = """
import time
from rca.progress import progress
with progress(enabled=True) as tell:
    tell("read a.log", 1, 4)
    for done in range(5):
        tell("experiment lr_tenth", done, 9)
        time.sleep(0.15)
"""


def test_without_a_terminal_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(enabled=False) as tell:
        tell("read a.log", 1, 4)
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_experiments_show_their_arms_and_the_time_left(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    (tmp_path / "go.py").write_text(SCRIPT)
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    child = subprocess.Popen([sys.executable, str(tmp_path / "go.py")], env=environment, **streams)
    os.close(theirs)
    drawn = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        drawn += part
    assert child.wait(timeout=60) == 0
    text = drawn.decode()
    assert "read a.log" in text
    assert "experiment lr_tenth" in text
    assert "4/9 arms" in text
    assert "0:0" in text
