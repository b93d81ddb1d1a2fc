"""The one pass: run directory -> events -> facts -> hypotheses -> experiments -> diagnosis."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import rca
from rca.baseline import Baseline
from rca.collect.evidence import hypotheses as collect_hypotheses
from rca.collect.overview import overview
from rca.collect.series import curves
from rca.collect.settings import settings
from rca.collect.timeline import timeline
from rca.collect.verdict import environment_findings, missing, verdict
from rca.diagnosis import Diagnosis, Hypothesis, SourceRecord
from rca.errors import NothingReadable, UsageError
from rca.events import EventTable
from rca.facts.baseline import baseline_facts
from rca.facts.chronology import failure
from rca.facts.interface import Fact, FactFunction
from rca.facts.registry import ALL as FACT_FUNCTIONS
from rca.facts.registry import CATALOGUE
from rca.facts.trace import breakdowns
from rca.hypotheses.decide import answer
from rca.hypotheses.match import View
from rca.hypotheses.score import NONE, Ranking, rank
from rca.ingest.context import lines_around
from rca.ingest.discover import discover
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.parallel import in_processes
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS
from rca.ingest.text import TextIngestor
from rca.notes import Notes
from rca.redact import redact_diagnosis
from rca.rules.load import Knowledge, load
from rca.rules.words import maturity_note

if TYPE_CHECKING:
    from rca.agent import Investigation
    from rca.compare.comparison import Opposed
    from rca.compare.interface import Side

RedactMode = Literal["default", "strict", "none"]
Progress = Callable[[str, int, int], None]
"""Stage, done, total."""


@dataclass(frozen=True)
class Options:
    """How an analysis is done."""

    experiments: str = "auto"
    """`auto`, `all`, `none` or experiment ids separated by commas."""
    budget_s: float = 60.0
    """Seconds that experiments may take altogether."""
    device: str = "auto"
    redact: RedactMode = "default"
    jobs: int = 1
    strict: bool = False
    """Raise what a plug-in raises instead of noting it in the report."""
    baseline: Path | None = None
    """Directory of a healthy run of the same job, to compare with."""


@dataclass(frozen=True)
class Reading:
    """What was read of a run directory."""

    sources: tuple[Source, ...]
    records: tuple[SourceRecord, ...]
    events: EventTable


@dataclass(frozen=True)
class Analysis:
    """The diagnosis and what it came from."""

    diagnosis: Diagnosis
    events: EventTable
    ranking: Ranking
    """What the rules alone say."""
    view: View


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

    `rules` are further knowledge folders, `disabled` ids of rules to leave out, `baseline` is a healthy run of the
    same job. Raises UsageError for a directory that does not exist and for a baseline that cannot be read,
    NothingReadable for a run without a readable file, KnowledgeError for a wrong rule file.
    """
    knowledge = load(rules, disabled=disabled)
    chosen = options or Options()
    if baseline is not None:
        chosen = replace(chosen, baseline=Path(baseline))
    return examine(Path(run_dir), knowledge, options=chosen, progress=progress).diagnosis


def examine(run_dir: Path, knowledge: Knowledge, *, options: Options, progress: Progress | None = None) -> Analysis:
    """Analyse a run directory with knowledge that is loaded already; see `analyze`."""
    notes = Notes(strict=options.strict)
    tell = progress or _silent
    healthy = None if options.baseline is None else _healthy(options.baseline, knowledge, options, notes, tell)
    opposed = baseline = None
    with notes.timed("read"):
        reading = _read(run_dir, knowledge, options, notes, tell)
    if healthy is not None:
        reading, opposed = _opposed(run_dir, reading, healthy, notes)
    events = reading.events
    with notes.timed("facts"):
        tell("facts", 0, 1)
        facts = extract_facts(events, notes)
    if opposed is not None:
        baseline, facts = _compared(run_dir, reading, opposed, facts, notes)
    with notes.timed("rank"):
        tell("rank", 0, 1)
        view = View(events=events, facts=facts, ordinary=frozenset() if opposed is None else opposed.ordinary)
        ranking = ranking_of(view, knowledge)
        found = collect_hypotheses(
            ranking.candidates, events, facts, context=partial(lines_around, reading.sources), meanings=CATALOGUE
        )
    with notes.timed("experiments"):
        tell("experiments", 0, 1)
        investigation = _investigate(
            found, knowledge=knowledge, events=events, facts=facts, options=options, notes=notes
        )
    with notes.timed("collect"):
        diagnosis = _diagnosis(
            run_dir,
            reading,
            facts=facts,
            baseline=baseline,
            ranking=ranking,
            before=found,
            after=investigation,
            knowledge=knowledge,
            notes=notes,
        )
    with notes.timed("redact"):
        hosts = (*events.hosts, *(() if healthy is None else healthy.events.hosts))
        diagnosis = redact_diagnosis(diagnosis, mode=options.redact, hosts=hosts)
    diagnosis = diagnosis.model_copy(update={"timings": dict(notes.timings)})
    return Analysis(diagnosis=diagnosis, events=events, ranking=ranking, view=view)


