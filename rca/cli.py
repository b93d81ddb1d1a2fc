"""The command line: options in, exit code out. The only file that prints and exits."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rca import __version__
from rca.cli_attach import attach
from rca.cli_experiment import INTERRUPTED, experiment, experiment_options, options_of, place, seconds
from rca.cli_lab import lab
from rca.cli_language import LANG, spoken
from rca.cli_memory import memory
from rca.cli_rules import DISABLE, RULES, rules
from rca.cli_run import run
from rca.config import defaults, unknown_keys
from rca.errors import RcaError, UsageError
from rca.output import save_events, write_reports, write_text

if TYPE_CHECKING:
    from rca.diagnosis import Diagnosis
    from rca.ingest.remote import Root
    from rca.report.colour import ColourChoice

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 96, "auto_envvar_prefix": "RCA"}
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORMATS = ("html", "json", "md", "jira", "junit", "text")
_COLOR = click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)


@click.group(context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="rca")
@click.option("--config", type=click.Path(path_type=Path), help="Configuration file instead of ./rca.toml.")
@click.pass_context
def cli(context: click.Context, config: Path | None) -> None:
    """Find out why a deep-learning job failed or trains badly.

    Reads what the job left behind, ranks the possible causes, tests the leading ones on a tiny model, and writes a
    report. Start with: rca analyze RUN_DIR
    """
    found = defaults(config)
    options = {name: {str(item.name) for item in command.params} for name, command in cli.commands.items()}
    wrong = unknown_keys({name: values for name, values in found.items() if name != "rules"}, options)
    if wrong:
        raise UsageError(f"{config or 'the configuration'}: {'; '.join(wrong)}")
    context.default_map = found


@cli.command()
@click.argument("run_dir", type=place)
@click.option("-o", "--output", default="reports", show_default=True, metavar="DIR", help="Where reports are written.")
@click.option("-f", "--format", "formats", type=click.Choice(_FORMATS), multiple=True,
              help="Formats to write; repeatable. Without it: html, json and md, and a summary here.")  # fmt: skip
@LANG
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as one JSON document and write nothing.")
@click.option("--experiments", default="auto", show_default=True, metavar="auto|all|none|ID,...",
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
@click.option("--cluster", envvar="RCA_CLUSTER", metavar="URL",
              help="Scheduler of a Dask cluster (tcp://HOST:8786) whose workers read the files.")  # fmt: skip
@click.option("--fail-on", metavar="any|CAUSE", help="Exit with 1 when this cause, or any, is found.")
@click.option("--redact", type=click.Choice(["default", "strict", "none"]), default="default", show_default=True,
              help="What is replaced before anything is shown.")  # fmt: skip
@click.option("--save-events", type=click.Path(path_type=Path), metavar="FILE", help="Write the event table (Parquet).")
@click.option("--force", is_flag=True, help="Replace a file that rca did not write.")
@click.option("--strict", is_flag=True, help="Stop at the first reader or fact that fails.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, one line of summary.")
@click.option("-v", "--verbose", is_flag=True, help="More candidates and all warnings in the summary.")
@_COLOR
def analyze(run_dir: Root, **options: Any) -> None:
    """Analyze what a job left behind in RUN_DIR: a folder, an archive, or a URL such as s3://bucket/run."""
    from rca.pipeline import examine
    from rca.progress import progress
    from rca.report.chart_engine import warm_up
    from rca.report.registry import FORMATS
    from rca.rules.load import load

    knowledge = load(options["rules"], disabled=options["disable"])
    chosen = options_of(
        options,
        experiments=options["experiments"],
        partial=True,
        **{name: options[name] for name in ("redact", "jobs", "cluster", "strict")},
    )
    wanted = options["formats"] or ("html", "json", "md")
    if "html" in wanted and not options["as_json"]:
        warm_up()
    with progress(enabled=not options["quiet"] and sys.stderr.isatty()) as tell:
        analysis = examine(
            run_dir,
            knowledge,
            options=chosen,
            progress=tell,
        )
    if options["save_events"] is not None:
        save_events(analysis.events, options["save_events"])
    diagnosis = analysis.diagnosis
    with spoken(options["lang"], options["rules"]):
        if options["as_json"] or options["output"] == "-":
            only = "json" if options["as_json"] else _single(wanted)
            click.echo(FORMATS[only].render(diagnosis), nl=False)
        else:
            written = write_reports(diagnosis, Path(options["output"]), wanted, force=options["force"])
            _summary(diagnosis, written, options)
    if analysis.interrupted:
        click.echo("rca: interrupted during the experiments; the diagnosis so far was written", err=True)
        raise click.exceptions.Exit(INTERRUPTED)
    _fail_on(diagnosis, options["fail_on"])


@cli.command()
@click.argument("cause")
@RULES
@_COLOR
def explain(cause: str, rules: Sequence[Path], color: ColourChoice) -> None:
    """Explain a CAUSE: what it is, what speaks for it, how to fix it."""
    from rca.report.colour import wants_colour
    from rca.rules.explain import explanation
    from rca.rules.load import load

    on = wants_colour(color, stream=sys.stdout, environ=os.environ)
    click.echo(explanation(load(rules), cause, color=on), color=on)


