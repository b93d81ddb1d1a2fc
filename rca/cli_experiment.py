"""`rca experiment`: one experiment on one run; and the options of experiments that `rca analyze` has as well."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rca.cli_command import COLOR, QUIET, WIDTH, Command
from rca.cli_language import LANG, spoken
from rca.cli_rules import DISABLE, RULES
from rca.cli_types import Known, RunPlace
from rca.errors import UsageError

if TYPE_CHECKING:
    from rca.ingest.places.remote import Root
    from rca.pipeline import Options
    from rca.rules.load import Knowledge

_Command = TypeVar("_Command", bound=Callable[..., Any])
INTERRUPTED = 130
_BISECTION = "bisect_config"
"""Runs where a healthy run is given; no rule describes it."""


_OPTIONS = (
    click.option("--budget", default="60s", show_default=True, metavar="TIME",
                 help="Time for all experiments: 30s, 5m."),
    click.option("--limit", metavar="TIME", help="Time for one experiment; without it, all that is left."),
    click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", show_default=True,
                 help="Where experiments compute; auto takes a GPU that nobody uses."),
    click.option("--data", type=click.Path(exists=True, path_type=Path), metavar="PATH",
                 help="Samples of the run (jsonl, npy, npz, csv) for experiments instead of synthetic ones."),
    click.option("--twin", metavar="FILE.py:FUNCTION",
                 help="Function that builds a model in place of the tiny twin; this program is run."),
    click.option("--baseline", type=RunPlace(), metavar="DIR",
                 help="A healthy run of the same job: what differs counts as evidence."),
)  # fmt: skip


def experiment_options(command: _Command) -> _Command:
    """Give a command the options that say how experiments are done."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def options_of(given: dict[str, Any], *, experiments: str, **more: Any) -> Options:
    """Return the options of an analysis from those of a command with `experiment_options`. Raises UsageError."""
    from rca.pipeline import Options

    if given["twin"] is not None:
        from rca.experiments.twin.supplied import program

        program(given["twin"])
    return Options(
        experiments=experiments,
        budget_s=seconds(given["budget"]),
        limit_s=None if given["limit"] is None else seconds(given["limit"], option="--limit"),
        device=given["device"],
        data=given["data"],
        twin=given["twin"],
        baseline=given["baseline"],
        **more,
    )


def check_named(experiments: str, knowledge: Knowledge) -> None:
    """Raise UsageError for a name that is no experiment, before the run is read."""
    from rca.agent.loop import no_experiment

    known = {*knowledge.experiments, _BISECTION}
    unknown = [name for part in experiments.split(",") if (name := part.strip()) and name not in known]
    if experiments not in {"auto", "all", "none"} and unknown:
        raise UsageError(no_experiment(unknown, known))


def seconds(text: str, *, option: str = "--budget") -> float:
    """Return a time such as `60s`, `5m` or `1h` in seconds. Raises UsageError."""
    scales = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, scale = (text[:-1], scales[text[-1]]) if text[-1:] in scales else (text, 1.0)
    try:
        found = float(number) * scale
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        raise UsageError(f"{option} {text!r} is not a time; write 60s, 5m or 1h")
    return found


@click.command(cls=Command)
@click.argument("name", type=Known("experiment", "list", _BISECTION), metavar="ID|list")
@click.argument("run_dir", type=RunPlace(), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print as one JSON document.")
@experiment_options
@RULES
@DISABLE
@click.option("--redact", type=click.Choice(["default", "strict", "none"]), default="default", show_default=True,
              help="What is replaced before anything is shown.")  # fmt: skip
@LANG
@QUIET
@COLOR
def experiment(
    *, name: str, run_dir: Root | None, as_json: bool, rules: Sequence[Path], lang: str, **options: Any
) -> None:
    """Carry out the experiment ID on what a job left in RUN_DIR.

    Prints the question, the prediction, the arms, the effect and the verdict. `rca experiment list` lists the
    experiments with the causes that they can confirm.
    """
    from rca.rules.load import load

    knowledge = load(rules, disabled=options["disable"])
    if name == "list":
        with spoken(lang, rules):
            click.echo(_listing(knowledge, as_json=as_json))
        return
    if run_dir is None:
        check_named(name, knowledge)
        raise UsageError(f"on which run? Write: rca experiment {name} RUN_DIR")
    _carry_out(name, run_dir, knowledge, as_json=as_json, options={**options, "rules": rules, "lang": lang})


def _carry_out(name: str, run_dir: Root, knowledge: Knowledge, *, as_json: bool, options: dict[str, Any]) -> None:
    from rca.experiments.run import warm_up
    from rca.pipeline import examine
    from rca.progress import how, progress
    from rca.report.colour import wants_colour
    from rca.report.experiment_text import experiment_text

    check_named(name, knowledge)
    chosen = options_of(options, experiments=name, redact=options["redact"])
    if name in knowledge.experiments and isinstance(run_dir, Path) and run_dir.is_dir():
        warm_up(knowledge.experiments[name], chosen.device)
    with progress(how(quiet=options["quiet"], lines=not as_json, color=options["color"])) as tell:
        analysis = examine(run_dir, knowledge, options=chosen, progress=tell)
    found = analysis.diagnosis.experiments
    if not found:
        why = " ".join(analysis.diagnosis.warnings[-1:]) or "it names no experiment, or no time was left for one"
        raise UsageError(f"`{name}` was not carried out: {why}")
    if as_json:
        documents = [item.model_dump(mode="json") for item in found]
        click.echo(json.dumps(documents[0] if len(documents) == 1 else documents, indent=2))
        return
    on = wants_colour(options["color"], stream=sys.stdout, environ=os.environ)
    rounds = {item.chosen: item for item in analysis.diagnosis.log}
    with spoken(options["lang"], options["rules"]):
        told = [
            experiment_text(
                item.model_copy(update={"repro": _again(item.id, run_dir, options)}),
                round_=rounds.get(item.id),
                colour=on,
            )
            for item in found
        ]
    click.echo("\n".join(told), nl=False)


def _again(name: str, run_dir: Root, options: dict[str, Any]) -> str:
    """The command that was typed, for one experiment: what a saved report cannot know, this terminal does."""
    given = [item for folder in options["rules"] for item in ("--rules", str(folder))]
    for option in ("baseline", "data", "twin"):
        given += [f"--{option}", str(options[option])] if options[option] is not None else []
    return shlex.join(["rca", "experiment", name, str(run_dir), *given])


def _listing(knowledge: Knowledge, *, as_json: bool) -> str:
    """Id, question, cost and causes of every experiment."""
    from rca.experiments.bisect import BISECTION
    from rca.report.words import say, shown
    from rca.report.wrapping import wrapped

    rules = sorted([*knowledge.experiments.values(), BISECTION], key=lambda rule: rule.id)
    if as_json:
        rows = [
            {"id": rule.id, "question": rule.question, "cost": rule.cost, "kind": rule.kind, "causes": rule.confirms}
            for rule in rules
        ]
        return json.dumps(rows, indent=2)
    width = max(len(rule.id) for rule in rules)
    lines = []
    for rule in rules:
        about = ", ".join(rule.confirms) or say("arms.any_setting")
        head, indent = f"{rule.id:<{width}} {rule.cost:4g} s  ", " " * (width + 9)
        for text, first in ((shown(rule.question), head), (about, indent)):
            lines += wrapped(text, WIDTH, first=first, rest=indent)
    return "\n".join(lines)
