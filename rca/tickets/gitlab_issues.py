"""Issues on GitLab, through python-gitlab; the page is an upload of the project, linked from the comment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rca.errors import TicketError
from rca.tickets.connection import TIMEOUT_S, refused, told
from rca.tickets.credentials import first_set, secret
from rca.tickets.interface import Attachment, Letter, Plan, Receipt
from rca.tickets.letter import size, zipped

_NAME = "GitLab"
_PUBLIC = "https://gitlab.com"
_TOO_LARGE = 413
_ONCE: dict[str, Any] = {"max_retries": 0, "obey_rate_limit": False}
"""The client does not wait for a busy server; `patiently` does."""


class GitlabIssue:
    """One issue; the report becomes its note."""

    def __init__(self, project: str, number: int, *, url: str | None) -> None:
        self._project, self._number = project, number
        self._url = (url or first_set(("GITLAB_URL", "CI_SERVER_URL")) or _PUBLIC).rstrip("/")

    def plan(self, letter: Letter) -> Plan:
        """The note and the page."""
        return Plan(f"{self._project}#{self._number} on {self._url}", _body(letter, "(the link)"), letter.page)

    def send(self, letter: Letter) -> Receipt:
        """Upload the page, then write the note, or replace the one of an earlier report on the same run."""
        import gitlab

        stored = f"gitlab:{self._url}"
        token = secret(("GITLAB_TOKEN",), stored_as=stored, what="the token for GitLab")
        client = gitlab.Gitlab(self._url, private_token=token, timeout=TIMEOUT_S)
        with told(_NAME, self._url), _sentences(f"{self._project}#{self._number}"):
            issue = client.projects.get(self._project, lazy=True).issues.get(self._number, **_ONCE)
            link, notes = _uploaded(client.projects.get(issue.project_id, lazy=True), letter.page)
            body = _body(letter, link)
            for note in issue.notes.list(iterator=True, **_ONCE):
                if letter.mark in note.body:
                    note.body = body
                    note.save(**_ONCE)
                    return Receipt(f"{issue.web_url}#note_{note.id}", updated=True, notes=notes)
            made = issue.notes.create({"body": body}, **_ONCE)
            return Receipt(f"{issue.web_url}#note_{made.id}", notes=notes)


def _uploaded(project: Any, page: Attachment) -> tuple[str, tuple[str, ...]]:
    """Return the Markdown link to the uploaded page, zipped where the server takes no file of its size."""
    import gitlab

    def upload(attachment: Attachment) -> str | None:
        try:
            return str(project.upload(attachment.name, filedata=attachment.data, **_ONCE)["markdown"])
        except gitlab.GitlabError as error:
            if error.response_code == _TOO_LARGE:
                return None
            raise

    packed = zipped(page)
    link = upload(page) or upload(packed)
    return (link, ()) if link else ("", (f"the page was not attached: GitLab takes no file of {size(packed)}",))


def _body(letter: Letter, link: str) -> str:
    page = f"\n{letter.page_label} {link}\n" if link else ""
    return f"{letter.markdown}{page}\n<!-- {letter.mark} -->\n"


@contextmanager
def _sentences(what: str) -> Iterator[None]:
    import gitlab

    try:
        yield
    except gitlab.GitlabError as error:
        raise refused(_NAME, error.response_code, what=what, said=str(error.error_message or "")) from error
    except (KeyError, AttributeError) as error:
        raise TicketError(f"{_NAME} answered in a form that is not its API's; check the address") from error
