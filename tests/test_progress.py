"""Progress on standard error."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest

from rca.progress import How, how, progress

READING = """
import time
from rca.progress import How, progress
with progress(How("bars")) as tell:
    for done in range(20):
        tell(f"read {done + 1}/20 logs/rank_{done}[red].log", done * 10_000_000, 200_000_000)
        time.sleep(0.1)
"""
EXPERIMENT = """
import time
from rca.progress import How, progress
with progress(How("bars")) as tell:
    tell("rank", 0, 1)
    for done in range(9):
        tell("experiment lr_tenth", done, 9)
        time.sleep(0.2)
"""
QUICK = """
import rca.redact
from rca.progress import How, progress
with progress(How("bars")) as tell:
    tell("read 1/1 a.log", 1, 4)
"""


def test_without_a_terminal_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(How("none")) as tell:
        tell("read a.log", 1, 4)
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_every_stage_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(how(quiet=False, lines=True)) as tell:
        for done in range(3):
            tell(f"read {done + 1}/3 logs/{done}.log", done, 3)
        for done in range(9):
            tell("experiment lr_tenth", done, 9)
    assert capsys.readouterr().err == "rca: reading, files: 3\nrca: experiment lr_tenth\n"


def test_quiet_and_json_show_nothing_where_no_terminal_is() -> None:
    assert how(quiet=True, lines=True).form == how(quiet=False, lines=False).form == "none"


def test_on_a_terminal_files_show_bytes_speed_and_the_time_left(on_terminal: Callable[..., str]) -> None:
    text = on_terminal(sys.executable, "-c", READING)
    assert "read 20/20" in text
    assert "_19[red].log" in text
    assert max(len(line) for line in re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text))) <= 80
    assert "190.0 MB of 200.0 MB" in text
    assert "MB/s" in text
    assert "0:0" in text


def test_on_a_terminal_experiments_show_their_arms_and_the_time_left(on_terminal: Callable[..., str]) -> None:
    text = on_terminal(sys.executable, "-c", EXPERIMENT)
    assert "experiment lr_tenth" in text
    assert "8/9 arms" in text
    assert "0:0" in text


def test_what_is_done_within_a_second_draws_nothing(on_terminal: Callable[..., str]) -> None:
    assert on_terminal(sys.executable, "-c", QUICK).strip() == ""
