"""The command line: options in, exit code out. The only file that prints and exits."""

from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from rca import __version__
from rca.cli_attach import attach
from rca.cli_command import COLOR, Group, can_be_set, key
from rca.cli_eval import evaluate
from rca.cli_experiment import INTERRUPTED, check_named, experiment, experiment_options, options_of
from rca.cli_lab import lab
from rca.cli_language import LANG, spoken
from rca.cli_memory import memory
from rca.cli_rules import DISABLE, RULES, rules
from rca.cli_run import run
from rca.cli_types import Format, Known, RunPlace
from rca.config import Setting, defaults
from rca.errors import RcaError, UsageError
from rca.output import place_of_report, save_events, write_reports, write_text

if TYPE_CHECKING:
    from rca.diagnosis import Diagnosis
    from rca.ingest.places.remote import Root
    from rca.report.colour import ColourChoice

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 80, "auto_envvar_prefix": "RCA"}
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@click.group(cls=Group, context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="rca")
@click.option("--config", type=click.Path(path_type=Path), envvar="RCA_CONFIG", metavar="FILE",
              help="Configuration file instead of ./rca.toml.")  # fmt: skip
@click.pass_context
def cli(context: click.Context, config: Path | None) -> None:
    """Find out why a deep-learning job failed or trains badly.

    Reads what the job left behind, ranks the possible causes, tests the leading ones on a tiny model, and writes a
    report. Start with: rca analyze RUN_DIR
    """
    context.default_map = defaults(dict(_settable(cli)), config)


@cli.command()
@click.argument("run_dir", type=RunPlace())
@click.option("-o", "--output", default="reports", show_default=True, metavar="DIR", help="Where reports are written.")
@click.option("-f", "--format", "formats", type=Format(), multiple=True,
              help="Formats to write; repeatable. Without it: html, json and md, and a summary here.")  # fmt: skip
@LANG
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as one JSON document and write nothing.")
@click.option("--experiments", type=Known("experiment", "auto", "all", "none", listed=True), default="auto",
              show_default=True, metavar="auto|all|none|ID,...",
              help="Which experiments may run.")  # fmt: skip
@experiment_options
@RULES
@DISABLE
@click.option(
    "--jobs",
    type=click.IntRange(0, 256),
    default=1,
    show_default=True,
    help="Processes that read files, where that pays; 0: one per processor.",
)
@click.option("--cluster", metavar="URL",
              help="Scheduler of a Dask cluster (tcp://HOST:8786) whose workers read the files.")  # fmt: skip
@click.option(
    "--fail-on", type=Known("cause", "any"), metavar="any|CAUSE", help="Exit with 1 when this cause, or any, is found."
)
@click.option("--redact", type=click.Choice(["default", "strict", "none"]), default="default", show_default=True,
              help="What is replaced before anything is shown.")  # fmt: skip
@click.option("--save-events", type=click.Path(path_type=Path), metavar="FILE", help="Write the event table (Parquet).")
@click.option("--force", is_flag=True, help="Replace a file that rca did not write.")
@click.option("--strict", is_flag=True, help="Stop at the first reader or fact that fails.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, one line of summary.")
@click.option("-v", "--verbose", count=True,
              help="All evidence, fixes, candidates and warnings; -vv: also the log, files and times.")  # fmt: skip
