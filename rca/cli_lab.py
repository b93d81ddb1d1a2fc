"""The commands under `rca lab`: make jobs fail for real, and measure what experiments and analyses make of them."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rca.cli_command import Group
from rca.cli_types import Known

if TYPE_CHECKING:
    from rca.lab.faults import Variant

_FAULTS = click.option(
    "--faults", type=Known("fault", listed=True), default="", metavar="NAME,...", help="Only these faults."
)
_RUNS = click.option("--runs", type=click.Path(file_okay=False, path_type=Path), default=Path("lab_runs"),
                     show_default=True, help="Folder of the runs; what is missing is made.")  # fmt: skip
_JOBS = click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
                     help="Processes that work at once.")  # fmt: skip


class _Seeds(click.ParamType["tuple[int, ...]"]):
    """`3`, `0,1` or `100..104`."""

    name = "seeds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            parts = [part.split("..") for part in str(value).split(",")]
            return tuple(seed for part in parts for seed in range(int(part[0]), int(part[-1]) + 1))
        except ValueError:
            self.fail(f"{value!r} is no list of seeds; write 3, 0,1 or 100..104", param, ctx)


@click.group(cls=Group)
def lab() -> None:
    """Make tiny jobs fail for real and measure what experiments make of them."""


@lab.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print as one JSON document.")
def list_(as_json: bool) -> None:
    """List the faults that can be made, with their severities."""
    from rca.lab.faults import FAULTS

    if as_json:
        rows = [
            {"fault": fault.name, "cause": fault.cause, "title": fault.title,
             "severities": list(fault.severities), "unseen": list(fault.unseen)}
            for fault in FAULTS.values()
        ]  # fmt: skip
        click.echo(json.dumps(rows, indent=2))
        return
    for fault in FAULTS.values():
        severities = "; ".join([*fault.severities, *fault.unseen])
        click.echo(f"{fault.name}  {fault.cause}")
        click.echo(textwrap.fill(f"{fault.title} ({severities})", 80, initial_indent="    ", subsequent_indent="    "))


@lab.command("make")
@click.argument("fault", type=Known("fault"))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--severity", default="", metavar="NAME", help="How strong; `rca lab list` shows the names.")
@click.option("--architecture", default="", metavar="NAME", help="llama or gpt2, where the job has a transformer.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of weights and data.")
def make_(fault: str, out: Path, severity: str, architecture: str, seed: int) -> None:
    """Run a tiny job with FAULT and write OUT/run and OUT/truth.json."""
    from rca.lab.faults import variant
    from rca.lab.make import make

    make(variant(fault, severity=severity, architecture=architecture, seed=seed), out)
    click.echo(f"wrote {out}/run and {out}/truth.json")


@lab.command()
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default=Path("matrix.jsonl"), show_default=True,
              help="Verdicts, one JSON line each; what is there already is not measured again.")  # fmt: skip
@click.option(
    "--experiments", type=Known("experiment", listed=True), default="", metavar="ID,...", help="Only these experiments."
)
@click.option("--seeds", type=_Seeds(), default="0,1", show_default=True, metavar="LIST", help="3, 0,1 or 100..104.")
@click.option("--unseen", is_flag=True, help="The severities that are kept for the evaluation, both architectures.")
@click.option("--scenarios", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Measure trainings of a YAML file instead of runs of faults.")  # fmt: skip
@click.option("--write", "target", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write the counts of all verdicts in --out as a file of the knowledge base.")  # fmt: skip
@_FAULTS
@_RUNS
@_JOBS
def matrix(*, out: Path, experiments: str, seeds: tuple[int, ...], unseen: bool, scenarios: Path | None,
           target: Path | None, faults: str, runs: Path, jobs: int) -> None:  # fmt: skip
    """Carry out experiments on runs of faults and record the verdicts.

    Can be interrupted and started again. Of the experiments those are carried out that speak about what a run shows
    and concern its cause or one that the rules hold possible.
    """
    from rca.lab import likelihoods, measure
    from rca.lab.matrix import on_run, on_scenario
    from rca.lab.scenarios import scenarios as read_scenarios

    rows = measure.read(out)
    names = _names(experiments)
    done: dict[str, set[str]] = {}
    for row in rows:
        done.setdefault(row["run"], set()).add(row.get("experiment", ""))
    tasks: list[tuple[Any, ...]]
    if scenarios is not None:
        found = [item for item in read_scenarios(scenarios) if not faults or item.name in _names(faults)]
        tasks = [(item, names, frozenset(done.get(item.name, ()))) for item in found]
        results = measure.measured(_open(tasks, names, done), on_scenario, out, jobs=jobs)
    else:
        chosen = _variants(faults, seeds, unseen=unseen)
        tasks = [(item, runs, names, frozenset(done.get(item.name, ()))) for item in chosen]
        results = measure.measured(_open(tasks, names, done), on_run, out, jobs=jobs)
    for new in results:
        rows += new
        for row in new:
            if "verdict" in row:
                click.echo(f"{row['run']:<44} {row['experiment']:<20} {row['verdict']:<15} {row['seconds']:.1f} s")
    if target is not None:
        counted = likelihoods.write(target, rows, command=_command(out=out, target=target, seeds=seeds))
        click.echo(f"wrote {target}: outcomes on {counted} runs")


@lab.command()
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default=Path("evaluation.jsonl"),
              show_default=True, help="Results, one JSON line a run; what is there is not done again.")  # fmt: skip
@click.option("--seeds", type=_Seeds(), default="100", show_default=True, metavar="LIST", help="3, 0,1 or 100..104.")
@click.option("--budget", "budget_s", type=click.FloatRange(min=0), default=60.0, show_default=True, metavar="SECONDS",
              help="Time for the experiments of one analysis.")  # fmt: skip
@click.option("--recorded", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Verdicts of `rca lab matrix --unseen`, to replay other orders of experiments.")  # fmt: skip
@click.option("--write", "target", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write the figures as FILE.md and FILE.json.")  # fmt: skip
@click.option("--remark", "remarks", multiple=True, metavar="TEXT", help="Sentence for the page; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON document.")
@_FAULTS
@_RUNS
@_JOBS
def evaluate(*, out: Path, seeds: tuple[int, ...], budget_s: float, recorded: Path | None, target: Path | None,
             remarks: Sequence[str], as_json: bool, faults: str, runs: Path, jobs: int) -> None:  # fmt: skip
    """Analyse runs on which nothing was counted: other seeds, severities, sizes, and the second architecture too.

    Can be interrupted and started again.
    """
    from rca.lab import measure
    from rca.lab.evaluate import analysed
    from rca.lab.score import compare_orders, markdown, score
    from rca.output import write_text
    from rca.rules.load import load

    chosen = {item.name: item for item in _variants(faults, seeds, unseen=True)}
    rows = [row for row in measure.read(out) if row["run"] in chosen]
    known = {row["run"] for row in rows}
    tasks = [(item, runs, budget_s) for name, item in chosen.items() if name not in known]
    for new in measure.measured(tasks, analysed, out, jobs=jobs):
        rows += new
        for row in new if not as_json else ():
            said = row.get("error") or f"{row['first_before']} -> {row['first_after']} {row['seconds']:.1f} s"
            click.echo(f"{row['run']:<44} {row['cause']:<32} {said}")
    orders = None if recorded is None else compare_orders(measure.read(recorded), load().experiments)
    found = score(sorted(rows, key=lambda row: list(chosen).index(row["run"])), orders=orders)
    command = f"rca lab evaluate --seeds {_spelled(seeds)} --budget {budget_s:g} --jobs {jobs}"
    page = markdown(found, command=command, remarks=remarks)
    if target is not None:
        write_text(target.with_suffix(".md"), page, force=True)
        write_text(target.with_suffix(".json"), found.model_dump_json(indent=1) + "\n", force=True)
    click.echo(found.model_dump_json(indent=2) if as_json else page, nl=False)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _variants(faults: str, seeds: tuple[int, ...], *, unseen: bool) -> tuple[Variant, ...]:
    from rca.lab.faults import ARCHITECTURES
    from rca.lab.measure import variants

    return variants(_names(faults), seeds, unseen=unseen, architectures=ARCHITECTURES if unseen else ARCHITECTURES[:1])


def _open(tasks: list[tuple[Any, ...]], names: tuple[str, ...], done: dict[str, set[str]]) -> list[tuple[Any, ...]]:
    """Tasks of which something is left: all experiments of a run were carried out together."""
    return [task for task in tasks if (set(names) - done[task[0].name] if names else False) or task[0].name not in done]


def _command(*, out: Path, target: Path, seeds: tuple[int, ...]) -> str:
    return f"rca lab matrix --seeds {_spelled(seeds)} --out {out.name} --write {target.name}"


def _spelled(seeds: tuple[int, ...]) -> str:
    if len(seeds) > 1 and seeds == tuple(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}..{seeds[-1]}"
    return ",".join(map(str, seeds))
