"""How processes ended, as shells, launchers, schedulers and containers say it in one line."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rca.events import EventBuilder
from rca.ingest.logs.document import Document
from rca.ingest.machine.exit_codes import signal_of, signed

_WORDS = {
    "killed": signal.SIGKILL,
    "aborted": signal.SIGABRT,
    "segmentation fault": signal.SIGSEGV,
    "bus error": signal.SIGBUS,
    "terminated": signal.SIGTERM,
    "illegal instruction": signal.SIGILL,
    "floating point exception": signal.SIGFPE,
    "hangup": signal.SIGHUP,
    "interrupt": signal.SIGINT,
}
_WORD = r"(?P<word>Killed|Aborted|Segmentation fault|Bus error|Terminated|Illegal instruction|Floating point exception)"
_SRUN = re.compile(
    r"srun: error: (?P<host>[\w.-]{1,80}): tasks? (?P<tasks>[\d,\-]{1,400}): (?:Exited with exit code "
    r"(?P<code>\d{1,3})|" + _WORD + r"|(?P<oom>Out Of Memory))"
)
_SHELL = re.compile(
    r"(?:\S{1,200}: line \d{1,6}:\s{1,4}(?P<pid>\d{1,8})\s|\[\d{1,4}\]\+?\s{1,4}(?:\d{1,8}\s)?)?\s{0,4}"
    + _WORD
    + r"(?: {1,4}\(core dumped\))?(?P<rest>\s.*)?$"
)
_ELASTIC = re.compile(
    r"failed \(exitcode: (?P<code>-?\d{1,5})\) (?:local_rank: (?P<local>\d{1,5}) )?\(pid: (?P<pid>\d{1,8})\)"
)
_MPI = re.compile(
    r"process rank (?P<rank>\d{1,6}) with PID (?P<pid>\d{1,8}) on node (?P<host>\S{1,80}) exited on signal "
    r"(?P<signal>\d{1,2})"
)
_OPENMPI = re.compile(
    r"\*\*\*.*|\[(?P<host>[\w.-]{1,80}):(?P<pid>\d{1,8})\] Signal: [A-Za-z ]{1,40} \((?P<signal>\d{1,2})\)"
)
_SLURM = re.compile(
    r"(?:^|[\s|])(?P<state>FAILED|OUT_OF_ME(?:MORY|\+)|TIMEOUT|CANCELLED(?: by \d+|\+)?|NODE_FAIL|PREEMPTED|"
    r"COMPLETED|BOOT_FAIL|DEADLINE)"
    r"[\s|]{1,40}(?P<code>\d{1,3}):(?P<signal>\d{1,3})(?:[\s|]|$)"
)
_SCONTROL = re.compile(r"\bExitCode=(?P<code>\d{1,3}):(?P<signal>\d{1,3})")
_CODE = re.compile(
    r"(?:exit(?:s|ed|ing)?|ended|finished|terminated|failed|stopped|died|quit|returned|complete[sd]?)\b[^\n]{0,60}?"
    r"\b(?:code|status)\b[ =:]{0,12}(?P<code>-?\d{1,5})(?![\d.])|"
    r"\b[Ee]xit[ _]?[Cc]ode[ =:]{1,12}(?P<plain>-?\d{1,5})(?![\d.])",
    re.I,
)
_BY_SIGNAL = re.compile(
    r"(?:exited|terminated|killed|died)\b.{0,20}\b(?:on|by|due to|with) signal[: ]{1,3}(?P<signal>\d{1,2})\b", re.I
)
_WORKER_PID = re.compile(r"\bpid[ :=]{1,3}(\d{1,8})", re.I)
_LOCAL_RANK = re.compile(r"--local[_-]rank[= ](\d{1,5})")
_NOT_MINE = re.compile(r"DataLoader worker|^\s*exitcode\s|HTTP/|status code|error_code|\b(?:GET|POST|PUT) ")
_MOST_TASKS = 256


class _Exit(NamedTuple):
    code: int
    host: str | None = None
    rank: int | None = None
    attrs: dict[str, Any] | None = None


class ExitParser:
    """One line that says how a process ended."""

    name = "exit"
    triggers: tuple[str, ...] = (
        r"srun: error: \S+: tasks? [\d,\-]+: ",
        r"(?:Killed|Aborted|Segmentation fault|Bus error|Terminated|Illegal instruction|"
        r"Floating point exception)(?: +\(core dumped\))?\s*$",
        r": line \d+: +\d+ (?:Killed|Aborted|Segmentation fault|Bus error|Terminated|Illegal instruction|"
        r"Floating point exception)",
        r"failed \(exitcode: -?\d+\)",
        r"exited on signal \d+|Signal: [A-Za-z ]+ \(\d+\)",
        r"(?:FAILED|OUT_OF_ME\S+|TIMEOUT|CANCELLED\S*|NODE_FAIL|PREEMPTED|COMPLETED)[\s|]+\d+:\d+",
        r"ExitCode=\d+:\d+",
        r"(?i)\bexit\w*\b.{0,60}\b(?:code|status)\b[ =:]{0,12}-?\d",
        r"(?i)(?:finished|terminated|failed|stopped|died|quit|returned|completed?)\b.{0,60}\b(?:exit|"
        r"return) ?(?:code|status)[ =:]{0,12}-?\d",
        r"(?i)(?:terminated|killed|died) (?:by|due to|with) signal",
        r"# Ended \(code \d{1,3}\)",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add the exits that the line tells; return the line after it, or `line` where it tells none."""
        prefix = document.prefix(line)
        found = [item for item in _exits(prefix.message) if -128 <= item.code <= 65_535]
        for item in found:
            code = signed(item.code)
            local = (item.attrs or {}).get("local_rank")
            rank = item.rank if local is None else document.first_local_rank() + local
            attrs = {"exit_code": item.code, "signal": signal_of(item.code), **(item.attrs or {})}
            out.add(
                kind="process",
                name="process.exit",
                line=line,
                offset=document.offset(line),
                time=document.time(line),
                step=document.step(line),
                rank=prefix.rank if rank is None else rank,
                host=item.host or prefix.host,
                phase="teardown" if code == 0 else document.phase(line),
                value=float(code),
                severity="info" if code == 0 else "error",
                text=document.raw(line),
                attrs={key: value for key, value in attrs.items() if value is not None},
            )
        return line + 1 if found else line


