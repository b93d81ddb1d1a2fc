"""The one pass: run directory -> events -> facts -> hypotheses -> experiments -> diagnosis."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import rca
from rca.baseline import Baseline
from rca.collect.evidence import hypotheses as collect_hypotheses
from rca.collect.evidence import shown_by
from rca.collect.overview import on_run, overview
from rca.collect.series import curves
from rca.collect.settings import settings
from rca.collect.timeline import timeline
from rca.collect.verdict import environment_findings, missing, verdict
from rca.diagnosis import Diagnosis, Hypothesis
from rca.events import EventTable
from rca.facts.failure.chronology import failure
from rca.facts.interface import Fact
from rca.facts.registry import CATALOGUE
from rca.facts.speed.trace import breakdowns
from rca.hypotheses.decide import answer
from rca.hypotheses.match import View, met_rules
from rca.hypotheses.score import NONE, Ranking, rank
from rca.ingest.context import lines_around
from rca.ingest.places.remote import Root, run_place
from rca.investigation import Options, tested
from rca.notes import Notes
from rca.observation import Progress, Readers, Reading, healthy_beside, observed, ranking_of, run_name
from rca.redact import Redactor, redact_diagnosis, redactor_for
from rca.redact.table import learn_settings, redacted_events
from rca.rules.load import Knowledge, load
from rca.rules.schema import Calibration
from rca.rules.testing import Judged
from rca.rules.words import maturity_note

if TYPE_CHECKING:
    from rca.agent import Investigation


__all__ = ["Analysis", "Options", "analyze", "examine", "judge", "observe", "order"]


@dataclass(frozen=True)
class Analysis:
    """The diagnosis and what it came from."""

    diagnosis: Diagnosis
    events: EventTable
    ranking: Ranking
    """What the rules alone say."""
    view: View
    redactor: Redactor
    """What put the placeholders into the diagnosis."""
    interrupted: bool = False
    """The user stopped the experiments; the diagnosis holds what was found before."""

    def shown_events(self) -> EventTable:
        """Return the events with the placeholders of the diagnosis, to be kept outside of this machine."""
        return redacted_events(self.events, self.redactor)


def analyze(
    run_dir: str | Path,
    *,
    rules: Sequence[Path] = (),
    disabled: Sequence[str] = (),
    baseline: str | Path | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Find out why the job that left `run_dir` behind failed or trains badly.

    `run_dir` and `baseline` are folders, archives, or URLs of either in a store that fsspec opens (`s3://bucket/run`).
    `rules` are further knowledge folders, `disabled` ids of rules to leave out, `baseline` is a healthy run of the
    same job. Raises UsageError for a directory that does not exist and for a baseline that cannot be read,
    NothingReadable for a run without a readable file, KnowledgeError for a wrong rule file.
    """
    knowledge = load(rules, disabled=disabled)
    chosen = options or Options()
    if baseline is not None:
        chosen = replace(chosen, baseline=run_place(baseline))
    return examine(run_place(run_dir), knowledge, options=chosen, progress=progress).diagnosis


def examine(run_dir: Root, knowledge: Knowledge, *, options: Options, progress: Progress | None = None) -> Analysis:
    """Analyse a run directory with knowledge that is loaded already; see `analyze`."""
    notes = Notes(strict=options.strict)
    tell = progress or _silent
    readers = Readers(jobs=options.jobs, cluster=options.cluster)
    seen = observed(run_dir, knowledge, notes, baseline=options.baseline, readers=readers, tell=tell)
    reading, view, facts = seen.reading, seen.view, seen.facts
    events = reading.events
    with notes.timed("rank"):
        tell("rank", 0, 1)
        ranking = ranking_of(view, knowledge)
        found = collect_hypotheses(
            ranking.candidates, events, facts, context=partial(lines_around, reading.sources), meanings=CATALOGUE
        )
    with notes.timed("experiments"):
        tell("experiments", 0, 1)
        investigation = tested(
            found, run_dir=run_dir, knowledge=knowledge, seen=seen, options=options, notes=notes, tell=tell
        )
    with notes.timed("collect"):
        diagnosis = _diagnosis(
            run_dir,
            reading,
            facts=facts,
            baseline=seen.baseline,
            ranking=ranking,
            before=found,
            after=investigation,
            knowledge=knowledge,
            notes=notes,
        )
    with notes.timed("unexplained"):
        diagnosis = _with_unexplained(diagnosis, reading, view=view, knowledge=knowledge, notes=notes)
    with notes.timed("redact"):
        redactor = redactor_for(diagnosis, mode=options.redact, hosts=seen.hosts)
        learn_settings(events, redactor)
        diagnosis = redact_diagnosis(diagnosis, redactor=redactor)
        if diagnosis.unexplained is not None:
            from rca.unexplained.draft import with_draft

            diagnosis = with_draft(diagnosis)
    diagnosis = diagnosis.model_copy(update={"timings": dict(notes.timings)})
    stopped = investigation.interrupted
    return Analysis(diagnosis, events=events, ranking=ranking, view=view, redactor=redactor, interrupted=stopped)


