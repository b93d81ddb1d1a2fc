"""Repeat one experiment of a report:  python -m rca.experiments.repeat '{"experiment": ..., "profile": {...}}'"""

from __future__ import annotations

import json
import sys

from pydantic import ValidationError

from rca.errors import RcaError, UsageError
from rca.experiments.interface import RunProfile
from rca.experiments.run import experimenter
from rca.rules.load import load


def repeat(text: str) -> str:
    """Carry out the experiment that `text` describes and return it as JSON.

    Raises UsageError for a wrong description.
    """
    try:
        request = json.loads(text)
        profile = RunProfile.model_validate(request["profile"])
        name = request["experiment"]
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise UsageError(
            f"this is not the description of an experiment, copy it whole from the report: {error}"
        ) from error
    rules = load().experiments
    if name not in rules:
        raise UsageError(f"there is no experiment `{name}`; there are {', '.join(sorted(rules))}")
    found = experimenter(
        rules[name], profile=profile, device=request.get("device", "cpu"), seconds=float(request.get("seconds", 120))
    )
    return found.model_dump_json(indent=2)


if __name__ == "__main__":
    try:
        print(repeat(sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read()))
    except RcaError as error:
        sys.exit(f"error: {error}")
