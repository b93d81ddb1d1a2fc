"""Issues in Jira (Cloud, Data Center, Server), through the client library `jira`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rca.errors import TicketError, UsageError
from rca.tickets.connection import TIMEOUT_S, refused, told
from rca.tickets.credentials import first_set, secret
from rca.tickets.interface import Attachment, Letter, Plan, Receipt
from rca.tickets.letter import fitted, size

_NAME = "Jira"
_PAGE = 100
_USUAL_LIMIT = 10_485_760
"""Bytes of an attachment where the server does not tell: Jira's default (Configuring File Attachments)."""


class JiraIssue:
    """One issue; the report becomes its comment and the page its attachment."""

    def __init__(self, key: str, *, url: str | None) -> None:
        address = url or first_set(("JIRA_URL", "JIRA_SERVER"))
        if address is None:
            raise UsageError("the address of Jira is missing; give it with --url or in JIRA_URL")
        self._key, self._url = key.upper(), address.rstrip("/")

    def plan(self, letter: Letter) -> Plan:
        """The comment and the page."""
        return Plan(f"{self._key} on {self._url}", _body(letter), letter.page)

    def send(self, letter: Letter) -> Receipt:
        """Attach the page, then write the comment, or replace the one of an earlier report on the same run."""
        import jira

        user = first_set(("JIRA_USER", "JIRA_EMAIL"))
        token = secret(("JIRA_TOKEN", "JIRA_API_TOKEN"), stored_as=f"jira:{self._url}", what="the token for Jira")
        login: dict[str, Any] = {"basic_auth": (user, token)} if user else {"token_auth": token}
        with told(_NAME, self._url), _sentences(self._key):
            client = jira.JIRA(
                self._url,
                **login,
                get_server_info=False,
                max_retries=0,
                timeout=TIMEOUT_S,
                options={"check_update": False},
            )
            issue = client.issue(self._key, fields="attachment,comment")
            notes = _attached(client, issue, letter.page)
            body = _body(letter)
            where = f"{self._url}/browse/{self._key}"
            for comment in _comments(client, issue):
                if letter.mark in comment.body:
                    comment.update(body=body)
                    return Receipt(f"{where}?focusedCommentId={comment.id}", updated=True, notes=notes)
            made = client.add_comment(issue, body)
            return Receipt(f"{where}?focusedCommentId={made.id}", notes=notes)


def _comments(client: Any, issue: Any) -> Iterator[Any]:
    """Iterate over all comments; Jira Cloud gives a page of them at a time."""
    start = 0
    while page := client.comments(issue, start_at=start, max_results=_PAGE):
        yield from page
        start += len(page)


def _attached(client: Any, issue: Any, page: Attachment) -> tuple[str, ...]:
    """Attach the page; an older one of the same name goes after the new one is there."""
    meta = client.attachment_meta()
    if meta.get("enabled") is False:
        return ("the page was not attached: this Jira takes no attachments",)
    limit = int(meta.get("uploadLimit") or _USUAL_LIMIT)
    attachment = fitted(page, limit)
    if attachment is None:
        return (f"the page was not attached: Jira takes files of {limit / 1e6:,.1f} MB, it has {size(page)}",)
    older = [item for item in issue.fields.attachment if item.filename in {page.name, page.name + ".zip"}]
    client.add_attachment(issue, attachment=io.BytesIO(attachment.data), filename=attachment.name)
    for item in older:
        item.delete()
    return ()


def _body(letter: Letter) -> str:
    return f"{letter.wiki}\n{{color:#8993a4}}{letter.page.name}, report {letter.mark}{{color}}\n"


@contextmanager
def _sentences(what: str) -> Iterator[None]:
    import jira

    try:
        yield
    except jira.JIRAError as error:
        headers = getattr(error.response, "headers", None)
        raise refused(_NAME, error.status_code, what=what, said=error.text or "", headers=headers) from error
    except (KeyError, AttributeError, ValueError) as error:
        raise TicketError(f"{_NAME} answered in a form that is not its API's; check the address") from error
