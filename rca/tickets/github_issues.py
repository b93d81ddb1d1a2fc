"""Issues and pull requests on GitHub, through PyGithub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rca.tickets.connection import TIMEOUT_S, refused, told
from rca.tickets.credentials import first_set, secret
from rca.tickets.interface import Letter, Plan, Receipt

_NAME = "GitHub"
_PUBLIC = "https://api.github.com"
_NO_FILES = "GitHub takes no files through its API: drag the HTML report into the comment to attach it."


class GithubIssue:
    """One issue or pull request; the report becomes its comment."""

    def __init__(self, repository: str, number: int, *, url: str | None) -> None:
        self._repository, self._number = repository, number
        self._url = (url or first_set(("GITHUB_API_URL",)) or _PUBLIC).rstrip("/")

    def plan(self, letter: Letter) -> Plan:
        """The comment; GitHub's API takes no files."""
        where = f"{self._repository}#{self._number} on {self._url}"
        return Plan(where, _body(letter), notes=(_NO_FILES,))

    def send(self, letter: Letter) -> Receipt:
        """Write the comment, or replace the one of an earlier report on the same run."""
        import github

        stored = f"github:{self._url}"
        token = secret(("GITHUB_TOKEN", "GH_TOKEN"), stored_as=stored, what="the token for GitHub")
        client = github.Github(
            base_url=self._url,
            auth=github.Auth.Token(token),
            timeout=round(TIMEOUT_S),
            retry=None,
            seconds_between_requests=0,
            lazy=True,
        )
        with told(_NAME, self._url), _sentences(f"{self._repository}#{self._number}"):
            issue = client.get_repo(self._repository).get_issue(self._number)
            body = _body(letter)
            for comment in issue.get_comments():
                if _mark(letter) in (comment.body or ""):
                    comment.edit(body)
                    return Receipt(comment.html_url, updated=True, notes=(_NO_FILES,))
            return Receipt(issue.create_comment(body).html_url, notes=(_NO_FILES,))


def _mark(letter: Letter) -> str:
    return f"<!-- {letter.mark} -->"


def _body(letter: Letter) -> str:
    return f"{letter.markdown}\n{_mark(letter)}\n"


@contextmanager
def _sentences(what: str) -> Iterator[None]:
    import github

    try:
        yield
    except github.GithubException as error:
        said = error.data.get("message", "") if isinstance(error.data, dict) else ""
        raise refused(_NAME, error.status, what=what, said=str(said), headers=error.headers) from error
