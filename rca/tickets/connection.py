"""One way to talk HTTP for all services: a time limit, patience with a server that asks for it, errors as sentences."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from rca.errors import TicketError
from rca.tickets.interface import Receipt

TIMEOUT_S = 20.0
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.2, 60
"""Seconds waited when a server answers 429 or 503 with Retry-After; one that asks for more gets no second try."""
_USUAL_WAIT_S = 2.0
_BUSY = (429, 503)


class Busy(TicketError):
    """The server asks for patience; nothing was done."""

    def __init__(self, message: str, *, wait_s: float) -> None:
        self.wait_s = wait_s
        super().__init__(message)


def patiently(send: Callable[[], Receipt], *, tries: int = 3) -> Receipt:
    """Send, and send again from the start where the server asks to wait: what it took before is replaced then."""
    try:
        return send()
    except Busy as busy:
        if tries <= 1 or busy.wait_s > _LONGEST_WAIT_S:
            raise
        wait = max(busy.wait_s, _SHORTEST_WAIT_S)
    time.sleep(wait)
    return patiently(send, tries=tries - 1)


@contextmanager
def told(service: str, where: str) -> Iterator[None]:
    """Turn what goes wrong on the way into a TicketError that says what to do."""
    import requests

    host = urlsplit(where).netloc.rpartition("@")[2] or where
    try:
        yield
    except requests.exceptions.SSLError as error:
        raise TicketError(
            f"{service} at {host} shows a certificate that is not trusted for this name; check the address, or name "
            f"the bundle of your organisation in REQUESTS_CA_BUNDLE"
        ) from error
    except requests.exceptions.Timeout as error:
        raise TicketError(f"{service} at {host} did not answer within {TIMEOUT_S:.0f} s; try again") from error
    except requests.exceptions.RequestException as error:
        raise TicketError(
            f"{service} at {host} cannot be reached ({type(error).__name__}); check the address"
        ) from error


def refused(
    service: str, status: int | None, *, what: str, said: str = "", headers: Mapping[str, str] | None = None
) -> TicketError:
    """Return the error for an answer that is none of success."""
    wait = (headers or {}).get("Retry-After") or (headers or {}).get("retry-after")
    reasons = {
        401: "does not accept the token; check that it is current",
        403: "does not let this token do that; it needs the right to comment and attach",
        404: f"does not know {what}, or this token may not see it",
        413: "takes no text or file of this size",
        429: f"asks to wait {wait or 'some'} seconds; try again then",
        503: "is not available now; try again later",
    }
    reason = reasons.get(status or 0, f"answered {status}" if status else "refused")
    detail = " ".join(said.split())[:200]
    message = f"{service} {reason}" + (f" ({detail})" if detail else "")
    if status in _BUSY:
        return Busy(message, wait_s=float(wait) if wait and wait.isdigit() else _USUAL_WAIT_S)
    return TicketError(message)
