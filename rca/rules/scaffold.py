"""Writes the two files of a new cause; unfilled, its test fails."""

from __future__ import annotations

import re
from pathlib import Path

from rca.errors import UsageError

_CAUSE = """\
id: {cause}
title: {title}
sentence: FILL IN, say in one sentence, past tense, what went wrong.
summary: >-
  FILL IN, two to five sentences: what goes wrong, why, and how it looks from outside.
prior: 0.005            # share of failed jobs with this cause before anything is known
evidence:
  - id: message
    log: "FILL IN, a pattern (RE2 syntax) of the line that gives it away"
    weight: 4           # nats: 1 supports, 3 is strong, 5 decides
    required: true      # without it the cause is not considered
    says: FILL IN, what a reader learns from that line.
contradicts: []
explains: []            # causes and signatures that are then only symptoms
fixes:
  - action: FILL IN, what to do, imperative.
    why: FILL IN
    snippet: ""
decide:
  - FILL IN, the cheapest step that would settle it.
falsepositives: []
maturity: experimental
references: []
"""
_CASES = """\
# `fires`: the cause must come first; `silent`: it must not.
# Items give log:, series:, config:, packages: or run: (a folder beside this file).
fires:
  - name: FILL IN, the plain case
    log: |
      FILL IN, paste a real log
silent:
  - name: FILL IN, looks alike, is something else
    why: FILL IN, what makes it look like this cause
    log: |
      FILL IN, paste a real log
"""


def scaffold(cause: str, folder: Path) -> tuple[Path, Path]:
    """Write `folder/<domain>/<name>.yaml` and its cases file. Raises UsageError for a bad id or an existing file."""
    if not re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", cause):
        raise UsageError(f"{cause!r} is not a cause id; write domain.name in lower case, e.g. acme.lease_expired")
    domain, name = cause.split(".")
    file = folder / domain / f"{name}.yaml"
    cases = file.with_name(f"{name}.cases.yaml")
    for target in (file, cases):
        if target.exists():
            raise UsageError(f"{target} exists already; edit it, or choose another id")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_CAUSE.format(cause=cause, title=name.replace("_", " ").capitalize()), encoding="utf-8")
    cases.write_text(_CASES, encoding="utf-8")
    return file, cases
