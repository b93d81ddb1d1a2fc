"""Python tracebacks: chained, grouped, wrapped by workers, prefixed, interleaved between ranks, cut off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rca.events import EventBuilder
from rca.ingest.document import Document

_HEADER = re.compile(r"(?:Original |Exception Group )?Traceback \(most recent call last\):?\s*$")
_FRAME = re.compile(r'\s*File "(?P<file>[^"\n]{1,1000})", line (?P<line>\d{1,9})(?:, in (?P<function>.{1,300}))?\s*$')
_EXCEPTION = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w{0,100}\.){1,12}\w{1,100}|"
    r"[A-Z]\w{1,100})(?P<cause>\([\w.]{1,100}\))?(?:: ?(?P<message>.*))?\s*$",
)
_CAUGHT = re.compile(r"Caught (?P<type>[\w.]+) (?P<where>in .{1,200}?)\.?$")
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_SPAWN = re.compile(r"-- Process (\d+) terminated with the following error:")
_MARKER = re.compile(r"\s*[~^]+\s*$|\s*\.\.\.<\d+ lines>\.\.\.$|\s*\[Previous line repeated \d+ more times?\]$")
_GROUP_RULE = re.compile(r"\s*\+-[+-]*(?: \d+ -+)?$")
_PIPE = re.compile(r"\s*[|+] ?")
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
_FOREIGN_LINES = 2000
"""Lines of other ranks that may stand between two lines of one traceback."""
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
    triggers: tuple[str, ...] = (r"Traceback \(most recent call last\)",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add one exception event for the chain that starts at `line`; return the line after it."""
        stream = _Stream(document, line)
        chain = _read_chain(stream)
        last = chain[-1]
        prefix = document.prefix(line)
        frames = _kept(last.frames)
        own = [frame for frame in last.frames if not _LIBRARY.search(frame["file"])]
        if not own:
            own = [frame for raised in reversed(chain) for frame in raised.frames if not _LIBRARY.search(frame["file"])]
        at = document.time(last.line)
        out.add(
            kind="exception",
            name=last.type or "truncated traceback",
            line=last.line,
            offset=document.offset(last.line),
            time=at,
            step=document.step(line),
            rank=prefix.rank,
            host=prefix.host,
            phase=_phase(chain) or document.phase(line),
            severity="error",
            text=last.message,
            attrs={
                "frames": frames,
                "type": last.type,
                "message": last.message,
                "chain": [{"type": item.type, "message": item.message} for item in chain[:-1]],
                "worker": last.worker,
                "user_frame": own[-1] if own else None,
                "truncated": True if last.type is None else None,
            },
        )
        return stream.close()


class _Stream:
    """The lines of one process among interleaved ones, from a line on."""

    def __init__(self, document: Document, line: int) -> None:
        self._document = document
        self._first = line
        self._tag = _tag(document, line)
        self._piped = _PIPE.match(document.prefix(line).message) is not None
        self._taken = [line]
        self._indent = 0
        self._ahead: list[tuple[int, str]] = []
        self._lines = self._walk(line + 1)

    def _walk(self, line: int) -> Iterator[tuple[int, str]]:
        skipped = 0
        for number in range(line, len(self._document) + 1):
            if number in self._document.claimed:
                continue
            if _tag(self._document, number) != self._tag:
                skipped += 1
                if skipped > _FOREIGN_LINES:
                    return
                continue
            skipped = 0
            yield number, self._document.prefix(number).message

    def indented(self, width: int) -> None:
        """Take a traceback that stands indented as if it began at the margin."""
        if width > self._indent:
            self._ahead = [(number, message[width:]) for number, message in self._ahead]
            self._indent = width

    def peek(self, ahead: int = 0) -> tuple[int, str] | None:
        """Return a coming line of the process, or None at the end."""
        while len(self._ahead) <= ahead:
            item = next(self._lines, None)
            if item is None:
                return None
            number, message = item
            if self._piped and not _GROUP_RULE.match(message):
                bar = _PIPE.match(message)
                message = message[bar.end() :] if bar else message
            if self._indent and message[: self._indent].isspace():
                message = message[self._indent :]
            self._ahead.append((number, message))
        return self._ahead[ahead]

    @property
    def last(self) -> int:
        """The line used up last."""
        return self._taken[-1]

    def take(self, count: int = 1) -> None:
        """Use up lines."""
        for number, _ in self._ahead[:count]:
            self._taken.append(number)
        del self._ahead[:count]

    def skip(self, count: int) -> None:
        """Pass over lines that are not of this block."""
        del self._ahead[:count]

    def prefixed(self, line: int) -> bool:
        """Whether a line carries a time or level of its own while the first line had none."""
        first, this = self._document.prefix(self._first), self._document.prefix(line)
        return first.time is None and first.level is None and (this.time is not None or this.level is not None)

    def silence(self) -> None:
        """Declare the lines taken so far source code and file names, not messages."""
        self._document.silent.update(self._taken)

    def close(self) -> int:
        """Return the line after the block; lines of others in between stay open to other parsers."""
        last = self._taken[-1]
        if last - self._first + 1 == len(self._taken):
            return last + 1
        self._document.claimed.update(self._taken)
        return self._first + 1


