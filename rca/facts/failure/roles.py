"""What part one event plays in a failure: it began it, it followed from it, it cleaned up, or it means nothing."""

from __future__ import annotations

import re
from typing import Literal

from rca.events import Event

Role = Literal["initiating", "cascade", "teardown", "benign"]

_PEER_EXCEPTIONS = frozenset(
    {
        "DistBackendError",
        "DistNetworkError",
        "DistStoreError",
        "ChildFailedError",
        "ProcessExitedException",
        "BrokenPipeError",
        "ConnectionResetError",
        "ConnectionAbortedError",
        "CalledProcessError",
        "EngineDeadError",
        "AsyncEngineDeadError",
        "MQEngineDeadError",
        "ActorDiedError",
        "RayActorError",
        "RendezvousConnectionError",
        "RendezvousClosedError",
        "RendezvousGracefulExitError",
    }
)
"""Exceptions raised because another process is gone, or by a launcher that watches its children."""
_PEER_FILES = ("multiprocessing/connection.py", "multiprocessing/resource_sharer.py", "multiprocessing/managers.py")
"""Where Python waits for another process: an end of file there means that the process is gone."""
_STOP_EXCEPTIONS = frozenset({"SignalException", "KeyboardInterrupt", "CancelledError", "GeneratorExit"})
_HARMLESS = frozenset({"SystemExit", "StopAsyncIteration"})
_PEER_TEXT = re.compile(
    r"NCCL (?:error|communicator was aborted)|ncclRemoteError|ncclSystemError|ncclInternalError|ncclUnhandledCudaError"
    r"|Connection (?:reset|closed) by (?:remote )?peer|Broken pipe|TCPStore|Socket Timeout|recvValue failed"
    r"|\[[^\]]{0,200}gloo/transport|Watchdog caught collective|collective operation timeout"
    r"|Engine core initialization failed|engine core proc|Worker failed with error"
    r"|Rank \d+ (?:is|was) (?:dead|terminated)|(?:process|worker) \d+ terminated with (?:signal|exit code)"
    r"|died with <Signals|returned non-zero exit status"
    r"|device-side assert triggered|Timed out initializing process group|Application timeout caused pair closure"
)
"""Texts of exceptions that report somebody else's failure; none of them can begin one while a better one exists."""

LARGEST_RANK = 1_000_000
"""A larger capture is no rank."""
TERMINATED, ABORTED = {-15, 143, -2, 130}, {-6, 134}


def effective_role(event: Event) -> Role | None:
    """Return the part that the event plays on its own; None when it is no failure at all.

    Signature roles come from the knowledge files. A plain exit code is a cascade: something came before it.
    """
    if event.kind == "log":
        return _log_role(event)
    if event.kind == "exception":
        return _exception_role(event)
    if event.kind == "process":
        return _exit_role(event)
    return None


def _log_role(event: Event) -> Role | None:
    if event.name.startswith("inline.") or event.severity in {"debug", "info", "warning"}:
        return None
    return event.role if event.role in {"initiating", "cascade", "teardown"} else None  # type: ignore[return-value]


def _exception_role(event: Event) -> Role | None:
    if event.severity in {"debug", "info", "warning"}:
        return None
    kind = short_name(event.name)
    if kind.startswith("Fatal Python error"):
        return "cascade" if "Abort" in event.text else "initiating"
    if kind in _HARMLESS:
        return None
    if kind in _STOP_EXCEPTIONS:
        return "teardown"
    if kind in _PEER_EXCEPTIONS or _PEER_TEXT.search(event.text[:2000]):
        return "cascade"
    return "cascade" if kind == "EOFError" and _waits_for_process(event) else "initiating"


def _waits_for_process(event: Event) -> bool:
    return str(event.attr("raised_in") or "").replace("\\", "/").endswith(_PEER_FILES)


def _exit_role(event: Event) -> Role | None:
    if event.value is None or event.value == 0:
        return None
    code = int(event.value)
    if code in TERMINATED:
        return "teardown"
    if code in ABORTED:
        return "cascade"
    return "initiating" if is_signal(code) else "cascade"


def is_signal(code: int) -> bool:
    """Say whether an exit code means death by a signal: -n from Python, 128+n from a shell."""
    return code < 0 or 128 < code <= 128 + 64


def signal_number(code: int) -> int | None:
    """Return the signal number of an exit code, or None."""
    if not is_signal(code):
        return None
    return -code if code < 0 else code - 128


def short_name(name: str) -> str:
    """Return the last part of a dotted exception type."""
    return name.replace("::", ".").rsplit(".", 1)[-1]


def owner(event: Event) -> int | None:
    """Return the global rank that an event is about: its own, or one named in its captures."""
    if event.rank is not None:
        return event.rank
    named = event.attr("rank")
    known = isinstance(named, int) and not isinstance(named, bool) and 0 <= named < LARGEST_RANK
    return named if known else None
