"""From ranked hypotheses to tested ones: what experiments get to know of the run, and what they may use."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rca.diagnosis import Hypothesis
from rca.ingest.places.remote import Root
from rca.notes import Notes
from rca.observation import Observed, Progress
from rca.rules.load import Knowledge
from rca.rules.schema import ExperimentRule

if TYPE_CHECKING:
    from rca.agent import Investigation
    from rca.experiments.interface import Material

RedactMode = Literal["default", "strict", "none"]


@dataclass(frozen=True)
class Options:
    """How an analysis is done."""

    experiments: str = "auto"
    """`auto`, `all`, `none` or experiment ids separated by commas."""
    budget_s: float = 60.0
    """Seconds that experiments may take altogether."""
    limit_s: float | None = None
    """Seconds that one experiment may take; None: all that is left."""
    device: str = "auto"
    data: Path | None = None
    """Samples of the run, a file or a folder, which experiments use in place of synthetic ones."""
    twin: str | None = None
    """`FILE.py:FUNCTION` that builds a model in place of the tiny twin; this program is run."""
    redact: RedactMode = "default"
    jobs: int = 1
    """Processes that read files; 0 for one per processor. For few bytes none is started."""
    cluster: str | None = None
    """Address of the scheduler of a Dask cluster whose workers read the files (`tcp://host:8786`)."""
    strict: bool = False
    """Raise what a plug-in raises instead of noting it in the report."""
    baseline: Root | None = None
    """Directory of a healthy run of the same job, to compare with."""
    partial: bool = False
    """Ctrl-C during the experiments ends them and gives what was found so far, instead of raising KeyboardInterrupt."""


def tested(
    found: Sequence[Hypothesis],
    *,
    run_dir: Root,
    knowledge: Knowledge,
    seen: Observed,
    options: Options,
    notes: Notes,
    tell: Progress,
) -> Investigation:
    """Test the hypotheses by experiment as the options say; without experiments they stay as they are.

    Raises KeyboardInterrupt when the user stopped it and `options.partial` does not ask for what was found before.
    """
    from rca.agent import INTERRUPTED, Investigation, investigate

    started = time.monotonic()
    untouched = Investigation(hypotheses=tuple(found), experiments=(), rounds=())
    if options.experiments == "none":
        return untouched

    def call() -> Investigation:
        from rca.experiments.profile import run_profile
        from rca.experiments.run import telling

        material = _material(run_dir, seen, options)
        return investigate(
            found,
            _experiments(knowledge, material, options.experiments),
            run_profile(seen.reading.events, seen.facts),
            telling(tell),
            budget_s=options.budget_s - (time.monotonic() - started),
            limit_s=options.limit_s,
            device=options.device,
            choose=options.experiments,
            material=material,
            untestable=knowledge.untestable,
        )

    try:
        after = notes.guarded("the experiments", call, untouched)
    except KeyboardInterrupt:
        after = replace(untouched, interrupted=True)
    if after.interrupted:
        from rca.experiments.run import close

        close()
        if not options.partial:
            raise KeyboardInterrupt
        notes.warnings.append(f"{INTERRUPTED} The experiments that did not run could have settled more.")
    return after


def _material(run_dir: Root, seen: Observed, options: Options) -> Material:
    """Return what experiments may use beside the profile; a healthy run only where its differences count."""
    from rca.experiments.interface import Material
    from rca.experiments.profile import run_profile

    healthy = seen.view.healthy if seen.baseline is not None and seen.baseline.used else None
    return Material(
        folder=run_dir if isinstance(run_dir, Path) else None,
        elsewhere="" if isinstance(run_dir, Path) else str(run_dir),
        data=options.data,
        twin=options.twin,
        baseline=None if healthy is None else run_profile(healthy.events, healthy.facts),
    )


def _experiments(knowledge: Knowledge, material: Material, asked: str) -> Mapping[str, ExperimentRule]:
    """Return the experiments of the knowledge base and, with a healthy run, the search for the settings that matter."""
    from rca.experiments.bisect import BISECTION

    own = {BISECTION.id: BISECTION} if material.baseline is not None or BISECTION.id in asked else {}
    return {**knowledge.experiments, **own}
