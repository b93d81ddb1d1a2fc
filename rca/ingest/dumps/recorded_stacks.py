"""Stacks as PyTorch records them with collectives and allocations: name, filename and line, innermost first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rca.ingest.dumps.stack_states import is_library

_FRAMES, _WORDS = 48, 200
Frame = Mapping[str, Any]


def words(value: Any) -> str:
    """Return a short text; what is no text is empty."""
    return value[:_WORDS] if isinstance(value, str) else ""


def whole(value: Any) -> int | None:
    """Return a non-negative integer below 2**63, also where JSON holds it as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        value = int(value)
    return value if type(value) is int and 0 <= value < 1 << 63 else None


def frames_of(entry: Mapping[str, Any]) -> list[Frame]:
    """Return the recorded stack, innermost first."""
    frames = entry.get("frames")
    return [frame for frame in frames[:_FRAMES] if isinstance(frame, dict)] if isinstance(frames, list) else []


class Places:
    """Finds the innermost place of a stack outside the libraries; stacks share frames, so each is looked at once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], str] = {}
        self._stacks: dict[tuple[int, ...], list[Frame]] = {}

    def stack(self, entry: Mapping[str, Any]) -> tuple[list[Frame], str]:
        """Return the recorded stack of an entry, innermost first, and the place that `of` finds in it."""
        frames = entry.get("frames")
        if not isinstance(frames, list) or not frames:
            return [], ""
        key = tuple(map(id, frames[:_FRAMES]))
        if key not in self._stacks:
            self._stacks[key] = frames_of(entry)
            self._known[key] = self._found(self._stacks[key])
        return self._stacks[key], self._known[key]

    def of(self, frames: Sequence[Frame]) -> str:
        """Return `train.py:41 in step` with the folder of the file; empty where no frame is the program's own."""
        key = tuple(map(id, frames))
        if key not in self._known:
            self._known[key] = self._found(frames)
        return self._known[key]

    def _found(self, frames: Sequence[Frame]) -> str:
        own = next((frame for frame in frames if _is_own(words(frame.get("filename")))), None)
        return "" if own is None else _place(own)


def _is_own(file: str) -> bool:
    """Say whether a frame is Python code of the program; recorded stacks may hold C++ frames as well."""
    return file.endswith((".py", ".ipynb")) and not is_library(file)


def _place(frame: Frame) -> str:
    file = "/".join(words(frame.get("filename")).replace("\\", "/").rsplit("/", 2)[-2:])
    return f"{file}:{whole(frame.get('line')) or 0} in {words(frame.get('name'))}"


def as_exception_frames(frames: Sequence[Frame], most: int) -> list[dict[str, Any]]:
    """Return the innermost frames in the form and order that exceptions carry: outermost first."""
    return [
        {"file": words(frame.get("filename")), "line": whole(frame.get("line")), "function": words(frame.get("name"))}
        for frame in reversed(frames[:most])
    ]
