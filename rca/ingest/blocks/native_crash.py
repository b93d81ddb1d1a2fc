"""Crashes below Python: C++ exceptions that nobody caught, and the stacks that faulthandler dumps."""

from __future__ import annotations

import re
from typing import Any

from rca.events import EventBuilder
from rca.ingest.logs.document import Document

_TERMINATE = re.compile(
    r"terminate called (?:after throwing an instance of '(?P<type>[^'\n]{1,300})'|(?P<other>.{1,100}))"
)
_WHAT = re.compile(r"\s{0,4}what\(\):\s{0,4}(?P<message>.*)$")
_NATIVE_FRAME = re.compile(
    r"frame #(?P<number>\d{1,4}): (?P<function>.{1,2000}?)(?: \+ 0x[0-9a-f]{1,16})? \(0x[0-9a-f]{1,16} in "
    r"(?P<file>[^)\n]{1,1000})\)"
)
_FATAL = re.compile(r"Fatal Python error: (?P<message>.{1,2000})$")
_THREAD = re.compile(
    r"(?P<current>Current thread|Thread) 0x[0-9a-f]{1,16}(?: \[[^\]]{0,60}\])? \(most recent call first\):"
)
_PYTHON_FRAME = re.compile(
    r'\s{1,8}File "(?P<file>[^"\n]{1,1000})", line (?P<line>\d{1,9}|\?\?\?)(?: in (?P<function>.{1,300}))?$'
)
_LIBRARY = re.compile(r"(?:site|dist)-packages/|/lib(?:64)?/python\d|/python3\.\d+/|^<frozen")
_RANK = re.compile(r"\bRank (\d{1,6})\]")
_LINES = 400
_FRAMES = 60
_OTHERS = 2000


class NativeCrashParser:
    """`terminate called after throwing ...` with its `what()`, and `Fatal Python error: ...` with its stack."""

    name = "native crash"
    triggers: tuple[str, ...] = (
        r"terminate called (?:after throwing|without an active|recursively)",
        r"Fatal Python error: ",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add one exception event; return the line after the block."""
        message = document.prefix(line).message
        thrown = _TERMINATE.search(message)
        fatal = _FATAL.search(message)
        if thrown:
            name = thrown["type"] or "std::terminate"
            text, frames, last = _thrown(document, line, thrown["other"] or "")
        elif fatal:
            name, text = "Fatal Python error", fatal["message"].strip()
            frames, last = _dumped(document, line)
        else:
            return line
        own = [frame for frame in frames if frame["line"] is not None and not _LIBRARY.search(frame["file"])]
        prefix = document.prefix(line)
        stated = _RANK.search(text)
        out.add(
            kind="exception",
            name=name,
            line=line,
            offset=document.offset(line),
            time=document.time(line),
            step=document.step(line),
            rank=int(stated[1]) if prefix.rank is None and stated else prefix.rank,
            host=prefix.host,
            phase=document.phase(line),
            severity="fatal",
            text=text,
            attrs={
                "type": name,
                "message": text,
                "frames": frames[-_FRAMES:],
                "chain": [],
                "worker": None,
                "user_frame": own[-1] if own else None,
                "native": True,
            },
        )
        return last + 1


def _thrown(document: Document, line: int, other: str) -> tuple[str, list[dict[str, Any]], int]:
    """The message of `what()` and the frames below it, outermost first; what other ranks print in between is passed."""
    rank = document.prefix(line).rank
    text: list[str] = [other] if other else []
    frames: list[dict[str, Any]] = []
    last = line
    for number in range(line + 1, min(len(document), line + _LINES) + 1):
        prefix = document.prefix(number)
        if prefix.rank != rank and not _NATIVE_FRAME.match(prefix.message):
            if prefix.rank is not None and not prefix.message.strip():
                break
            if number - last > 3:
                break
            if prefix.rank is not None and not _WHAT.match(prefix.message):
                continue
        what = _WHAT.match(prefix.message)
        frame = _NATIVE_FRAME.search(prefix.message)
        if what:
            text = [what["message"]]
        elif frame:
            frames.append({"file": frame["file"], "line": None, "function": frame["function"], "code": None})
        elif not prefix.message.strip() or not text or len(text) > 12 or "Fatal Python error" in prefix.message:
            break
        else:
            text.append(prefix.message.rstrip())
        last = number
    return "\n".join(text).strip(), frames[::-1], last


def _dumped(document: Document, line: int) -> tuple[list[dict[str, Any]], int]:
    """The Python stack of the thread that crashed, outermost first, and the last line of the dump."""
    stacks: list[tuple[bool, list[dict[str, Any]]]] = []
    last = line
    for number in range(line + 1, min(len(document), line + _OTHERS) + 1):
        message = document.prefix(number).message
        thread = _THREAD.search(message)
        frame = _PYTHON_FRAME.match(message)
        if thread:
            stacks.append((thread["current"] == "Current thread", []))
        elif frame and stacks:
            where = int(frame["line"]) if frame["line"].isdigit() else None
            stacks[-1][1].append({"file": frame["file"], "line": where, "function": frame["function"], "code": None})
        elif (
            message.strip()
            and not message.startswith(("Extension modules", "  ...", "  <no Python frame>", "Python runtime state"))
        ) or (not message.strip() and stacks and stacks[-1][0] and stacks[-1][1]):
            break
        last = number
    chosen = next((frames for current, frames in stacks if current), stacks[-1][1] if stacks else [])
    return chosen[::-1], last