@COLOR
def analyze(run_dir: Root, **options: Any) -> None:
    """Analyze what a job left behind in RUN_DIR: a folder, an archive, or a URL such as s3://bucket/run."""
    from rca.pipeline import examine
    from rca.progress import how, progress
    from rca.report.chart_engine import warm_up
    from rca.report.registry import renderer
    from rca.rules.load import load

    knowledge = load(options["rules"], disabled=options["disable"])
    check_named(options["experiments"], knowledge)
    chosen = options_of(
        options,
        experiments=options["experiments"],
        partial=True,
        **{name: options[name] for name in ("redact", "jobs", "cluster", "strict")},
    )
    wanted = options["formats"] or ("html", "json", "md")
    if "html" in wanted and not options["as_json"]:
        warm_up()
    with progress(how(quiet=options["quiet"], lines=not options["as_json"], color=options["color"])) as tell:
        analysis = examine(
            run_dir,
            knowledge,
            options=chosen,
            progress=tell,
        )
    if options["redact"] == "none":
        click.echo("warning: nothing is redacted; do not pass on what is written here", err=True)
    if options["save_events"] is not None:
        save_events(analysis.shown_events(), options["save_events"])
    diagnosis = analysis.diagnosis
    with spoken(options["lang"], options["rules"]):
        if options["as_json"] or options["output"] == "-":
            only = "json" if options["as_json"] else _single(wanted)
            click.echo(renderer(only).render(diagnosis), nl=False)
        else:
            written = write_reports(diagnosis, Path(options["output"]), wanted, force=options["force"])
            _summary(diagnosis, written, options)
    if analysis.interrupted:
        click.echo("rca: interrupted during the experiments; the diagnosis so far was written", err=True)
        raise click.exceptions.Exit(INTERRUPTED)
    _fail_on(diagnosis, options["fail_on"])


@cli.command()
@click.argument("cause", type=Known("cause"))
@RULES
@LANG
@click.option("-v", "--verbose", is_flag=True, help="The condition and the weight of every piece of evidence.")
@COLOR
def explain(*, cause: str, rules: Sequence[Path], lang: str, verbose: bool, color: ColourChoice) -> None:
    """Explain a CAUSE: what it is, how to fix it, what speaks for it."""
    from rca.explanation import explanation
    from rca.report.colour import wants_colour
    from rca.rules.load import load

    def meanings() -> Mapping[str, str]:
        from rca.facts.registry import CATALOGUE

        return CATALOGUE

    on = wants_colour(color, stream=sys.stdout, environ=os.environ)
    with spoken(lang, rules):
        told = explanation(load(rules), cause, meanings=meanings, verbose=verbose, color=on)
    click.echo(told, color=on)


@cli.command()
@click.argument("saved", type=click.Path(path_type=Path))
@click.option("-f", "--format", "form", type=Format(), default="text", show_default=True, help="Format to write.")
@click.option("-o", "--output", default="-", metavar="FILE", help="File to write; - for standard output.")
@LANG
@click.option("--force", is_flag=True, help="Replace a file that rca did not write.")
@click.option("-v", "--verbose", count=True, help="As text: all of the evidence; -vv: also the log, files and times.")
@COLOR
def report(*, saved: Path, form: str, output: str, lang: str, force: bool, verbose: int, color: ColourChoice) -> None:
    """Render a SAVED report (.json or .html) in another format."""
    from rca.report.json_report import load_saved, shortened
    from rca.report.registry import renderer

    diagnosis = load_saved(saved)
    if notice := shortened(diagnosis):
        click.echo(f"rca: {saved} does not hold everything, the .json beside it may: {notice}", err=True)
    with spoken(lang):
        if output == "-" and form == "text":
            _tell(diagnosis, verbose=verbose, color=color, folder=str(saved.parent))
        elif output == "-":
            click.echo(renderer(form).render(diagnosis), nl=False)
        else:
            write_text(Path(output), renderer(form).render(diagnosis), force=force)


cli.add_command(run)
cli.add_command(evaluate)
cli.add_command(attach)
cli.add_command(rules)
cli.add_command(experiment)
cli.add_command(lab)
cli.add_command(memory)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    if sys.stdout is None:  # closed by what started this process
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what ends a job ends it as cleanly as Ctrl-C
    stopped: list[bool] = []
    # Registered before all others, so that it is called last: nothing may hold an interrupted process back.
    atexit.register(lambda: os._exit(INTERRUPTED) if stopped else None)
    gc.set_threshold(100_000, 50, 50)  # what start-up makes lives to the end; searching it takes a tenth of a short run
    code = _run(lambda: cli.main(arguments, prog_name="rca", standalone_mode=False))
    if code == INTERRUPTED:
        sys.stdout.flush()
        stopped.append(True)
    sys.exit(code)