def judge(run_dir: Path, knowledge: Knowledge) -> Judged:
    """Return what the rules alone make of a run."""
    view = observe(run_dir, knowledge)
    return Judged(order(view, knowledge), partial(met_rules, view=view))


def observe(run_dir: Path, knowledge: Knowledge) -> View:
    """Return what a run shows, to which causes are put; what a plug-in raises is raised.

    A folder `baseline` beside a folder `run` is the healthy run that belongs to it.
    """
    healthy = healthy_beside(run_dir)
    return observed(run_dir, knowledge, Notes(strict=True), baseline=healthy, readers=Readers(), tell=_silent).view


def order(view: View, knowledge: Knowledge) -> tuple[str, ...]:
    """Return the verdict and then the causes by falling probability, for a run that was observed before.

    It is the answer on the scale of the authors, without what was fitted: a case tells whether its rules agree with
    each other, and a fit must not change that.
    """
    authors = Calibration()
    ranking = rank(knowledge.causes.values(), view, signatures=knowledge.signatures, calibration=authors)
    chosen, _ = answer(ranking, authors)
    others = [item.cause.id for item in ranking.candidates if item.cause.id not in {NONE, chosen}]
    return (chosen, *others)


def _diagnosis(
    run_dir: Root,
    reading: Reading,
    *,
    facts: Mapping[str, Fact],
    baseline: Baseline | None,
    ranking: Ranking,
    before: Sequence[Hypothesis],
    after: Investigation,
    knowledge: Knowledge,
    notes: Notes,
) -> Diagnosis:
    events = reading.events
    observed = notes.guarded("the description of the failure", lambda: failure(events, facts), None)
    # What the experiments took from or gave to the listed causes, the unlisted outcomes share in proportion.
    listed = sum(item.probability for item in before)
    left = (1 - sum(item.probability for item in after.hypotheses)) / (1 - listed) if listed < 1 else 0.0
    healthy = sum(item.probability for item in ranking.candidates if item.cause.id == NONE)
    chosen = verdict(
        after.hypotheses,
        unknown=ranking.unknown * left,
        healthy=healthy * left,
        healthy_cause=knowledge.causes.get(NONE),
        failure=observed,
        calibration=knowledge.calibration,
        well=[
            item
            for candidate in ranking.candidates
            if candidate.cause.id == NONE
            for item in shown_by(candidate, events, facts, context=partial(lines_around, reading.sources))
        ],
    )
    first = facts.get("failure.event")
    return Diagnosis(
        rca_version=rca.__version__,
        generated=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z"),
        run=overview(run_name(run_dir), str(run_dir), events, reading.records),
        verdict=chosen,
        failure=observed,
        hypotheses=after.hypotheses,
        experiments=on_run(after.experiments, str(run_dir)),
        log=after.rounds,
        series=curves(events),
        breakdowns=notes.guarded("the step breakdown", lambda: breakdowns(events), ()),
        timeline=timeline(events, failure_event=first.events[0] if first is not None and first.events else None),
        settings=settings(events, baseline=baseline),
        baseline=baseline,
        environment_findings=environment_findings(after.hypotheses, chosen),
        sources=reading.records,
        warnings=(
            *knowledge.notes,
            *maturity_note(knowledge.causes.get(chosen.cause)),
            *(baseline.notes if baseline else ()),
            *notes.warnings,
        ),
        missing=missing(after.hypotheses, chosen),
    )


def _with_unexplained(
    diagnosis: Diagnosis, reading: Reading, *, view: View, knowledge: Knowledge, notes: Notes
) -> Diagnosis:
    """Add what helps a reader on where the answer is open."""
    from rca.unexplained.collect import Run, is_wanted, next_step, unexplained

    if not is_wanted(diagnosis.verdict):
        return diagnosis
    run = Run(sources=reading.sources, records=reading.records, view=view, failure=diagnosis.failure)
    found = notes.guarded("the search for odd lines", lambda: unexplained(run, knowledge), None)
    warnings = tuple(dict.fromkeys((*diagnosis.warnings, *notes.warnings)))
    chosen = diagnosis.verdict
    if found is not None and chosen.status == "unknown" and not chosen.next_step:
        chosen = chosen.model_copy(update={"next_step": next_step(found)})
    return diagnosis.model_copy(update={"unexplained": found, "verdict": chosen, "warnings": warnings})


def _silent(_stage: str, _done: int, _total: int) -> None:
    return
