"""Stacks that debuggers print of living processes: py-spy, faulthandler, pystack and gdb."""

from __future__ import annotations

import re
from typing import Any

from rca.events import EventBuilder
from rca.ingest.dumps.stack_dumps import Dump, Thread, add_dump
from rca.ingest.logs.document import Document

_LINES = 20_000
"""Lines of one dump: a thousand threads of twenty frames."""
_THREADS, _FRAMES = 1000, 400
_FRAME_CHARS = 4000
_FEW = 50
_GAP = 3
"""Lines of something else in a row after which a dump is over."""

_PROCESS = re.compile(r"Process (?P<pid>\d{1,10}): (?P<command>.{1,4000})$")
_SPY_THREAD = re.compile(
    r"Thread (?:(?P<number>\d{1,20})|(?P<address>0x[0-9A-Fa-f]{1,16})) \((?P<status>[a-z+]{1,20})\)"
    r"(?:: \"(?P<name>.{0,200})\")?$"
)
_SPY_RANK = re.compile(r" {12}(?:global_)?rank: (?P<rank>\d{1,6})$")
_FAULT_THREAD = re.compile(
    r"(?P<which>Current thread|Thread|Stack)(?: (?P<number>0x[0-9a-f]{1,16}))?(?: \[(?P<name>[^\]\n]{0,60})\])? "
    r"\(most recent call first\):"
)
_FAULT_FRAME = re.compile(
    r' {0,4}File "(?P<file>[^"\n]{1,1000})", line (?P<line>\d{1,9}|\?\?\?),? in (?P<function>\S.{0,300})$'
)
_STACK_THREAD = re.compile(
    r"Traceback for thread (?P<number>\d{1,10}) \((?P<name>[^)\n]{0,100})\) \[(?P<status>[^\]\n]{0,100})\] "
    r"\(most recent call (?P<order>last|first)\):"
)
_STACK_FRAME = re.compile(
    r' {4}\((?P<kind>Python|C)\) File "(?P<file>[^"\n]{0,1000})", line (?P<line>\d{1,9}), in '
    r"(?P<function>\S[^(\n]{0,600})"
)
_STACK_RANK = re.compile(r" {8}(?:global_)?rank: (?P<rank>\d{1,6})$")
_GDB_THREAD = re.compile(
    r"Thread (?P<order>\d{1,6}) \((?:Thread 0x[0-9a-f]{1,16} \()?LWP (?P<number>\d{1,10})\)(?P<name>.{0,80})\)?:?$"
)
_GDB_FRAME = re.compile(r"#(?P<order>\d{1,4}) {1,3}(?:0x[0-9a-f]{1,16} in )?(?=\S)")
_GDB_PYTHON = re.compile(
    r"#\d{1,4} {1,3}.{0,80}Frame 0x[0-9a-f]{1,16}, for file (?P<file>.{1,600}?), line (?P<line>\d{1,9}), "
    r"in (?P<function>[\w<>.]{1,200})"
)
_GDB_PROCESS = re.compile(r"\[Inferior \d{1,4} \(process (?P<pid>\d{1,10})\) (?:detached|killed)\]")
_FAULT_END = re.compile(
    r"Extension modules: |  Garbage-collecting|Current thread's C stack trace|  <|  \.\.\.$|  Binary file "
)


