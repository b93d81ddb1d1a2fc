"""`split_overlap`: does the held-out split share samples with the training?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rca.errors import ExperimentError
from rca.experiments.checks.check import Asked, Check, Outcome
from rca.experiments.checks.files import sample_root

SHARED = 0.01
"""Share of the held-out samples from which an overlap counts; below it a score hardly moves."""
CHANCE = 2.0
"""The held-out split must repeat the training this many times as often as the training repeats itself."""
FEW = 20
"""Held-out samples below which their being apart proves nothing."""


def measure(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Compare both splits in the child process."""
    from rca.experiments.checks.overlap import measure as compare

    return compare(settings)


def judge(asked: Asked) -> Outcome:
    """Share of held-out samples that stand in the training as well, with its interval."""
    place = sample_root(asked.material)
    if place is None:
        raise ExperimentError("there is neither a run directory nor --data")
    found = asked.measure({"root": str(place[0]), "named": place[1]})
    if "telling" not in found:
        raise ExperimentError(
            f"{found['train']} training samples and {found['held_out']} held-out ones were found, too few to compare; "
            "their files or folders need train and val, valid, dev, eval or test in their names"
        )
    total = found["telling"]
    if not total:
        raise ExperimentError("the held-out samples are too short to tell a copy from a chance")
    same, near = found["exact"] + found["plain"], found["near"]
    hits = same + near
    low, high = wilson(hits, total)
    repeats = found["train_repeats"]
    details = (
        *((f"{side} files", ", ".join(f"{file} ({count:,})" for file, count in files.items()))
          for side, files in found["files"].items()),
        ("shared", f"{hits / total:.1%} of {total:,} (95 % interval {low:.1%} to {high:.1%})"),
        ("the same in every byte", str(found["exact"])),
        ("the same words", str(found["plain"])),
        ("most of the same phrases", f"{near} of {found['compared_near']:,} compared with {found['known_near']:,}"),
        ("repetitions within the training", f"{repeats:.1%}"),
        *((f"held-out samples whose {name} the training has", f"{shared:,} of {held:,}")
          for name, _being, shared, held in found["groups"][:4]),
        *((one, f"is {other}") for one, other in found["pairs"][:4]),
        *((one, f"is {score:.0%} {other}") for one, other, score in found["near_pairs"][:4]),
    )  # fmt: skip
    scope = (
        "samples of both splits by their content"
        f"{'' if found['compared_near'] else '; near duplicates only where samples are text'}"
        "; groups (one patient or scene on both sides) show only where a column names them"
    )
    said = f"{hits:,} of {total:,} held-out samples ({hits / total:.1%}) are in the training"
    if low >= SHARED and hits / total <= CHANCE * repeats:
        said += f", but the training repeats itself as often ({repeats:.1%}): such samples may be common by nature"
        return Outcome("inconclusive", f"{said}.", scope, details)
    if low < SHARED:
        grouped = _grouped(found["groups"], scope, details)
        if grouped is not None:
            return grouped
    if low >= SHARED:
        kinds = f"{same:,} word for word" + (f", {near:,} nearly so" if near else "")
        return Outcome("confirmed", f"{said}, {kinds}.", scope, details)
    if hits:
        return Outcome("inconclusive", f"{said}; too few to explain a score.", scope, details)
    if not found["whole"] or total < FEW or found["places_only"]:
        why = "not every sample was left and read" if not found["whole"] else f"{total} samples are few"
        why = "only their names were left" if found["places_only"] else why
        return Outcome("inconclusive", f"{said}, but {why}.", scope, details)
    return Outcome("refuted", f"None of {total:,} held-out samples is in the training.", scope, details)


def _grouped(groups: list[Any], scope: str, details: tuple[tuple[str, str], ...]) -> Outcome | None:
    """Judge by columns that name a group: a being on both sides leaks, a place or device may."""
    for name, being, shared, held in sorted(groups, key=lambda item: (not item[1], -item[2])):
        if wilson(shared, held)[0] >= SHARED:
            said = f"{shared:,} of {held:,} held-out samples have a {name} that the training has as well"
            words = f"{said}; no sample itself stands on both sides."
            return Outcome("confirmed" if being else "inconclusive", words, scope, details)
    return None


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a rate (Wilson's score)."""
    if total == 0:
        return 0.0, 1.0
    z = 1.959964
    rate, spread = hits / total, z * z / total
    middle = (rate + spread / 2) / (1 + spread)
    half = z * math.sqrt(rate * (1 - rate) / total + spread / (4 * total)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


CHECK = Check(judge, measure)