def _run(call: Callable[[], Any]) -> int:
    try:
        result = call()
    except RcaError as error:
        click.echo(f"rca: {_shown(str(error))}", err=True)
        return error.exit_code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        told = io.StringIO()
        error.show(file=told)
        click.echo(_shown(told.getvalue()), nl=False, err=True)
        _tell_source(error)
        return 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("rca: interrupted", err=True)
        return INTERRUPTED
    except OSError as error:
        if isinstance(error, BrokenPipeError) and isinstance(error.__context__, (KeyboardInterrupt, EOFError)):
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - nobody reads that it was interrupted
            return INTERRUPTED
        if error.errno not in _NO_ROOM:
            return _internal_error()
        # What is still buffered would fail again, with a stack trace, when the process ends.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        click.echo(f"rca: cannot write the output: {error.strerror}; make room or choose another place", err=True)
        return 2
    except Exception:
        return _internal_error()
    return result if isinstance(result, int) else 0


def _shown(message: str) -> str:
    from rca.redact.messages import without_secrets

    return without_secrets(message)


def _tell_source(error: click.ClickException) -> None:
    """Say where a wrong value came from, when nobody typed it."""
    if not isinstance(error, click.BadParameter) or error.ctx is None or error.param is None:
        return
    source = error.ctx.get_parameter_source(str(error.param.name))
    if source is ParameterSource.DEFAULT_MAP:
        click.echo("The value stands in the configuration file.", err=True)
    elif source is ParameterSource.ENVIRONMENT:
        names = [error.param.envvar] if isinstance(error.param.envvar, str) else error.param.envvar or []
        click.echo(f"The value stands in the variable {next(filter(os.environ.get, names), '')}.", err=True)


def _settable(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Setting]]]:
    """Every command below a group, with the options that a file may set."""
    for name, inner in command.commands.items() if isinstance(command, click.Group) else ():
        words = (*path, name)
        if isinstance(inner, click.Group):
            yield from _settable(inner, words)
        else:
            options = [option for option in inner.params if can_be_set(option)]
            yield (
                words,
                {
                    key(item): Setting(str(item.name), multiple=bool(getattr(item, "multiple", False)))
                    for item in options
                },
            )


def _internal_error() -> int:
    import traceback

    from rca.redact import Redactor

    log = Path("rca-crash.log")
    told = "\n".join(Redactor("default").lines(traceback.format_exc().splitlines())) + "\n"
    try:
        log.write_text(told, encoding="utf-8")
        click.echo(f"rca: internal error; the traceback is in {log}. Please report it with that file.", err=True)
    except OSError:
        click.echo(told, nl=False, err=True)
    return 4


def _single(wanted: Sequence[str]) -> str:
    if len(wanted) != 1:
        raise UsageError("--output - prints one document; choose it with one --format")
    return wanted[0]


def _summary(diagnosis: Diagnosis, written: Sequence[Path], options: dict[str, Any]) -> None:
    if options["quiet"]:
        click.echo(_one_line(diagnosis))
        return
    _tell(diagnosis, verbose=options["verbose"], color=options["color"], folder=options["output"])
    if written:
        click.echo(place_of_report(written[0]))


def _tell(diagnosis: Diagnosis, *, verbose: int, color: ColourChoice, folder: str) -> None:
    from rca.report.colour import wants_colour
    from rca.report.text import TextReport

    on = wants_colour(color, stream=sys.stdout, environ=os.environ)
    click.echo(TextReport(colour=on, verbose=verbose, folder=folder).render(diagnosis), nl=False, color=on)


def _one_line(diagnosis: Diagnosis) -> str:
    from rca.report.measures import percent

    chosen = diagnosis.verdict
    if chosen.status != "unknown":
        return f"{chosen.cause} {percent(chosen.probability)} {chosen.status}"
    lead = next(iter(diagnosis.hypotheses), None)
    return chosen.cause + (f" (leads: {lead.cause} {percent(lead.probability)})" if lead is not None else "")


def _fail_on(diagnosis: Diagnosis, wanted: str | None) -> None:
    found = diagnosis.verdict.cause
    if wanted is not None and (found == wanted or (wanted == "any" and found != "none")):
        raise click.exceptions.Exit(1)
