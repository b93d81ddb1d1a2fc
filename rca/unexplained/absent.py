"""What a run should have left and did not: the data that would decide, with the command that gives it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch

from rca.collect.evidence import fill
from rca.diagnosis import SourceRecord
from rca.hypotheses.match import FactLike, View, ask
from rca.leads import Absent
from rca.rules.advice_schema import Record
from rca.rules.schema import Signature

MOST = 6
"""Things asked for."""


def absent(
    records: Iterable[Record], view: View, sources: Sequence[SourceRecord], signatures: Mapping[str, Signature]
) -> tuple[Absent, ...]:
    """Return what is wanted and not there, the most telling first."""
    names = [source.path.rsplit("/", 1)[-1].lower() for source in sources if source.status == "read"]
    heard = {signatures[event.name].emitter for event in view.events.of_kind("log") if event.name in signatures}
    missing = [
        Absent(id=record.id, says=_says(record, view.facts), record=record.record)
        for record in records
        if (record.wanted is None or ask(record.wanted, view).outcome == "met")
        and not (record.present is not None and ask(record.present, view).outcome == "met")
        and heard.isdisjoint(record.emitters)
        and not any(fnmatch(name, pattern) for name in names for pattern in record.files)
    ]
    # One command may give two things; it is asked for once.
    return tuple({item.record: item for item in reversed(missing)}.values())[::-1][:MOST]


def _says(record: Record, facts: Mapping[str, FactLike]) -> str:
    told = facts[record.tells].says if record.tells in facts else ""
    return " ".join(part for part in (fill(record.says, {}, facts), told) if part)
