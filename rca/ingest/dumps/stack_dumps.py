"""Stacks of living processes as events: one for each process, told by what its main thread does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rca.events import EventBuilder
from rca.ingest.blocks.stack_phase import stack_phase
from rca.ingest.dumps.stack_states import Doing, Frame, doing, innermost, role_of_process, user_frame

FRAMES_KEPT = 60
_OTHERS_KEPT = 12
_RANK_OPTION = re.compile(
    r"--?(?P<local>local[_-])?(?:global[_-])?rank[= ](?P<rank>\d{1,6})\b|\bRANK=(?P<plain>\d{1,6})\b"
)
_MAIN = re.compile(r"\bMainThread\b")
_SAYS = {
    "collective": "waits for the other ranks in {operation}",
    "rendezvous": "waits for the other ranks to join",
    "data_wait": "waits for the data loader",
    "data": "prepares data",
    "save": "saves a checkpoint",
    "load": "loads a checkpoint or a model",
    "compile": "compiles",
    "device": "waits for the device",
    "network": "waits for the network",
    "backward": "is in the backward pass",
    "optimizer": "is in the optimizer",
    "forward": "is in the forward pass",
    "import": "imports modules",
    "lock": "waits for a lock",
    "queue": "waits for another process",
    "process": "waits for a child process",
    "input": "waits for another process or the network",
    "interpreter lock": "waits for the interpreter lock",
    "idle": "has no work",
    "running": "runs",
}


@dataclass
class Thread:
    """One thread of a dump."""

    frames: list[dict[str, Any]] = field(default_factory=list)
    """Innermost first while it is read, as most tools print them."""
    name: str = ""
    number: str = ""
    status: str = ""
    """As the tool prints it: idle, active, active+gil."""
    current: bool = False
    """The tool says that this thread took the dump."""


@dataclass
class Dump:
    """The threads of one process at one time."""

    tool: str
    line: int | None = None
    pid: int | None = None
    command: str = ""
    rank: int | None = None
    threads: list[Thread] = field(default_factory=list)

    def thread(self, **known: Any) -> Thread:
        """Begin another thread."""
        self.threads.append(Thread(**known))
        return self.threads[-1]

    def main(self) -> Thread | None:
        """Return the main thread: named so, numbered like the process, or the one that began with a module."""
        filled = [thread for thread in self.threads if thread.frames]
        for thread in filled:
            if _MAIN.search(thread.name) or (self.pid is not None and thread.number == str(self.pid)):
                return thread
        for thread in filled:
            if any(frame["function"] == "<module>" for frame in thread.frames[-2:]):
                return thread
        return next((thread for thread in filled if thread.current), filled[-1] if filled else None)


def add_dump(
    out: EventBuilder,
    dump: Dump,
    *,
    offset: int | None = None,
    time: int | None = None,
    step: int | None = None,
    rank: int | None = None,
    host: str | None = None,
) -> bool:
    """Add `process.stack` for a process; return whether the dump held a stack."""
    main = dump.main()
    if main is None:
        return False
    frames = main.frames[::-1]
    found = doing(frames)
    role = role_of_process(frames, dump.command)
    own = user_frame(frames)
    attrs: dict[str, Any] = {
        "tool": dump.tool,
        "pid": dump.pid,
        "process": role,
        "state": found.state,
        "doing": _doing(found),
        "operation": found.operation,
        "waits_on": found.waits_on,
        "status": main.status or None,
        "threads": len(dump.threads),
        "others": _others(dump.threads, main),
        "frames": frames[-FRAMES_KEPT:],
        "user_frame": None if own is None else dict(own),
        "command": dump.command[:300] or None,
    }
    out.add(
        kind="process",
        name="process.stack",
        line=dump.line,
        offset=offset,
        time=time,
        step=step,
        rank=_stated_rank(dump) if rank is None and out.rank is None else rank,
        host=host,
        phase=stack_phase(frames, "DataLoader" if role == "data worker" else None),
        severity="info",
        text=_sentence(dump, role, found, innermost(frames), own),
        attrs={key: value for key, value in attrs.items() if value not in (None, [])},
    )
    return True


def _stated_rank(dump: Dump) -> int | None:
    """Return the rank that the locals or the command of a process name."""
    if dump.rank is not None:
        return dump.rank
    named = _RANK_OPTION.search(dump.command[:2000])
    return None if named is None or named["local"] else int(named["rank"] or named["plain"])


def _others(threads: Sequence[Thread], main: Thread) -> list[dict[str, str]]:
    """Return what the other threads do, those that tell something first."""
    told = []
    for thread in threads:
        if thread is main or not thread.frames:
            continue
        found = doing(thread.frames[::-1])
        leaf = innermost(thread.frames[::-1])
        told.append({
            "name": thread.name[:60] or thread.number,
            "state": found.state,
            "operation": found.operation or "",
            "at": _place(leaf),
        })  # fmt: skip
    told.sort(key=lambda item: item["state"] in {"running", "queue", "lock", "network", "idle"})
    return told[:_OTHERS_KEPT]


def _place(frame: Frame) -> str:
    where = str(frame["file"]).rsplit("/", 1)[-1]
    place = where if frame["line"] is None else f"{where}:{frame['line']}"
    return f"{str(frame['function'])[:120]} ({place})" if place else str(frame["function"])[:120]


def _doing(found: Doing) -> str:
    """What a process does, as the predicate of a sentence."""
    return _SAYS[found.state].format(operation=found.operation or "a collective")


def _sentence(dump: Dump, role: str, found: Doing, leaf: Frame, own: Frame | None) -> str:
    who = f"Process {dump.pid}" if dump.pid is not None else "The process"
    who += "" if role == "main" else f" ({role})"
    what = _doing(found)
    at = f", called from {_place(own)}" if own is not None and own is not leaf else ""
    return f"{who} {what} in {_place(leaf)}{at}."
