"""Mail and chat, through apprise: what is sent there cannot be changed any more, so every report is a new message."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parseaddr
from pathlib import Path
from urllib.parse import quote, urlsplit

from rca.errors import TicketError, UsageError
from rca.tickets.credentials import first_set, secret
from rca.tickets.interface import Attachment, Letter, Plan, Receipt
from rca.tickets.letter import fitted, size

_MAIL_LIMIT = 10_000_000
"""Bytes of an attachment in a mail; many servers refuse messages above 10 to 25 MB."""
_AGAIN = "A message cannot be replaced: another report on the same run is another message."


class Mail:
    """One mail with the summary and the page."""

    def __init__(self, address: str) -> None:
        self._address = parseaddr(address)[1] or address

    def plan(self, letter: Letter) -> Plan:
        """The mail."""
        body = f"Subject: {letter.subject}\n\n{letter.markdown}"
        return Plan(self._address, body, fitted(letter.page, _MAIL_LIMIT), notes=(_AGAIN,))

    def send(self, letter: Letter) -> Receipt:
        """Send it through the server in RCA_SMTP_URL."""
        server = first_set(("RCA_SMTP_URL",))
        if server is None:
            raise UsageError("the mail server is missing; set RCA_SMTP_URL, for instance smtp+starttls://me@host:587")
        _notify(
            _mail_url(server, self._address),
            letter,
            attachment=fitted(letter.page, _MAIL_LIMIT),
            what="The mail server",
        )
        return Receipt(self._address, notes=(_AGAIN,))


class ChatMessage:
    """One message in a chat, by an apprise URL (slack://, msteams://, discord://, ...)."""

    def __init__(self, url: str) -> None:
        self._url = url

    def plan(self, letter: Letter) -> Plan:
        """The message."""
        return Plan(
            f"{urlsplit(self._url).scheme}://…", f"{letter.subject}\n\n{letter.markdown}", letter.page, notes=(_AGAIN,)
        )

    def send(self, letter: Letter) -> Receipt:
        """Send it."""
        where = f"{urlsplit(self._url).scheme}://…"
        _notify(self._url, letter, attachment=letter.page, what=f"The service {where}")
        return Receipt(where, notes=(_AGAIN,))


def _mail_url(server: str, address: str) -> str:
    """Return the apprise URL for a server given as smtp://, smtp+starttls:// or smtps://[user@]host[:port]."""
    parts = urlsplit(server)
    modes = {"smtp": ("mailto", "insecure"), "smtp+starttls": ("mailtos", "starttls"), "smtps": ("mailtos", "ssl")}
    if parts.scheme not in modes or not parts.hostname:
        raise UsageError("RCA_SMTP_URL is no mail server; write smtp+starttls://me@host:587 or smtps://me@host")
    scheme, mode = modes[parts.scheme]
    login = ""
    if parts.username:
        stored = f"smtp:{parts.hostname}"
        password = parts.password or secret(
            ("RCA_SMTP_PASSWORD",), stored_as=stored, what="the password for the mail server"
        )
        login = f"{quote(parts.username, safe='')}:{quote(password, safe='')}@"
    port = f":{parts.port}" if parts.port else ""
    sender = quote(
        first_set(("RCA_MAIL_FROM",))
        or (parts.username if "@" in (parts.username or "") else "")
        or f"rca@{parts.hostname}",
        safe="",
    )
    return (
        f"{scheme}://{login}{parts.hostname}{port}/?to={quote(address, safe='')}&from={sender}&smtp={parts.hostname}"
        f"&mode={mode}&format=text"
    )


def _notify(url: str, letter: Letter, *, attachment: Attachment | None, what: str) -> None:
    import apprise

    sender = apprise.Apprise()
    if not sender.add(url):
        raise UsageError(f"{urlsplit(url).scheme}:// is not an address that apprise knows; see its list of services")
    with tempfile.TemporaryDirectory(prefix="rca-attach-") as folder, _listening() as said:
        files = None
        if attachment is not None:
            file = Path(folder, attachment.name)
            file.write_bytes(attachment.data)
            files = str(file)
        sent = sender.notify(
            body=letter.markdown, title=letter.subject, body_format=apprise.NotifyFormat.MARKDOWN, attach=files
        )
    if not sent:
        reason = "; ".join(dict.fromkeys(said))[:300] or "it gave no reason"
        told = f" with {attachment.name} of {size(attachment)}" if attachment else ""
        raise TicketError(f"{what} did not take the message{told} ({reason})")


@contextmanager
def _listening() -> Iterator[list[str]]:
    """Collect what apprise says while it sends: it answers only yes or no."""
    said: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    handler = Handler(logging.WARNING)
    logger = logging.getLogger("apprise")
    logger.addHandler(handler)
    propagate, logger.propagate = logger.propagate, False
    try:
        yield said
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate
