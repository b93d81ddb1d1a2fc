"""Python tracebacks: chained, grouped, wrapped by workers, prefixed, interleaved between ranks, cut off."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from rca.events import EventBuilder
from rca.ingest.blocks.rank_stream import GROUP_RULE, RankStream
from rca.ingest.blocks.stack_phase import stack_phase
from rca.ingest.logs.document import Document

_HEADER = re.compile(r"(?:Original |Exception Group )?Traceback \(most recent call last\):?\s*$")
_FRAME = re.compile(
    r'(?:> )?\s*File "(?P<file>[^"\n]{1,1000})", line (?P<line>\d{1,9})(?:, in (?P<function>.{1,300}))?\s*$'
)
_EXCEPTION = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w{0,100}\.){1,12}\w{1,100}|"
    r"[A-Z]\w{1,100})(?P<cause>\([\w.]{1,100}\))?(?:: ?(?P<message>.*))?\s*$",
)
_CAUGHT = re.compile(r"Caught (?P<type>[\w.]+) (?P<where>in .{1,200}?)\.?$")
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_UNHARMED = ("Exception ignored in", "--- Logging error ---")
"""What Python prints above a traceback of an exception that it swallowed: the program went on."""
_SPAWN = re.compile(r"-- Process (\d+) terminated with the following error:")
_MARKER = re.compile(r"\s*[~^]+\s*$|\s*\.\.\.<\d+ lines>\.\.\.$|\s*\[Previous line repeated \d+ more times?\]$")
_NEW_TOPIC = re.compile(
    r"Traceback|\s*\d{1,3}%\||\{'|srun: |slurmstepd: |wandb: |\[|={4,}|-{4,}|\*{4,}|Epoch|step |iter|Killed$|"
    r"terminate called|Fatal Python error|Exception in |==> |\+ |Loading |Root Cause|frame #\d+|INFO|WARNING|ERROR"
)
_BAR = re.compile(r"\s*\d{1,3}%\|")
_LIBRARY = re.compile(r"(?:site|dist)-packages/|/lib(?:64)?/python\d|^<frozen|^<string>|/python3\.\d+/|\.pyx$")
_FRAME_INDENT = 2
"""Blanks in front of a frame at the margin."""
_MESSAGE_LINES = 60
_LOOSE_LINES = 10
"""Lines of a message that are not indented: CUDA, NCCL and inductor errors have up to seven."""
_INTRUSION = 4
"""Lines of others without a tag that may stand inside a traceback."""
_FRAMES = (20, 40)
"""Frames kept from the outer and the inner end."""


@dataclass
class _Raised:
    """One exception of a chain while it is read."""

    line: int
    frames: list[dict[str, Any]] = field(default_factory=list)
    type: str | None = None
    message: str = ""
    worker: str | None = None


class TracebackParser:
    """Python tracebacks; the event stands at the line that names the exception that ended the chain."""

    name = "traceback"
    triggers: tuple[str, ...] = (r"Traceback \(most recent call last\)", r"^ray::\S.{0,300}\(pid=\d+")

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add one exception event for the chain that starts at `line`; return the line after it."""
        stream = RankStream(document, line)
        if not _is_header(document, line) and not _next_is(stream, _FRAME):
            return line
        chain = _read_chain(stream)
        last = chain[-1]
        prefix = document.prefix(line)
        frames = _kept(last.frames)
        own = [frame for frame in last.frames if not _LIBRARY.search(frame["file"])]
        if not own:
            own = [frame for raised in reversed(chain) for frame in raised.frames if not _LIBRARY.search(frame["file"])]
        at = document.time(last.line)
        swallowed = line > 1 and document.prefix(line - 1).message.startswith(_UNHARMED)
        out.add(
            kind="exception",
            name=last.type or "truncated traceback",
            line=last.line,
            offset=document.offset(last.line),
            time=at,
            step=document.step(line),
            rank=prefix.rank,
            host=prefix.host,
            phase=stack_phase(last.frames, next((item.worker for item in chain if item.worker), None))
            or document.phase(line),
            severity="warning" if swallowed else "error",
            role="benign" if swallowed else None,
            text=last.message,
            attrs={
                "frames": frames,
                "type": last.type,
                "message": last.message,
                "chain": [
                    {"type": item.type, "message": item.message, "line": item.line, "frames": _kept(item.frames)}
                    for item in chain[:-1]
                ],
                "worker": last.worker,
                "user_frame": own[-1] if own else None,
                "raised_in": last.frames[-1]["file"] if last.frames else None,
                "truncated": True if last.type is None else None,
            },
        )
        return stream.close()


def _is_header(document: Document, line: int) -> bool:
    """Say whether Python's own heading stands there; Ray puts the name of the task in its place."""
    return "Traceback (most recent call last)" in document.raw(line)