def judge(run_dir: Path, knowledge: Knowledge) -> tuple[str, ...]:
    """Return the verdict and then the causes by falling probability, by rules only."""
    return order(observe(run_dir, knowledge), knowledge)


def observe(run_dir: Path, knowledge: Knowledge) -> View:
    """Return what a run shows, to which causes are put; what a plug-in raises is raised."""
    notes = Notes(strict=True)
    events = _read(run_dir, knowledge, Options(), notes, _silent).events
    return View(events=events, facts=extract_facts(events, notes))


def order(view: View, knowledge: Knowledge) -> tuple[str, ...]:
    """Return the verdict and then the causes by falling probability, for a run that was observed before."""
    ranking = ranking_of(view, knowledge)
    chosen, _ = answer(ranking)
    others = [item.cause.id for item in ranking.candidates if item.cause.id not in {NONE, chosen}]
    return (chosen, *others)


def ranking_of(view: View, knowledge: Knowledge) -> Ranking:
    """Put all causes to a run that was observed before."""
    causes = knowledge.causes.values()
    return rank(causes, view, signatures=knowledge.signatures, calibration=knowledge.calibration)


def _healthy(folder: Path, knowledge: Knowledge, options: Options, notes: Notes, tell: Progress) -> Side:
    """Read the healthy run that the run in question is compared with, and judge whether it was healthy."""
    from rca.compare.comparison import doubts

    told = Notes(strict=options.strict)
    with notes.timed("baseline"):
        try:
            reading = _read(folder, knowledge, options, told, tell)
        except (NothingReadable, UsageError) as error:
            raise UsageError(f"the baseline cannot be used: {error}") from error
        facts = extract_facts(reading.events, told)
        ranking = ranking_of(View(events=reading.events, facts=facts), knowledge)
    notes.warnings += [f"In the baseline, {warning}" for warning in told.warnings]
    return _side(folder, reading, facts, doubts=doubts(facts, *answer(ranking)))


def _side(folder: Path, reading: Reading, facts: Mapping[str, Fact], *, doubts: Sequence[str] = ()) -> Side:
    from rca.compare.interface import Side

    logs = {record.path for record in reading.records if record.status == "read" and record.kind == TextIngestor.name}
    return Side(
        name=_name(folder),
        path=str(folder),
        events=reading.events,
        facts=facts,
        logs=[source for source in reading.sources if source.path in logs],
        files=len(reading.records),
        doubts=tuple(doubts),
    )


def _opposed(run_dir: Path, reading: Reading, healthy: Side, notes: Notes) -> tuple[Reading, Opposed | None]:
    """Lay the runs beside each other; what the healthy one says as well is no sign of failure."""
    from rca.compare.comparison import oppose

    with notes.timed("compare"):
        what = "the comparison with the baseline"
        opposed = notes.guarded(what, lambda: oppose(_side(run_dir, reading, {}), healthy), None)
    if opposed is None or not opposed.ordinary:
        return reading, opposed
    return replace(reading, events=reading.events.as_benign(opposed.ordinary)), opposed


def _compared(
    run_dir: Path, reading: Reading, opposed: Opposed, facts: Mapping[str, Fact], notes: Notes
) -> tuple[Baseline | None, Mapping[str, Fact]]:
    """Return what differs between the two runs, and the facts with those that follow from it."""
    from rca.compare.comparison import compare

    def call() -> tuple[Baseline | None, Mapping[str, Fact]]:
        baseline = compare(_side(run_dir, reading, facts), opposed)
        return baseline, {**facts, **{fact.name: fact for fact in baseline_facts(baseline, reading.events)}}

    otherwise: tuple[Baseline | None, Mapping[str, Fact]] = (None, facts)
    return notes.guarded("the comparison with the baseline", call, otherwise)


