"""Two runs to one comparison, with what makes it worth less."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rca.baseline import Baseline
from rca.compare.curves import compare_curves
from rca.compare.interface import Side
from rca.compare.messages import compare_messages, said_by_both, severity_of
from rca.compare.settings import compare_settings, setting_names
from rca.facts.interface import Facts
from rca.templates.mine import Mined, mined_together

ALIKE = 0.3
"""Share of common settings or messages, of the run that has fewer, below which two runs are not the same job: runs of
one job share most of either, other programs share the names of a few settings."""
TELLING = 5
"""Settings or messages that both must have before a share of them says anything."""

ILL = 0.5
"""Probability of a cause from which a run is no healthy one."""
LISTED = "The differences are listed and count for nothing."


class Opposed(NamedTuple):
    """Two runs laid beside each other before the facts of the one in question are computed."""

    healthy: Side
    mined: Mapping[str, Mined]
    """Templates of `run` and `healthy`, mined together."""
    notes: tuple[str, ...]
    """What makes the comparison worth nothing; then differences are shown and are no evidence."""
    alike: float | None
    ordinary: frozenset[int]
    """Events of the run whose message the healthy run says as well."""


def doubts(facts: Facts, cause: str, probability: float) -> tuple[str, ...]:
    """Return why a run is no healthy one, given its facts and what the rules make of it."""
    failed = facts.get("run.failed")
    if failed is not None and failed.value is True:
        found = f"The baseline failed itself ({cause}, {probability:.0%})."
    elif cause not in {"none", "unknown"} and probability >= ILL:
        found = f"The baseline is not healthy itself ({cause}, {probability:.0%})."
    else:
        return ()
    return (f"{found} {LISTED}",)


def oppose(run: Side, healthy: Side) -> Opposed:
    """Find out whether two runs are the same job, and which messages mean nothing because both say them."""
    mined = mined_together({"healthy": healthy.logs, "run": run.logs})
    alike = _alike(setting_names(run), setting_names(healthy), _plain(mined["run"]), _plain(mined["healthy"]))
    told = list(healthy.doubts)
    if alike is not None and alike < ALIKE:
        told.append(
            f"The two runs have only {alike:.0%} of their settings or messages in common: is it the same job? {LISTED}"
        )
    return Opposed(
        healthy=healthy,
        mined=mined,
        notes=tuple(told),
        alike=alike,
        ordinary=frozenset() if told else said_by_both(run, healthy),
    )


def compare(run: Side, opposed: Opposed) -> Baseline:
    """Return everything that differs between a run and a healthy run of the same job."""
    healthy = opposed.healthy
    settings = compare_settings(run, healthy)
    steps = healthy.facts.get("run.steps_done")
    return Baseline(
        name=healthy.name,
        path=healthy.path,
        files=healthy.files,
        steps=None if steps is None else int(steps.value),
        used=not opposed.notes,
        notes=opposed.notes,
        alike=None if opposed.alike is None else round(opposed.alike, 3),
        differences=settings.differences,
        unchanged=settings.unchanged,
        same=settings.same,
        curves=compare_curves(run, healthy),
        messages=compare_messages(run, healthy, opposed.mined),
    )


def _alike(
    settings: frozenset[str], other_settings: frozenset[str], messages: frozenset[int], other_messages: frozenset[int]
) -> float | None:
    """The larger of the two shares in common; None where either run says too little to tell."""
    shares = [
        len(ours & theirs) / fewer
        for ours, theirs in ((settings, other_settings), (messages, other_messages))
        if (fewer := min(len(ours), len(theirs))) >= TELLING
    ]
    return max(shares, default=None)


def _plain(mined: Mined) -> frozenset[int]:
    """Templates that are no part of an error: a run that broke at once says little else."""
    return frozenset(
        item.number for item in mined.templates if severity_of(item.example) != "error" and item.example[:1].strip()
    )
