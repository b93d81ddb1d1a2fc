"""What a run shows: its files read, its facts computed, and where a healthy run is given, what differs from it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rca.baseline import Baseline
from rca.diagnosis import SourceRecord
from rca.errors import NothingReadable, UnusableBaseline, UsageError
from rca.events import EventTable
from rca.facts.baseline import baseline_facts
from rca.facts.interface import Fact, FactFunction
from rca.facts.registry import ALL as FACT_FUNCTIONS
from rca.hypotheses.decide import answer
from rca.hypotheses.match import View
from rca.hypotheses.score import Ranking, rank
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.logs.text import TextIngestor
from rca.ingest.machine.earlier_jobs import left_aside
from rca.ingest.places.archives import is_archive
from rca.ingest.places.discover import discover
from rca.ingest.places.gathered import Gathered
from rca.ingest.places.parallel import in_processes, pays, processors
from rca.ingest.places.remote import Remote, Root
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS
from rca.notes import Notes
from rca.rules.load import Knowledge

if TYPE_CHECKING:
    from rca.compare.comparison import Opposed
    from rca.compare.interface import Side

Progress = Callable[[str, int, int], None]
"""Stage, done, total: bytes while files are read, arms while an experiment runs."""

_Outcome = tuple[SourceRecord, Ingested | None]


@dataclass(frozen=True)
class Readers:
    """Who reads the files."""

    jobs: int = 1
    """Processes of this machine; 0 for one per processor. Where few bytes are to be read, none is started."""
    cluster: str | None = None
    """Address of the scheduler of a Dask cluster, whose workers read instead."""


@dataclass(frozen=True)
class Reading:
    """What was read of a run directory."""

    sources: tuple[Source, ...]
    records: tuple[SourceRecord, ...]
    events: EventTable


@dataclass(frozen=True)
class Observed:
    """A run as conditions see it."""

    reading: Reading
    facts: Mapping[str, Fact]
    view: View
    baseline: Baseline | None
    hosts: tuple[str, ...]
    """Nodes of the run and of the healthy run, which are redacted wherever they are named."""


def observed(
    run_dir: Root, knowledge: Knowledge, notes: Notes, *, baseline: Root | None, readers: Readers, tell: Progress
) -> Observed:
    """Read a run and compute its facts, those of the comparison with a healthy run among them.

    Raises UsageError for a directory that does not exist, UnusableBaseline for a baseline that cannot be read,
    NothingReadable for a run without a readable file.
    """
    healthy = None if baseline is None else _healthy(baseline, knowledge, notes, readers=readers, tell=tell)
    opposed = contrast = None
    with notes.timed("read"):
        reading = _read(run_dir, knowledge, notes, readers=readers, tell=tell)
    if healthy is not None:
        reading, opposed = _opposed(run_dir, reading, healthy, notes)
    with notes.timed("facts"):
        tell("facts", 0, 1)
        facts = extract_facts(reading.events, notes)
    if opposed is not None:
        contrast, facts = _compared(run_dir, reading, opposed, facts, notes)
    view = View(events=reading.events, facts=facts)
    if healthy is not None and opposed is not None:
        view = replace(view, healthy=View(events=healthy.events, facts=healthy.facts), ordinary=opposed.ordinary)
    return Observed(
        reading=reading,
        facts=facts,
        view=view,
        baseline=contrast,
        hosts=(*reading.events.hosts, *(() if healthy is None else healthy.events.hosts)),
    )


def _healthy(folder: Root, knowledge: Knowledge, notes: Notes, *, readers: Readers, tell: Progress) -> Side:
    """Read the healthy run that the run in question is compared with, and judge whether it was healthy."""
    from rca.compare.comparison import doubts

    told = Notes(strict=notes.strict)
    with notes.timed("baseline"):
        try:
            reading = _read(folder, knowledge, told, readers=readers, tell=tell)
        except (NothingReadable, UsageError) as error:
            raise UnusableBaseline(f"the baseline cannot be used: {error}") from error
        facts = extract_facts(reading.events, told)
        ranking = ranking_of(View(events=reading.events, facts=facts), knowledge)
    notes.warnings += [f"In the baseline, {warning}" for warning in told.warnings]
    return _side(folder, reading, facts, doubts=doubts(facts, *answer(ranking, knowledge.calibration)))


def _side(folder: Root, reading: Reading, facts: Mapping[str, Fact], *, doubts: Sequence[str] = ()) -> Side:
    from rca.compare.interface import Side

    logs = {record.path for record in reading.records if record.status == "read" and record.kind == TextIngestor.name}
    return Side(
        name=run_name(folder),
        path=str(folder),
        events=reading.events,
        facts=facts,
        logs=[source for source in reading.sources if source.path in logs],
        files=len(reading.records),
        doubts=tuple(doubts),
    )


def _opposed(run_dir: Root, reading: Reading, healthy: Side, notes: Notes) -> tuple[Reading, Opposed | None]:
    """Lay the runs beside each other; what the healthy one says as well is no sign of failure."""
    from rca.compare.comparison import oppose

    with notes.timed("compare"):
        what = "the comparison with the baseline"
        opposed = notes.guarded(what, lambda: oppose(_side(run_dir, reading, {}), healthy), None)
    if opposed is None or not opposed.ordinary:
        return reading, opposed
    return replace(reading, events=reading.events.as_benign(opposed.ordinary)), opposed


def _compared(
    run_dir: Root, reading: Reading, opposed: Opposed, facts: Mapping[str, Fact], notes: Notes
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


def _read(run_dir: Root, knowledge: Knowledge, notes: Notes, *, readers: Readers, tell: Progress) -> Reading:
    if isinstance(run_dir, Path) and not run_dir.is_dir() and not (is_archive(run_dir.name) and run_dir.is_file()):
        raise UsageError(f"{run_dir} is not a directory or an archive; give the folder that holds the logs of the run")
    context = IngestContext(signatures=knowledge.patterns)
    sources, skipped = discover(run_dir, context.limits)
    records: list[SourceRecord] = list(skipped)
    gathered = Gathered()
    texts = 0
    last: dict[str, int] = {}
    for source, (record, ingested) in _mapped(sources, context, notes, readers=readers, tell=tell):
        records.append(record)
        if ingested is not None:
            gathered.add(source, ingested.events)
            texts += ingested.text
            last[source.path] = ingested.last_time or 0
    if not any(record.status == "read" for record in records):
        reasons = "; ".join(f"{record.path}: {record.why}" for record in records[:3]) or "it holds no files"
        raise NothingReadable(f"nothing in {run_dir} could be read ({reasons})")
    records.sort(key=lambda record: record.path)
    parts, aside = left_aside(gathered.tables(), last)
    notes.warnings += aside
    return Reading(tuple(sources), tuple(records), EventTable.from_parts(parts, text_sources=texts))


def _mapped(
    sources: Sequence[Source], context: IngestContext, notes: Notes, *, readers: Readers, tell: Progress
) -> Iterator[tuple[Source, _Outcome]]:
    """Read every source, here, in worker processes or on a cluster, in the order given whichever is done first."""
    waiting: dict[int, tuple[_Outcome, Sequence[str]]] = {}
    size, total = 0, sum(source.size for source in sources)
    following, stage = 0, ""
    source: Source

    def told(part: int) -> None:
        tell(stage, size + min(part, source.size), total)

    with closing(_read_by(sources, context, readers, told)) as finished:
        for done, (index, result) in enumerate(finished, 1):
            source = sources[index]
            stage = f"read {done}/{len(sources)} {source.path}"
            tell(stage, size, total)
            own = Notes(strict=notes.strict)
            outcome = own.guarded(f"reading {source.path}", result, _lost(source))
            waiting[index] = outcome, own.warnings
            size += source.size
            while following in waiting:
                outcome, warnings = waiting.pop(following)
                notes.warnings += warnings
                yield sources[following], outcome
                following += 1


def _read_by(
    sources: Sequence[Source], context: IngestContext, readers: Readers, told: Callable[[int], None]
) -> Generator[tuple[int, Callable[[], _Outcome]], None, None]:
    """Give a call that reads a source, or tells what was read of it, with its index.

    What is read here is `told` on the way: bytes of the source.
    """
    read = partial(read_source, ingestors=INGESTORS, context=context)
    if readers.cluster is not None and sources:
        from rca.ingest.places.cluster import on_cluster

        yield from on_cluster(sources, read, address=readers.cluster)
        return
    jobs = readers.jobs or processors()
    sizes = [source.size for source in sources]
    everywhere = all(source.file.shared for source in sources if isinstance(source.file, Remote))
    if jobs > 1 and everywhere and pays(sizes):
        yield from in_processes(sources, read, sizes=sizes, jobs=jobs)
        return
    here = partial(read_source, ingestors=INGESTORS, context=replace(context, told=told))
    for index, source in enumerate(sources):
        yield index, partial(here, source)


def _lost(source: Source) -> _Outcome:
    why = "the reader failed; the warnings say how"
    return SourceRecord(path=source.path, status="skipped", why=why, bytes=source.size), None


def healthy_beside(run_dir: Path) -> Path | None:
    """Return the healthy run that lies beside the run of a labelled case, if there is one."""
    folder = run_dir.parent / "baseline"
    return folder if run_dir.name == "run" and folder.is_dir() else None


def ranking_of(view: View, knowledge: Knowledge) -> Ranking:
    """Put all causes to a run that was observed before."""
    causes = knowledge.causes.values()
    return rank(causes, view, signatures=knowledge.signatures, calibration=knowledge.calibration)


def run_name(run_dir: Root) -> str:
    """Name of the run: its folder, or the folder above when it is just called `run`."""
    resolved = run_dir.resolve() if isinstance(run_dir, Path) else run_dir
    return f"{resolved.parent.name}/{resolved.name}" if resolved.name == "run" else resolved.name