def _tag(document: Document, line: int) -> tuple[int | None, str | None]:
    prefix = document.prefix(line)
    return prefix.rank, prefix.host


def _read_chain(stream: _Stream) -> list[_Raised]:
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


def _read_one(stream: _Stream) -> _Raised:
    """Read frames, then the line that names the exception, then the rest of its message."""
    item = stream.peek()
    raised = _Raised(line=stream.last)
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
        elif _EXCEPTION.match(message) or not _resume(stream):
            break
        item = stream.peek()
    stream.silence()
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


def _resume(stream: _Stream) -> bool:
    """Skip lines that another process wrote into the traceback without a tag; False when it does not go on."""
    for ahead in range(1, _INTRUSION + 1):
        item = stream.peek(ahead)
        if item is None or not item[1].strip() or _HEADER.search(item[1]):
            return False
        if _FRAME.match(item[1]) or (_EXCEPTION.match(item[1]) and "Error" in item[1]):
            stream.skip(ahead)
            return True
    return False


def _rest_of_message(stream: _Stream, lines: list[str]) -> None:
    loose = 0
    while len(lines) < _MESSAGE_LINES:
        item = stream.peek()
        if item is None:
            return
        number, message = item
        if not message.strip() or stream.prefixed(number) or message.strip() == '"""' or _GROUP_RULE.match(message):
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


def _next_is(stream: _Stream, pattern: re.Pattern[str]) -> bool:
    item = stream.peek()
    return item is not None and pattern.search(item[1]) is not None


def _blank_ahead(stream: _Stream) -> list[int]:
    blank = []
    for ahead in range(3):
        item = stream.peek(ahead)
        if item is None or (item[1].strip() and item[1].strip() != '"""'):
            break
        blank.append(item[0])
    return blank


def _spawned(stream: _Stream) -> str | None:
    blank = len(_blank_ahead(stream))
    item = stream.peek(blank)
    found = None if item is None else _SPAWN.match(item[1])
    if found is None:
        return None
    stream.take(blank + 1)
    return found[1]


def _chained(stream: _Stream) -> bool:
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


_PHASES = (
    ("data", re.compile(r"torch/utils/data/|/datasets/|collat", re.I)),
    ("save", re.compile(r"save_checkpoint|save_pretrained|torch/serialization.py.*save|_save$", re.I)),
    ("eval", re.compile(r"evaluat|validat|prediction_(?:loop|step)|test_step", re.I)),
    ("load", re.compile(r"from_pretrained|load_state_dict|load_checkpoint|load_model|safe_open", re.I)),
    ("inference", re.compile(r"\bgenerate\b|/vllm/|execute_model|predict\b", re.I)),
    ("train", re.compile(r"training_step|backward|optimizer|train_one_epoch|_inner_training_loop|train_epoch", re.I)),
)


def _phase(chain: list[_Raised]) -> str | None:
    """The phase that the functions on the stack name, innermost tell-tale first."""
    if any((item.worker or "").startswith("DataLoader") for item in chain):
        return "data"
    for frame in reversed(chain[-1].frames):
        place = f"{frame['file']} {frame['function']}"
        for phase, pattern in _PHASES:
            if phase != "data" and pattern.search(place):
                return phase
    return None
