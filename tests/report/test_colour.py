from __future__ import annotations

import io

import pytest

from rca.report.colour import ColourChoice, paint, wants_colour


class Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(
    ("choice", "terminal", "environ", "wanted"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", False, {"FORCE_COLOR": "1"}, True),
        ("auto", True, {"FORCE_COLOR": "0"}, False),
        ("auto", True, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ("auto", True, {"TERM": "dumb"}, False),
        ("auto", False, {"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ],
)
def test_order_of_what_decides(choice: ColourChoice, terminal: bool, environ: dict[str, str], wanted: bool) -> None:
    assert wants_colour(choice, stream=Stream(terminal), environ=environ) is wanted


def test_paint_is_nothing_without_colour() -> None:
    assert paint("x", "error", on=False) == "x"
    assert paint("", "error", on=True) == ""
    assert paint("x", "error", on=True).startswith("\x1b[")