class StackDumpParser:
    """The stacks of all threads of one process; the event stands where the dump begins."""

    name = "stack dump"
    triggers: tuple[str, ...] = (
        r"^Process \d{1,10}: ",
        r"(?:Current thread|Thread) 0x[0-9a-f]+ (?:\[[^\]]*\] )?\(most recent call first\):",
        r"^Stack \(most recent call first\):",
        r"^Traceback for thread \d+ ",
        r"^Thread \d+ \((?:Thread 0x[0-9a-f]+ \()?LWP \d+\)",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add the process whose dump starts at `line`; return the line after it, or `line` where it is none."""
        first = document.prefix(line)
        message = first.message
        dump: Dump | None = None
        if _PROCESS.match(message):
            dump, last = _py_spy(document, line)
        elif _FAULT_THREAD.match(message):
            dump, last = _faulthandler(document, line)
        elif _STACK_THREAD.match(message):
            dump, last = _pystack(document, line)
        elif _GDB_THREAD.match(message):
            dump, last = _gdb(document, line)
        if dump is None:
            return line
        dump.line = line
        added = add_dump(
            out,
            dump,
            offset=document.offset(line),
            time=document.time(line),
            step=document.step(line),
            rank=first.rank,
            host=first.host,
        )
        if not added:
            # Headings without a frame are no dump; many of them are passed over, or each would be searched again.
            return line if last - line < _FEW else last + 1
        document.silent.update(range(line, last + 1))
        return last + 1


def _py_spy(document: Document, line: int) -> tuple[Dump | None, int]:
    head = _PROCESS.match(document.prefix(line).message)
    dump = Dump("py-spy", pid=int(head["pid"]), command=head["command"]) if head else Dump("py-spy")
    thread: Thread | None = None
    last = line
    for number in range(line + 1, min(len(document), line + _LINES) + 1):
        text = document.raw(number)
        if _PROCESS.match(text):
            break
        begins = _SPY_THREAD.match(text)
        if begins:
            if len(dump.threads) >= _THREADS:
                break
            thread = dump.thread(
                name=begins["name"] or "", number=begins["number"] or begins["address"], status=begins["status"]
            )
        elif thread is not None and (called := _spy_frame(text)):
            _take(thread, *called)
        elif thread is not None and text.startswith(" " * 8):
            named = _SPY_RANK.match(text)
            dump.rank = int(named["rank"]) if named and dump.rank is None else dump.rank
        elif text.strip() and not text.startswith(("Python v", "Parent Process ")):
            break
        last = number
    return (dump if dump.threads else None), last


def _faulthandler(document: Document, line: int) -> tuple[Dump, int]:
    """Threads that follow each other; a thread that comes again belongs to the next dump."""
    dump = Dump("faulthandler")
    thread: Thread | None = None
    seen: set[str] = set()
    last = line
    for number in range(line, min(len(document), line + _LINES) + 1):
        message = document.prefix(number).message
        begins = _FAULT_THREAD.match(message)
        if begins:
            order = begins["number"] or ""
            if order in seen or len(seen) >= _THREADS:
                break
            seen.add(order)
            thread = dump.thread(name=begins["name"] or "", number=order, current=begins["which"] == "Current thread")
        elif thread is not None and (frame := _FAULT_FRAME.match(message)):
            _take(thread, frame["file"], frame["line"], frame["function"])
        elif message.strip() and not _FAULT_END.match(message):
            break
        last = number
    return dump, last


def _pystack(document: Document, line: int) -> tuple[Dump, int]:
    dump = Dump("pystack")
    thread: Thread | None = None
    newest_last: list[Thread] = []
    last = line
    for number in range(line, min(len(document), line + _LINES) + 1):
        text = document.raw(number)
        begins = _STACK_THREAD.match(text)
        if begins:
            if len(dump.threads) >= _THREADS or any(known.number == begins["number"] for known in dump.threads):
                break
            thread = dump.thread(name=begins["name"], number=begins["number"], status=begins["status"])
            if begins["order"] == "last":
                newest_last.append(thread)
        elif thread is not None and (frame := _STACK_FRAME.match(text)):
            # A C function is told by its name; the sources of the interpreter are nobody's program.
            _take(
                thread, frame["file"], frame["line"] if frame["kind"] == "Python" else None, frame["function"].rstrip()
            )
        elif named := _STACK_RANK.match(text):
            dump.rank = int(named["rank"]) if dump.rank is None else dump.rank
        elif text.strip() and not text.startswith("      "):
            break
        last = number
    for item in newest_last:
        item.frames.reverse()
    return dump, last


def _gdb(document: Document, line: int) -> tuple[Dump, int]:
    """`thread apply all bt`; thread 1 is the main thread and carries the number of the process."""
    dump = Dump("gdb")
    thread: Thread | None = None
    seen: set[str] = set()
    last = line
    other = 0
    for number in range(line, min(len(document), line + _LINES) + 1):
        text = document.raw(number)
        begins = _GDB_THREAD.match(text)
        if begins:
            if begins["order"] in seen or len(seen) >= _THREADS:
                break
            seen.add(begins["order"])
            main = begins["order"] == "1"
            thread = dump.thread(name="MainThread" if main else begins["name"].strip(' "):'), number=begins["number"])
            dump.pid = int(begins["number"]) if main else dump.pid
        elif thread is not None and (python := _GDB_PYTHON.match(text)):
            _take(thread, python["file"], python["line"], python["function"])
        elif thread is not None and (frame := _GDB_FRAME.match(text)):
            _take(thread, *_gdb_frame(text[frame.end() : frame.end() + _FRAME_CHARS]))
        elif ended := _GDB_PROCESS.match(text):
            dump.pid = int(ended["pid"])
            return dump, number
        elif text.strip():
            other += 1
            if other > _GAP:
                break
            continue
        other = 0
        last = number
    return dump, last


def _spy_frame(text: str) -> tuple[str, str | None, str] | None:
    """Take `    function (file:line)` apart; of compiled code there is only the library."""
    if not text.startswith("    ") or text[4:5].isspace() or not text.endswith(")"):
        return None
    function, bracket, place = text[4:-1].rpartition(" (")
    if not bracket or not place:
        return None
    file, colon, line = place.rpartition(":")
    return (file, line, function) if colon and line.isdecimal() else (place, None, function)


def _gdb_frame(text: str) -> tuple[str, str | None, str]:
    """Take `function (arguments) at file:line` or `... from library` apart; lines of compiled code say little."""
    function, _bracket, rest = text.partition(" (")
    _args, found, place = rest.rpartition(" from ") if " from " in rest else rest.rpartition(" at ")
    return (place.rpartition(":")[0] or place if found else ""), None, function


def _take(thread: Thread, file: str, line: str | None, function: str) -> None:
    if len(thread.frames) < _FRAMES:
        number = int(line) if line is not None and line.isdigit() else None
        frame: dict[str, Any] = {"file": file[:300], "line": number, "function": function[:300], "code": None}
        thread.frames.append(frame)
