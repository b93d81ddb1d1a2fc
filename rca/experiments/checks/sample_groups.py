"""Groups (one patient, one scene) that stand on both sides of a split, where a column names them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rca.experiments.checks.files import side_of
from rca.experiments.checks.sample_formats import Samples

SPLIT_COLUMNS = ("split", "subset", "partition")
"""Columns that say which side of the split a row is on."""
_ONE_BEING = r"patient|subject|speaker|person|participant|animal"
_GROUP = re.compile(
    rf"(?:^|_)(?:{_ONE_BEING}|client|customer|user|scene|video|session|series|study|scan|slide|source|site|group|document|"
    r"recording|clip|author|well|plot|field)(?:_?(?:id|name|no|number|uid|key))?$",
    re.I,
)


def shared_groups(tables: Sequence[Samples]) -> list[tuple[str, bool, int, int]]:
    """Return (column, whether it names one being, held-out samples of a group of the training, held-out samples)."""
    sides: dict[str, dict[str, list[str]]] = {}
    for table in tables:
        splits = next((name for name in table.columns if name.lower() in SPLIT_COLUMNS), None)
        named = side_of(table.file)
        for name in table.columns:
            if not _GROUP.search(name) or (splits is None and named is None):
                continue
            for row in range(table.rows):
                side = named if splits is None else side_of(str(table.columns[splits][row]))
                value = table.columns[name][row]
                if side is not None and value is not None and not isinstance(value, (list, dict)):
                    sides.setdefault(name, {}).setdefault(side, []).append(str(value))
    found = []
    for name, values in sorted(sides.items()):
        known, held = set(values.get("train", ())), values.get("held out", [])
        # A column that tells every sample apart is no group, and one with a single value tells nothing.
        if len(known) >= 2 and 2 * len(known) <= len(values["train"]) and held:
            shared = sum(value in known for value in held)
            found.append((name, bool(re.search(_ONE_BEING, name, re.I)), shared, len(held)))
    return found
