"""The commands under `rca rules`: look at, write, check and test the knowledge base."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from rca.cli_command import Group
from rca.cli_types import Known
from rca.errors import UsageError

_JSON = click.option("--json", "as_json", is_flag=True, help="Print as one JSON document.")
RULES = click.option(
    "--rules", type=click.Path(path_type=Path), multiple=True, metavar="DIR", help="Further rule folders; repeatable."
)
DISABLE = click.option(
    "--disable", type=Known("rule"), multiple=True, metavar="ID", help="Rule ids to leave out; repeatable."
)
_KINDS = ("cause", "signature", "experiment")
_MATURITIES = ("experimental", "test", "stable")


@click.group(cls=Group)
def rules() -> None:
    """Look at, write, check and test the rules."""


@rules.command("list")
@click.argument("prefix", type=Known("rule"), default="")
@click.option("--kind", type=click.Choice(_KINDS), help="Only rules of this kind.")
@click.option("--domain", metavar="NAME", help="Only ids of this domain, the part before the first dot.")
@click.option("--maturity", type=click.Choice(_MATURITIES), help="Only causes of this maturity.")
@click.option("--emitter", metavar="NAME", help="Only signatures of this software: nccl, pytorch, slurm, ...")
@RULES
@DISABLE
@_JSON
def list_(prefix: str, rules: Sequence[Path], disable: Sequence[str], as_json: bool, **filters: str | None) -> None:
    """List causes, signatures and experiments whose id starts with PREFIX."""
    from rca.rules.listing import Filter, rows, table
    from rca.rules.load import load

    found = rows(load(rules, disabled=disable), Filter(prefix, **filters))
    click.echo(json.dumps([asdict(row) for row in found], indent=2) if as_json else table(found))


@rules.command()
@click.argument("rule_id", type=Known("rule"), metavar="ID")
@RULES
@_JSON
def show(rule_id: str, rules: Sequence[Path], as_json: bool) -> None:
    """Print the text that defines the cause, signature or experiment ID."""
    from rca.rules.listing import definition, rule
    from rca.rules.load import load

    knowledge = load(rules)
    if as_json:
        click.echo(rule(knowledge, rule_id).model_dump_json(indent=2, by_alias=True, exclude_defaults=True))
    else:
        click.echo(definition(knowledge, rule_id), nl=False)


@rules.command()
@click.argument("cause")
@click.option("--rules", type=click.Path(path_type=Path), required=True, metavar="DIR",
              help="Folder of your rules; made when it is not there.")  # fmt: skip
@click.option("--from-line", "line", metavar="TEXT",
              help="The log line that gives the cause away; - reads it from standard input.")  # fmt: skip
def new(cause: str, rules: Path, line: str | None) -> None:
    """Write a new cause CAUSE (domain.name) and its cases, ready to be filled in."""
    from rca.ingest.logs.prefixes import PrefixParser, strip_colours
    from rca.ingest.logs.timestamps import Clock
    from rca.rules.scaffold import scaffold

    if line == "-":
        line = sys.stdin.readline().rstrip("\n")
    message = None if line is None else PrefixParser(Clock()).parse(strip_colours(line), 1).message
    written = scaffold(cause, rules, line=line, message=message)
    for file in written:
        click.echo(f"wrote {file}")
    click.echo(
        f"Fill in what says FILL IN, then:\n  rca rules check --rules {rules} && rca rules test {cause} --rules {rules}"
    )


@rules.command()
@RULES
@DISABLE
@_JSON
def check(rules: Sequence[Path], disable: Sequence[str], as_json: bool) -> None:
    """Check rule files: ids, examples, references, conditions that repeat, exclude or never meet.

    With --rules: those of the given folders, else those that come with rca.
    """
    from rca.facts.registry import CATALOGUE
    from rca.hypotheses.score import FIRST_FAILURE_BONUS, UNKNOWN_BASELINE, UNKNOWN_PRIOR
    from rca.ingest.names import canonical_config
    from rca.rules.check import check
    from rca.rules.load import load
    from rca.rules.testing import lies_in

    knowledge = load(rules, disabled=disable)
    to_beat = math.log(UNKNOWN_PRIOR) + UNKNOWN_BASELINE - FIRST_FAILURE_BONUS
    findings = [
        finding
        for finding in check(knowledge, facts=CATALOGUE, common_name=canonical_config, to_beat=to_beat)
        if not rules or lies_in(finding.file, rules)
    ]
    errors = sum(finding.level == "error" for finding in findings)
    if as_json:
        click.echo(json.dumps([finding.as_json() for finding in findings], indent=2))
    else:
        for finding in findings:
            click.echo(str(finding))
    if errors:
        raise UsageError(f"errors in the rules: {errors}; each line above names the file and what to change")
    if not as_json:
        click.echo(f"{len(knowledge.signatures)} signatures, {len(knowledge.causes)} causes, "
                   f"{len(knowledge.experiments)} experiments: no error, {len(findings)} warnings")  # fmt: skip


@rules.command()
@click.argument("prefix", type=Known("cause"), default="")
@RULES
@DISABLE
@_JSON
def test(prefix: str, rules: Sequence[Path], disable: Sequence[str], as_json: bool) -> None:
    """Run the fires and silent cases of the causes whose id starts with PREFIX.

    Without PREFIX: of the causes that the folders given with --rules define or extend, else of all.
    """
    from rca.pipeline import judge
    from rca.rules.load import load
    from rca.rules.testing import chosen, run_cases

    knowledge = load(rules, disabled=disable)
    causes = chosen(knowledge, prefix, rules)
    results = []
    for result in run_cases(knowledge, causes, lambda run: judge(run, knowledge)):
        results.append(result)
        if not as_json and not result.passed:
            click.echo(f"FAILED {result.cause} {result.kind}: {': '.join(filter(None, (result.name, result.why)))}")
    if as_json:
        click.echo(json.dumps([asdict(result) for result in results], indent=2))
    failed = sum(not result.passed for result in results)
    if failed:
        raise UsageError(f"{failed} of {len(results)} cases failed")
    if not as_json:
        click.echo(f"all {len(results)} cases passed, of causes: {len(causes)}")


@rules.command()
@click.argument("prefix", type=Known("cause"), default="")
@RULES
@_JSON
def mutate(prefix: str, rules: Sequence[Path], as_json: bool) -> None:
    """List the rules of causes whose id starts with PREFIX that can be taken away without a case that fails.

    A rule that no case misses is not tested: give a case that `shows` it, or remove it.
    """
    from rca.mutation import observed_cases, unheld_exchanges, unheld_rules
    from rca.rules.load import load
    from rca.rules.testing import chosen

    knowledge = load(rules)
    cases = observed_cases(knowledge)
    found = []
    for cause in chosen(knowledge, prefix, rules):
        for unheld in (*unheld_rules(cause, knowledge, cases), *unheld_exchanges(cause, knowledge, cases)):
            found.append(unheld)
            if not as_json:
                click.echo(f"{unheld.cause}: {unheld.what}")
    if as_json:
        click.echo(json.dumps([asdict(unheld) for unheld in found], indent=2))
    else:
        click.echo(f"{len(found)} changes that none of {len(cases)} cases notices")


@rules.command()
@click.argument("kind", type=click.Choice(("signatures", "cause", "cases", "experiment", "taxonomy")), default="cause")
@click.option("--write", type=click.Path(path_type=Path), metavar="DIR",
              help="Write all of them to DIR/schemas, where the first line of rule files looks for them.")  # fmt: skip
def schema(kind: str, write: Path | None) -> None:
    """Print the JSON Schema of a KIND of rule file, for editors and other tools."""
    from rca.rules.json_schemas import schema_text, write_schemas

    if write is None:
        click.echo(schema_text(kind), nl=False)
        return
    for file in write_schemas(write):
        click.echo(f"wrote {file}")


@rules.command()
@click.argument("page", type=click.Choice(("causes", "signatures", "field-guide")), default="causes")
@click.option("--write", type=click.Path(path_type=Path), metavar="DIR", help="Write all pages to DIR.")
@RULES
def reference(page: str, write: Path | None, rules: Sequence[Path]) -> None:
    """Print a PAGE of the reference, generated from the rules, as Markdown."""
    from rca.rules.load import load
    from rca.rules.reference import PAGES, write_pages

    knowledge = load(rules)
    if write is None:
        click.echo(PAGES[page](knowledge), nl=False)
        return
    for file in write_pages(knowledge, write):
        click.echo(f"wrote {file}")
