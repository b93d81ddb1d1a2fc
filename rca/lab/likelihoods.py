"""From verdicts on runs with a known cause to the counts in `likelihoods.yaml`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import yaml

from rca.experiments.information import OUTCOME_OF
from rca.lab.measure import Row
from rca.output import write_text
from rca.rules.json_schemas import editor_line
from rca.rules.measured import OutcomeCounts

_PACKAGES = ("torch", "transformers", "numpy")


def counted(rows: Iterable[Row]) -> dict[str, dict[str, OutcomeCounts]]:
    """Return experiment -> cause -> how often it ended in which way; verdicts that say nothing are left out."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for row in rows:
        outcome = OUTCOME_OF.get(row.get("verdict", "error"))
        if outcome is not None:
            counts = found.setdefault(row["experiment"], {}).setdefault(row["cause"], {})
            counts[outcome] = counts.get(outcome, 0) + 1
    return {
        name: {cause: OutcomeCounts.model_validate(counts) for cause, counts in sorted(causes.items())}
        for name, causes in sorted(found.items())
    }


def write(file: Path, rows: Iterable[Row], *, command: str) -> int:
    """Write the counts and return the number of runs behind them."""
    rows = list(rows)
    runs = len({row["run"] for row in rows if OUTCOME_OF.get(row.get("verdict", "error")) is not None})
    versions = {name: version(name) for name in _PACKAGES}
    lines = [
        editor_line("likelihoods", up=0),
        "# Outcomes of experiments on runs whose cause is known. Written by the command below; do not edit.",
        yaml.safe_dump({"command": command, "versions": versions, "runs": runs}, sort_keys=False, width=119).rstrip(),
        "outcomes:",
    ]
    for name, causes in counted(rows).items():
        lines.append(f"  {name}:")
        for cause, counts in causes.items():
            lines.append(
                f"    {cause}: {{confirmed: {counts.confirmed}, refuted: {counts.refuted}, "
                f"inconclusive: {counts.inconclusive}}}"
            )
    write_text(file, "\n".join(lines) + "\n", force=True)
    return runs
