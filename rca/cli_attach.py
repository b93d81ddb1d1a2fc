"""`rca attach`: a saved report goes to the ticket of the incident."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rca.cli_command import Command
from rca.cli_language import LANG, spoken
from rca.errors import TicketError, UsageError

if TYPE_CHECKING:
    from rca.tickets.interface import Plan

_BARE = "nothing was redacted in this report: it holds secrets, names and addresses as the run wrote them"


@click.command(cls=Command)
@click.argument("saved", metavar="REPORT", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "tickets",
    required=True,
    multiple=True,
    metavar="TICKET",
    help="jira:KEY-1, github:owner/repo#12, gitlab:group/project#3, webhook:URL or email:ADDRESS; repeatable.",
)
@click.option("--url", metavar="URL", help="Address of your own Jira, GitHub (its API) or GitLab server.")
@LANG
@click.option("--dry-run", is_flag=True, help="Show word for word what would be sent; nothing leaves the machine.")
@click.option("-y", "--yes", is_flag=True, help="Send without asking.")
@click.option("--unredacted", is_flag=True, help="Send also a report that was made with --redact none.")
def attach(
    *, saved: Path, tickets: Sequence[str], url: str | None, lang: str, dry_run: bool, yes: bool, unredacted: bool
) -> None:
    """Attach a saved REPORT (.json or .html) to a ticket: a summary as comment, the page as file.

    A second report on the same run replaces its own comment. Tokens come from the environment (JIRA_TOKEN, with
    JIRA_USER for Jira Cloud; GITHUB_TOKEN; GITLAB_TOKEN; RCA_WEBHOOK_TOKEN; RCA_SMTP_URL and RCA_SMTP_PASSWORD)
    or from the keyring.
    """
    from rca.report.json_report import load_saved
    from rca.tickets.connection import patiently
    from rca.tickets.letter import letter
    from rca.tickets.target import lacking, parsed, service_for

    targets = [parsed(ticket) for ticket in tickets]
    services = [service_for(target, url=url) for target in targets]
    missing = next(filter(None, map(lacking, targets)), "")
    if missing and not dry_run:
        raise UsageError(missing)
    diagnosis = load_saved(saved)
    bare = diagnosis.redaction.mode == "none"
    if bare:
        click.echo(f"warning: {_BARE}", err=True)
    if bare and not (dry_run or unredacted):
        raise UsageError("not sent; analyse again without --redact none, or say --unredacted if all of it may be read")
    with spoken(lang):
        written = letter(diagnosis)
    plans = [service.plan(written) for service in services]
    if dry_run:
        for plan in plans:
            click.echo(shown(plan))
        if missing:
            click.echo(f"note: before it can be sent: {missing}", err=True)
        return
    if not yes:
        _ask(plans)
    failed: list[TicketError] = []
    for service in services:
        try:
            receipt = patiently(partial(service.send, written))
        except TicketError as error:
            failed.append(error)
            continue
        click.echo(f"{'replaced' if receipt.updated else 'sent'}: {receipt.where}")
        for note in receipt.notes:
            click.echo(f"note: {note}", err=True)
    if failed:
        raise TicketError("; ".join(str(error) for error in failed))


def shown(plan: Plan) -> str:
    """What a dry run prints of a plan."""
    lines = [f"to: {plan.where}"]
    if plan.attachment:
        lines.append(
            f"file: {plan.attachment.name} ({len(plan.attachment.data):,} bytes, {plan.attachment.media_type})"
        )
    lines += [f"note: {note}" for note in plan.notes]
    return "\n".join([*lines, "", plan.body])


def _ask(plans: Sequence[Plan]) -> None:
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked here; look at --dry-run first, then send with --yes")
    for plan in plans:
        attached = f" and {plan.attachment.name}" if plan.attachment else ""
        click.echo(f"{len(plan.body):,} characters{attached} to {plan.where}")
    click.confirm("Send?", abort=True)
