"""Where the exception of a failure was raised: in which frame, and whether the program's own statement did it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rca.events import Event
from rca.facts.emit import emit
from rca.facts.failure.roles import short_name
from rca.facts.interface import Fact

CATALOGUE: Mapping[str, str] = {
    "failure.user_frame": "file:line of the innermost frame that is not in a library",
    "failure.function": "function whose statement raised the exception, of a library or not",
    "failure.own_raise": "the program itself raised it: by raise or assert, or by a slip such as a missing key or name",
}

_SLIPS = frozenset({
    "AssertionError", "AttributeError", "IndexError", "KeyError", "NameError", "NotImplementedError", "RecursionError",
    "SyntaxError", "IndentationError", "TabError", "TypeError", "UnboundLocalError", "ZeroDivisionError",
})  # fmt: skip
"""Exceptions that Python raises for the statement at hand; most others come out of compiled code that was called."""


def raised_at(raised: Event) -> Iterator[Fact]:
    """Tell the frames of the exception that matter."""
    frame = raised.attr("user_frame")
    if isinstance(frame, dict) and frame.get("file"):
        where = f"{frame['file']}:{frame.get('line')}"
        says = f"The innermost frame outside the libraries is {where} in {frame.get('function')}."
        yield from emit("failure.user_frame", where, says, events=[raised.event_id])
    frames = raised.attr("frames")
    if isinstance(frames, list) and frames and frames[-1].get("function"):
        says = f"The exception was raised in {frames[-1]['function']}."
        yield from emit("failure.function", str(frames[-1]["function"]), says, events=[raised.event_id])
    own = _own_raise(raised)
    says = "The program's own statement failed." if own else "It came out of code that the program called."
    yield from emit("failure.own_raise", own, says, events=[raised.event_id])


def _own_raise(raised: Event) -> bool | None:
    """Say whether the innermost frame is the program's and its own statement went wrong; None without frames."""
    frames = raised.attr("frames")
    if not isinstance(frames, list) or not frames:
        return None
    if frames[-1] != raised.attr("user_frame"):
        return False
    raises = str(frames[-1].get("code") or "").startswith(("raise ", "raise(", "assert ", "assert("))
    return raises or short_name(raised.name) in _SLIPS
