"""Exceptions named without a traceback."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.parametrize(
    ("line", "name", "message"),
    [
        ("RuntimeError: stack expects each tensor", "RuntimeError", "stack expects each tensor"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "torch.OutOfMemoryError", "CUDA out of memory."),
        (
            "[rank1]: safetensors_rust.SafetensorError: HeaderTooLarge",
            "safetensors_rust.SafetensorError",
            "HeaderTooLarge",
        ),
        ("2024-01-01 00:00:00 | ERROR | a.b | KeyError: 'x'", "KeyError", "'x'"),
        ("Uncaught exception: ValueError: bad", "ValueError", "bad"),
        ("KeyboardInterrupt", "KeyboardInterrupt", ""),
    ],
)
def test_an_exception_line(read: Callable, line: str, name: str, message: str) -> None:
    (event,) = read("run.log", line + "\n").table.of_kind("exception")
    assert (event.name, event.text, event.attr("bare"), event.attr("frames")) == (name, message, True, [])


@pytest.mark.parametrize(
    "line",
    [
        "MyOwnError: unknown to Python",
        "Warning: RuntimeError: in the middle",
        "raise ValueError('x')",
        "UserWarning: deprecated",
        "no RuntimeError: here",
        "ValueError is raised when",
    ],
)
def test_what_is_no_exception_line(read: Callable, line: str) -> None:
    assert read("run.log", line + "\n").table.of_kind("exception") == ()