def _read_chain(stream: RankStream) -> list[_Raised]:
    chain: list[_Raised] = []
    while True:
        raised = _read_one(stream)
        chain.append(raised)
        if raised.type is None:
            return chain
        caught = _CAUGHT.match(raised.message.split("\n")[0])
        if caught and _next_is(stream, _HEADER):
            worker = caught["where"].removeprefix("in ")
            inner = _read_one(stream)
            inner.worker = worker
            inner.type = inner.type or caught["type"]
            chain.append(inner)
        elif (spawned := _spawned(stream)) is not None:
            inner = _read_one(stream)
            inner.worker = f"process {spawned}"
            chain.append(inner)
        elif (item := stream.peek()) is not None and _FRAME.match(item[1]):
            inner = _read_one(stream)
            inner.worker = "remote task"
            chain.append(inner)
        if not _chained(stream):
            return chain


def _read_one(stream: RankStream) -> _Raised:
    """Read frames, then the line that names the exception, then the rest of its message."""
    item = stream.peek()
    raised = _Raised(line=stream.last)
    before = stream.used
    while item is not None:
        message = item[1]
        frame = _FRAME.match(message)
        if frame:
            if not raised.frames:
                stream.indented(len(message) - len(message.lstrip()) - _FRAME_INDENT)
            raised.frames.append(
                {"file": frame["file"], "line": int(frame["line"]), "function": frame["function"], "code": None}
            )
            stream.take()
        elif message[:1].isspace() or _MARKER.match(message) or _HEADER.search(message):
            if raised.frames and raised.frames[-1]["code"] is None and not _MARKER.match(message):
                raised.frames[-1]["code"] = message.strip()[:500]
            stream.take()
        elif not message.strip() and _goes_on(stream):
            stream.take()
        elif _EXCEPTION.match(message) or not _resume(stream):
            break
        item = stream.peek()
    stream.silence(before)
    found = None if item is None else _EXCEPTION.match(item[1])
    if item is None or found is None:
        return raised
    raised.line = item[0]
    raised.type = found["type"]
    lines = [found["message"] or ""]
    stream.take()
    _rest_of_message(stream, lines)
    raised.message = "\n".join(lines).strip()[:4096]
    return raised


def _goes_on(stream: RankStream, ahead: int = 0) -> bool:
    """Say whether a frame or the exception follows an empty line, as in the tracebacks of loguru."""
    item = stream.peek(ahead + 1)
    return item is not None and (_FRAME.match(item[1]) is not None or _EXCEPTION.match(item[1]) is not None)


def _resume(stream: RankStream) -> bool:
    """Skip lines that another process wrote into the traceback without a tag; False when it does not go on."""
    for ahead in range(1, _INTRUSION + 1):
        item = stream.peek(ahead)
        if item is None or _HEADER.search(item[1]) or (not item[1].strip() and not _goes_on(stream, ahead)):
            return False
        if _FRAME.match(item[1]) or (_EXCEPTION.match(item[1]) and "Error" in item[1]):
            stream.skip(ahead)
            return True
    return False


def _rest_of_message(stream: RankStream, lines: list[str]) -> None:
    loose = 0
    while len(lines) < _MESSAGE_LINES:
        item = stream.peek()
        if item is None:
            return
        number, message = item
        if not message.strip() or stream.prefixed(number) or message.strip() == '"""' or GROUP_RULE.match(message):
            return
        if _FRAME.match(message) or _HEADER.search(message) or message.startswith(("Original Traceback", "-- Process")):
            return
        if message[:1].isspace():
            after = stream.peek(1)
            if _BAR.match(message) or (after is not None and _FRAME.match(after[1])):
                return
        else:
            loose += 1
            if loose > _LOOSE_LINES or _NEW_TOPIC.match(message):
                return
        lines.append(message.rstrip())
        stream.take()


def _next_is(stream: RankStream, pattern: re.Pattern[str]) -> bool:
    item = stream.peek()
    return item is not None and pattern.search(item[1]) is not None


def _blank_ahead(stream: RankStream) -> list[int]:
    blank = []
    for ahead in range(3):
        item = stream.peek(ahead)
        if item is None or (item[1].strip() and item[1].strip() != '"""'):
            break
        blank.append(item[0])
    return blank


def _spawned(stream: RankStream) -> str | None:
    blank = len(_blank_ahead(stream))
    item = stream.peek(blank)
    found = None if item is None else _SPAWN.match(item[1])
    if found is None:
        return None
    stream.take(blank + 1)
    return found[1]


def _chained(stream: RankStream) -> bool:
    """Use up the sentence that links two tracebacks and the header of the next, if they follow."""
    blank = len(_blank_ahead(stream))
    item = stream.peek(blank)
    if item is None or not item[1].lstrip().startswith(_CHAIN):
        return False
    for ahead in range(blank + 1, blank + 6):
        item = stream.peek(ahead)
        if item is None:
            return False
        if _HEADER.search(item[1]):
            stream.take(ahead + 1)
            return True
    return False


def _kept(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    outer, inner = _FRAMES
    return frames if len(frames) <= outer + inner else [*frames[:outer], *frames[-inner:]]
