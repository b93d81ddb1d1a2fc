"""`rca eval`: how often the answer is right on labelled incidents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from rca.cli_command import Command
from rca.cli_experiment import seconds
from rca.cli_rules import RULES
from rca.cli_types import Known
from rca.errors import UsageError


@click.command("eval", cls=Command)
@click.argument("cases_dir", type=click.Path(path_type=Path))
@click.option("--experiments", type=Known("experiment", "auto", "all", "none", listed=True), default="none",
              show_default=True, metavar="auto|all|none|ID,...", help="Which experiments may run.")  # fmt: skip
@click.option("--budget", default="60s", show_default=True, metavar="TIME", help="Time for all of one case: 30s, 5m.")
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