def extract_facts(events: EventTable, notes: Notes) -> Mapping[str, Fact]:
    """Compute all facts; a function that fails is noted and the others go on."""
    facts: dict[str, Fact] = {}
    for function in FACT_FUNCTIONS:
        what = f"the fact function {function.__module__}.{function.__name__}"
        found: Sequence[Fact] = notes.guarded(what, partial(_listed, function, events), ())
        facts.update({fact.name: fact for fact in found})
    return facts


def _listed(function: FactFunction, events: EventTable) -> Sequence[Fact]:
    return tuple(function(events))


def _silent(_stage: str, _done: int, _total: int) -> None:
    return


def _read(run_dir: Path, knowledge: Knowledge, options: Options, notes: Notes, tell: Progress) -> Reading:
    if not run_dir.is_dir():
        raise UsageError(f"{run_dir} is not a directory; give the folder that holds the logs of the run")
    context = IngestContext(signatures=knowledge.patterns)
    sources, skipped = discover(run_dir, context.limits)
    records: list[SourceRecord] = list(skipped)
    parts = []
    texts = 0
    for done, (source, (record, ingested)) in enumerate(_mapped(sources, context, options, notes)):
        tell(f"read {source.path}", done, len(sources))
        records.append(record)
        if ingested is not None:
            parts.append(ingested.events)
            texts += ingested.text
    if not any(record.status == "read" for record in records):
        reasons = "; ".join(f"{record.path}: {record.why}" for record in records[:3]) or "it holds no files"
        raise NothingReadable(f"nothing in {run_dir} could be read ({reasons})")
    records.sort(key=lambda record: record.path)
    return Reading(tuple(sources), tuple(records), EventTable.from_parts(parts, text_sources=texts))


def _mapped(
    sources: Sequence[Source], context: IngestContext, options: Options, notes: Notes
) -> Iterator[tuple[Source, tuple[SourceRecord, Ingested | None]]]:
    """Read every source, here or in worker processes, in the order given."""
    read = partial(read_source, ingestors=INGESTORS, context=context)
    if options.jobs > 1 and len(sources) > 1:
        for source, result in in_processes(sources, read, jobs=options.jobs):
            yield source, notes.guarded(f"reading {source.path}", result, _lost(source))
    else:
        for source in sources:
            yield source, notes.guarded(f"reading {source.path}", partial(read, source), _lost(source))


def _lost(source: Source) -> tuple[SourceRecord, Ingested | None]:
    why = "the reader failed; the warnings say how"
    return SourceRecord(path=source.path, status="skipped", why=why, bytes=source.size), None


def _investigate(
    found: Sequence[Hypothesis],
    *,
    knowledge: Knowledge,
    events: EventTable,
    facts: Mapping[str, Fact],
    options: Options,
    notes: Notes,
) -> Investigation:
    from rca.agent import Investigation, investigate

    untouched = Investigation(hypotheses=tuple(found), experiments=(), rounds=())
    if options.experiments == "none":
        return untouched
    from rca.experiments.profile import run_profile
    from rca.experiments.run import experimenter

    return notes.guarded(
        "the experiments",
        lambda: investigate(
            found,
            knowledge.experiments,
            run_profile(events, facts),
            experimenter,
            budget_s=options.budget_s,
            device=options.device,
            choose=options.experiments,
        ),
        untouched,
    )


def _diagnosis(
    run_dir: Path,
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
    )
    first = facts.get("failure.event")
    return Diagnosis(
        rca_version=rca.__version__,
        generated=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z"),
        run=overview(_name(run_dir), run_dir, events, reading.records),
        verdict=chosen,
        failure=observed,
        hypotheses=after.hypotheses,
        experiments=after.experiments,
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


def _name(run_dir: Path) -> str:
    """Name of the run: its folder, or the folder above when it is just called `run`."""
    resolved = run_dir.resolve()
    return f"{resolved.parent.name}/{resolved.name}" if resolved.name == "run" else resolved.name
