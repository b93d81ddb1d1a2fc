"""What stands behind `--to`: which service, and which ticket there."""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple
from urllib.parse import urlsplit

from rca.errors import UsageError
from rca.tickets.interface import Service

FORMS = "jira:KEY-1, github:owner/repo#12, gitlab:group/project#3, webhook:URL or email:ADDRESS"


_CLIENTS = {"jira": "jira", "github": "github", "gitlab": "gitlab", "webhook": "requests", "email": "apprise"}


class Target(NamedTuple):
    """One ticket."""

    service: str
    project: str
    """Repository or project; empty where the ticket stands alone."""
    ticket: str


def parsed(text: str) -> Target:
    """Take `--to` apart. Raises UsageError."""
    service, separator, rest = text.strip().partition(":")
    service = service.lower()
    if not separator or not rest.strip() or service not in {"jira", "github", "gitlab", "webhook", "email"}:
        raise UsageError(f"--to {text!r} names no ticket; write {FORMS}")
    rest = rest.strip()
    if service in {"github", "gitlab"}:
        project, _, number = rest.rpartition("#")
        parts = [part for part in project.split("/") if part]
        fewest = 2
        if not number.isdigit() or len(parts) < fewest or (service == "github" and len(parts) != fewest):
            raise UsageError(f"--to {text!r} names no issue; write {FORMS}")
        return Target(service, "/".join(parts), number)
    if service == "jira" and not all(part.isalnum() for part in rest.replace("_", "").split("-")):
        raise UsageError(f"--to {text!r} names no issue; write {FORMS}")
    if service == "email" and "@" not in rest.strip("@"):
        raise UsageError(f"--to {text!r} names no address; write {FORMS}")
    if service == "webhook" and not urlsplit(rest).scheme:
        raise UsageError(f"--to {text!r} names no URL; write {FORMS}")
    return Target(service, "", rest)


def lacking(target: Target) -> str:
    """What to install before anything can be sent to a target; nothing where its client is there."""
    if find_spec(_CLIENTS[target.service]) is not None:
        return ""
    return f"the client for {target.service} is not installed; run `pip install 'rca-dl[attach]'`"


def service_for(target: Target, *, url: str | None = None) -> Service:
    """Return the service of a target; `url` is the address of a server of one's own. Raises UsageError.

    What it would send can be told without its client, see `lacking`.
    """
    if target.service == "jira":
        from rca.tickets.jira_issues import JiraIssue

        return JiraIssue(target.ticket, url=url)
    if target.service == "github":
        from rca.tickets.github_issues import GithubIssue

        return GithubIssue(target.project, int(target.ticket), url=url)
    if target.service == "gitlab":
        from rca.tickets.gitlab_issues import GitlabIssue

        return GitlabIssue(target.project, int(target.ticket), url=url)
    if target.service == "email":
        from rca.tickets.notices import Mail

        return Mail(target.ticket)
    from rca.tickets.notices import ChatMessage
    from rca.tickets.webhook import Webhook

    return Webhook(target.ticket) if urlsplit(target.ticket).scheme in {"http", "https"} else ChatMessage(target.ticket)