def _exits(message: str) -> Iterator[_Exit]:
    text = message[:2000]
    for read in _READERS:
        found = list(read(text))
        if found:
            yield from found
            return


def _srun(text: str) -> Iterator[_Exit]:
    found = _SRUN.search(text)
    if found is None:
        return
    code = int(found["code"]) if found["code"] else -(signal.SIGKILL if found["oom"] else _WORDS[found["word"].lower()])
    tasks = _tasks(found["tasks"])
    extra = {"reason": "out of memory"} if found["oom"] else {}
    for task in tasks:
        yield _Exit(code, found["host"], None, {"task": task, "from": "srun", **extra})


def _tasks(text: str) -> list[int]:
    tasks: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            tasks.extend(range(int(first), min(int(last or first), int(first) + _MOST_TASKS) + 1))
    return tasks[:_MOST_TASKS]


def _shell(text: str) -> Iterator[_Exit]:
    found = _SHELL.match(text)
    if found is None or ((found["rest"] or "").strip() and not found["pid"]):
        return
    pid = int(found["pid"]) if found["pid"] else None
    yield _Exit(-_WORDS[found["word"].lower()], attrs={"pid": pid, "from": "shell"})


def _elastic(text: str) -> Iterator[_Exit]:
    found = _ELASTIC.search(text)
    if found:
        local = int(found["local"]) if found["local"] else None
        yield _Exit(int(found["code"]), attrs={"pid": int(found["pid"]), "local_rank": local, "from": "torchelastic"})


def _mpi(text: str) -> Iterator[_Exit]:
    found = _MPI.search(text)
    if found:
        attrs = {"pid": int(found["pid"]), "from": "mpirun"}
        yield _Exit(-int(found["signal"]), found["host"], int(found["rank"]), attrs)
        return
    signalled = _OPENMPI.search(text)
    if signalled and signalled["signal"]:
        yield _Exit(
            -int(signalled["signal"]), signalled["host"], None, {"pid": int(signalled["pid"]), "from": "openmpi"}
        )


def _slurm(text: str) -> Iterator[_Exit]:
    found = _SLURM.search(text)
    state = found["state"] if found else None
    found = found or _SCONTROL.search(text)
    if found:
        number = int(found["signal"])
        # Slurm writes 125 in the place of the signal where its out-of-memory handler ended the step.
        code = -signal.SIGKILL if number == 125 else -number if number else int(found["code"])
        yield _Exit(code, attrs={"state": state, "from": "slurm"})


def _coded(text: str) -> Iterator[_Exit]:
    by_signal = _BY_SIGNAL.search(text)
    if _NOT_MINE.search(text):
        return
    pid = _WORKER_PID.search(text)
    local = _LOCAL_RANK.search(text)
    attrs: dict[str, Any] = {"pid": int(pid[1]) if pid else None, "local_rank": int(local[1]) if local else None}
    if by_signal:
        yield _Exit(-int(by_signal["signal"]), attrs=attrs)
        return
    found = _CODE.search(text)
    if found:
        yield _Exit(int(found["code"] or found["plain"]), attrs=attrs)


_READERS: tuple[Callable[[str], Iterator[_Exit]], ...] = (_srun, _elastic, _mpi, _slurm, _shell, _coded)
