"""Everything that the report shows where no cause explains the run, gathered within a bounded cost."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rca.collect.evidence import iso
from rca.diagnosis import Failure, SourceRecord, Verdict
from rca.events import Event, EventTable
from rca.hypotheses.match import View
from rca.ingest.context import lines_around
from rca.ingest.interface import Source
from rca.leads import ContextLine, OddLine, Resemblance, Sign, Unexplained
from rca.rules.load import Knowledge
from rca.templates.masking import masked
from rca.unexplained.absent import absent
from rca.unexplained.anomalies import Kind, Odd, candidates, look, odd_lines
from rca.unexplained.excerpts import Budget, Excerpt, excerpts, line_numbers
from rca.unexplained.marks import is_frame
from rca.unexplained.resemblance import documents, index_of, resembling

SURE = 0.5
"""Probability of the leading cause from which nothing further is looked for."""
SHOWN = 8
"""Odd lines shown."""
_SPARE = 8
"""Odd lines looked up beyond those, because some turn out to be places in a stack."""
_EXCEPTIONS = 16
"""Exceptions of one source that are looked at whatever their words."""
_STAND_IN = re.compile(r"<[a-z]{2,4}>")
"""What masking leaves of numbers, paths and addresses."""
_WIDTH = 2000
"""Characters kept of an odd line."""

_LOGS = frozenset({"log", "wrapped log"})
_ENDLESS = 1 << 62


@dataclass(frozen=True)
class Run:
    """What is known of the run."""

    sources: Sequence[Source]
    records: Sequence[SourceRecord]
    view: View
    failure: Failure | None


def is_wanted(verdict: Verdict) -> bool:
    """Say whether the answer leaves so much open that a reader needs more than the candidates."""
    return verdict.status == "unknown" or (verdict.status == "suspected" and verdict.probability < SURE)


def next_step(found: Unexplained) -> str:
    """Return the cheapest thing to do next where no candidate asks for anything."""
    loud = next((line for line in found.lines if line.signs and line.signs[0] in {"exception", "error_word"}), None)
    if loud is not None:
        return f"Read {loud.source}:{loud.line} first: no rule knows what stands there."
    return f"{found.absent[0].says} `{found.absent[0].record}`" if found.absent else ""


def unexplained(run: Run, knowledge: Knowledge, *, budget: Budget | None = None) -> Unexplained:
    """Return the odd lines of the logs, the known causes they resemble, and what is missing."""
    records = {record.path: record for record in run.records if record.status == "read" and record.kind in _LOGS}
    logs = [source for source in run.sources if source.path in records]
    first = run.failure.source if run.failure is not None else ""
    logs.sort(key=lambda source: source.path != first)
    failed = _failure(run)
    around = {} if failed is None or failed.offset is None else {failed.source: failed.offset}
    told = _exceptions(run.view.events)
    seen, left_out = excerpts(
        logs,
        {path: record.bytes for path, record in records.items()},
        around=around,
        told=told,
        budget=budget or Budget(),
    )
    looked = look(seen, around=around, told={(path, offset) for path, offsets in told.items() for offset in offsets})
    found = candidates(looked)
    numbers = _numbers(found, seen, records)
    unknown = _without_known(numbers, run.view.events)
    odd = odd_lines(looked, found, seen, unknown=unknown, first=first, most=SHOWN + _SPARE)
    shown = _shown(odd, numbers, run)
    return Unexplained(
        lines=tuple(line for line, _ in shown),
        looked_at=looked.lines,
        left_out=left_out,
        resembles=_resembles(shown, run, knowledge),
        absent=absent(knowledge.records.values(), run.view, run.records, knowledge.signatures),
    )


def _failure(run: Run) -> Event | None:
    fact = run.view.facts.get("failure.event")
    return run.view.events.get(fact.events[0]) if fact is not None and fact.events else None


def _exceptions(events: EventTable) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for event in events.of_kind("exception"):
        offsets = found.setdefault(event.source, [])
        if event.offset is not None and event.offset not in offsets and len(offsets) < _EXCEPTIONS:
            offsets.append(event.offset)
    return found


def _numbers(
    kinds: Iterable[Kind], seen: Sequence[Excerpt], records: Mapping[str, SourceRecord]
) -> dict[tuple[str, int], int]:
    """Line numbers of all candidates by (source, offset)."""
    wanted: dict[int, list[int]] = {}
    for kind in kinds:
        for spot in kind.spots.values():
            wanted.setdefault(spot.source, []).append(spot.place.offset)
    numbers = {}
    for index, offsets in wanted.items():
        source = seen[index].source
        record = records[source.path]
        # The entries of a wrapped log are counted, not its lines, so those are counted from its start.
        size = record.bytes if record.kind == "log" else _ENDLESS
        found = line_numbers(source, offsets, total=record.lines, size=size)
        numbers.update({(source.path, offset): number for offset, number in found.items()})
    return numbers


def _without_known(numbers: Mapping[tuple[str, int], int], events: EventTable) -> set[tuple[str, int]]:
    """Leave out the lines on which a rule or a reader recognised something; an exception is no answer by itself."""
    table = events.table.select(["source", "line", "kind", "name"])
    at = table.filter(pc.is_in(table["line"], value_set=pa.array(sorted(set(numbers.values())), type=pa.int64())))
    columns = (at[name].cast(pa.string()).to_pylist() for name in ("source", "kind", "name"))
    known = {
        (source, line)
        for source, kind, name, line in zip(*columns, at["line"].to_pylist(), strict=True)
        if kind != "exception" and not (kind == "log" and name.startswith("inline."))
    }
    return {place for place, number in numbers.items() if (place[0], number) not in known}


def _shown(odd: Sequence[Odd], numbers: Mapping[tuple[str, int], int], run: Run) -> list[tuple[OddLine, str]]:
    """Return the lines to show, each with its message alone."""
    places = [(item.source.path, numbers[item.source.path, item.offset], item.offset) for item in odd]
    around = lines_around(run.sources, places)
    shown = []
    for item, (path, line, _) in zip(odd, places, strict=True):
        context = around.get((path, line), ())
        before = next((row.text for row in context if row.line == line - 1), "")
        if not is_frame(item.text, before):
            shown.append((_odd_line(item, line, context), item.message))
    return shown[:SHOWN]


def _odd_line(item: Odd, line: int, context: tuple[ContextLine, ...]) -> OddLine:
    return OddLine(
        id=_identity(item.source.path, line),
        text=item.text[:_WIDTH],
        source=item.source.path,
        line=line,
        rank=item.rank,
        ranks=item.ranks if len(item.ranks) > 1 else (),
        host=item.host,
        time=iso(item.time),
        signs=tuple(_signs(item)),
        count=item.count,
        template=item.template[:_WIDTH],
        context=context,
    )


def _signs(item: Odd) -> Iterator[Sign]:
    if item.mark:
        yield item.mark
    if item.count == 1:
        yield "rare"
    if item.near:
        yield "near"


def _identity(path: str, line: int) -> str:
    return "odd-" + hashlib.sha256(f"{path}\0{line}".encode()).hexdigest()[:10]


def _resembles(shown: Sequence[tuple[OddLine, str]], run: Run, knowledge: Knowledge) -> tuple[Resemblance, ...]:
    """Compare the loud lines with what is written about causes; without any, the exception that the run ended in."""
    asked = [
        (line.id, _STAND_IN.sub(" ", masked(message)))
        for line, message in shown
        if {"exception", "error_word"} & set(line.signs)
    ]
    ended = _failure(run)
    if not asked and ended is not None and ended.kind == "exception":
        asked = [("", _STAND_IN.sub(" ", masked(f"{ended.name}: {ended.text}")))]
    if not asked:
        return ()
    written = documents(knowledge)
    found = resembling([text for _, text in asked], written, index_of(written))
    return tuple(
        Resemblance(
            cause=item.cause,
            title=knowledge.causes[item.cause].title if item.cause else knowledge.signatures[item.signature].says,
            similarity=item.similarity,
            shared=item.shared,
            signature=item.signature,
            line=asked[item.line][0],
        )
        for item in found
    )