@cli.command()
@click.argument("saved", type=click.Path(path_type=Path))
@click.option("-f", "--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option("-o", "--output", default="-", metavar="FILE", help="File to write; - for standard output.")
@LANG
@click.option("--force", is_flag=True, help="Replace a file that rca did not write.")
def report(*, saved: Path, form: str, output: str, lang: str, force: bool) -> None:
    """Render a SAVED report (.json or .html) in another format."""
    from rca.report.json_report import load_saved
    from rca.report.registry import FORMATS

    diagnosis = load_saved(saved)
    with spoken(lang):
        text = FORMATS[form].render(diagnosis)
    if output == "-":
        click.echo(text, nl=False)
    else:
        write_text(Path(output), text, force=force)


@cli.command("eval")
@click.argument("cases_dir", type=click.Path(path_type=Path))
@click.option("--experiments", default="none", show_default=True, metavar="auto|all|none|ID,...")
@click.option("--budget", default="60s", show_default=True, metavar="TIME")
@RULES
@click.option("--json", "as_json", is_flag=True, help="Print the score as one JSON document.")
@click.option(
    "--fit",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Fit the calibration on these cases and write it; a calibration.json in a rules folder is used.",
)
@click.option(
    "--first-run",
    is_flag=True,
    help="Write the verdicts down beside the cases as those of the first run; that happens once.",
)
def evaluate(*, cases_dir: Path, rules: Sequence[Path], as_json: bool, fit: Path | None, first_run: bool,
             **options: str) -> None:  # fmt: skip
    """Score the labelled incidents in CASES_DIR (folders of run/ and truth.json).

    Also printed: how often `unknown` is the answer when the rules of the right cause are withheld, and, where
    it was recorded, how often the very first run was right.
    """
    from rca import evaluate as scoring
    from rca.calibrate import calibrated
    from rca.output import write_text
    from rca.pipeline import Options
    from rca.rules.load import CALIBRATION, load
    from rca.scoreboard import row, summary

    if fit is not None and fit.name != CALIBRATION:
        raise UsageError(
            f"a calibration is used under the name {CALIBRATION} in a rules folder; write it with "
            f"--fit {fit.parent / CALIBRATION}"
        )
    how = Options(experiments=options["experiments"], budget_s=seconds(options["budget"]), redact="none")
    outcomes = []
    for outcome in scoring.evaluate(cases_dir, load(rules), options=how):
        outcomes.append(outcome)
        if not as_json:
            click.echo(row(outcome))
    if first_run:
        scoring.record_first_run(cases_dir, outcomes)
    result = scoring.score(outcomes).model_copy(update={"first_run": scoring.first_run(cases_dir, outcomes)})
    if fit is not None:
        found = calibrated(outcomes)
        write_text(fit, found.calibration.model_dump_json(indent=1) + "\n", force=True)
        result = result.model_copy(update={"calibrated": found})
    click.echo(result.model_dump_json(indent=2) if as_json else summary(result))


cli.add_command(run)
cli.add_command(attach)
cli.add_command(rules)
cli.add_command(experiment)
cli.add_command(lab)
cli.add_command(memory)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
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
        click.echo(f"rca: {error}", err=True)
        return error.exit_code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("rca: interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - replaces the closed pipe until the process ends
        return 0
    except OSError as error:
        if error.errno not in _NO_ROOM:
            return _internal_error()
        # What is still buffered would fail again, with a stack trace, when the process ends.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        click.echo(f"rca: cannot write the output: {error.strerror}; make room or choose another place", err=True)
        return 2
    except Exception:
        return _internal_error()
    return result if isinstance(result, int) else 0


def _internal_error() -> int:
    log = Path("rca-crash.log")
    try:
        log.write_text(traceback.format_exc(), encoding="utf-8")
        click.echo(f"rca: internal error; the traceback is in {log}. Please report it with that file.", err=True)
    except OSError:
        traceback.print_exc()
    return 4


def _single(wanted: Sequence[str]) -> str:
    if len(wanted) != 1:
        raise UsageError("--output - prints one document; choose it with one --format")
    return wanted[0]


def _summary(diagnosis: Diagnosis, written: Sequence[Path], options: dict[str, Any]) -> None:
    from rca.report.colour import wants_colour
    from rca.report.text import TextReport

    if options["quiet"]:
        click.echo(_one_line(diagnosis))
        return
    on = wants_colour(options["color"], stream=sys.stdout, environ=os.environ)
    click.echo(TextReport(colour=on).render(diagnosis), nl=False, color=on)
    if options["verbose"]:
        for warning in diagnosis.warnings:
            click.echo(f"warning: {warning}")
    if written:
        page = written[0]
        click.echo(f"report: {page} ({page.stat().st_size / 1000:.0f} kB)")


def _one_line(diagnosis: Diagnosis) -> str:
    chosen = diagnosis.verdict
    if chosen.status != "unknown":
        return f"{chosen.cause} {chosen.probability:.0%} {chosen.status}"
    lead = next(iter(diagnosis.hypotheses), None)
    return chosen.cause + (f" (leads: {lead.cause} {lead.probability:.0%})" if lead is not None else "")


def _fail_on(diagnosis: Diagnosis, wanted: str | None) -> None:
    found = diagnosis.verdict.cause
    if wanted is not None and (found == wanted or (wanted == "any" and found != "none")):
        raise click.exceptions.Exit(1)
