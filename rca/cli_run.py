"""`rca run`: a command that is analysed where it fails."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rca.cli_command import COLOR, Command
from rca.cli_language import LANG, spoken
from rca.cli_rules import RULES
from rca.cli_types import Known
from rca.errors import RcaError, UsageError

if TYPE_CHECKING:
    from rca.launch.tasks import Task
    from rca.report.colour import ColourChoice

_OTHERS_S = 10.0
"""Time that the other tasks of a job get to end and write their last lines before the first that failed reads them."""


@click.command(cls=Command, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--run-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of the run, which is analysed as a whole; what the command prints is kept in its rca-run/.",
)
@click.option("-o", "--output", default="reports", show_default=True, metavar="DIR", help="Where reports are written.")
@click.option(
    "--experiments",
    type=Known("experiment", "auto", "all", "none", listed=True),
    default="none",
    show_default=True,
    metavar="auto|all|none|ID,...",
    help="Experiments to do after a failure; the machine is the job's, so none by default.",
)
@click.option("--budget", default="60s", show_default=True, metavar="TIME", help="Time for all experiments.")
@RULES
@LANG
@COLOR
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)  # fmt: skip
def run(
    *,
    run_dir: Path | None,
    output: str,
    experiments: str,
    budget: str,
    rules: Sequence[Path],
    lang: str,
    color: ColourChoice,
    command: Sequence[str],
) -> None:
    """Run COMMAND and, where it fails, find out why. Write -- before the command; Ctrl-C is no failure.

    Its output, its signals and its exit code pass through unchanged; the summary goes to standard error. Kept are
    the output of every rank, how it ended, peak memory, and after a failure also variables (redacted), packages,
    nvidia-smi and dmesg. Under srun or mpirun each task is watched, and the first that fails analyses all of them.
    """
    from rca.launch import record, snapshot
    from rca.launch.child import end_like, watched
    from rca.launch.tasks import FOLDER, files_of, per_rank, this_task

    task = this_task(os.environ)
    place = _run_dir(run_dir, task)
    folder = files_of(task, place / FOLDER)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}; choose another --run-dir") from error
    environ = {**os.environ, **per_rank(command, folder, os.environ)}
    ended = watched(command, environ=environ, stdout=folder / "stdout.log", stderr=folder / "stderr.log")
    record.write(folder, command, ended, task)
    if ended.code != 0 and not ended.interrupted and _is_mine(task, place, since=ended.started):
        snapshot.take(folder, command, os.environ, since=ended.started)
        _analysed(place, output, experiments=experiments, budget=budget, rules=rules, lang=lang, color=color)
    raise click.exceptions.Exit(end_like(ended.code))


def _run_dir(given: Path | None, task: Task) -> Path:
    if given is not None:
        return given
    if task.rank is None:
        return Path(f"run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    if task.job is None:
        raise UsageError("the tasks of this job need one folder for all of them; name it with --run-dir")
    return Path(f"run-{task.job}")


def _is_mine(task: Task, place: Path, *, since: float) -> bool:
    """Whether this task is the one that analyses: the first to fail, after the others ended or had time to."""
    from rca.launch import record
    from rca.launch.tasks import FOLDER, claimed

    if task.rank is None:
        return True
    if not claimed(place / FOLDER, since=since):
        return False
    until = time.monotonic() + _OTHERS_S
    while record.ended_since(since, place / FOLDER) < task.size and time.monotonic() < until:
        time.sleep(0.1)
    return True


def _analysed(
    place: Path, output: str, *, experiments: str, budget: str, rules: Sequence[Path], lang: str, color: ColourChoice
) -> None:
    """Analyse the run; what goes wrong here is told and changes nothing of how the command ended."""
    from rca.cli_experiment import seconds
    from rca.output import place_of_report, write_reports
    from rca.pipeline import Options, examine
    from rca.redact.messages import without_secrets
    from rca.report.colour import wants_colour
    from rca.report.text import TextReport
    from rca.report.words import say
    from rca.rules.load import load

    try:
        options = Options(experiments=experiments, budget_s=seconds(budget))
        diagnosis = examine(place, load(rules), options=options).diagnosis
        on = wants_colour(color, stream=sys.stderr, environ=os.environ)
        with spoken(lang, rules):
            (page, *_) = write_reports(diagnosis, Path(output), ("html", "json", "md"), force=False)
            click.echo(TextReport(colour=on, folder=output).render(diagnosis), nl=False, err=True, color=on)
            click.echo(say("text.kept", folder=without_secrets(str(place))), err=True)
            click.echo(place_of_report(page), err=True)
    except RcaError as error:
        click.echo(f"rca: the run was not analysed: {without_secrets(str(error))}", err=True)
    except BrokenPipeError:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - nobody reads the summary; the reports stand
