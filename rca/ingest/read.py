"""One source through the reader that is for it: the only place where an unreadable file becomes a skipped source."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from rca.diagnosis import SourceRecord
from rca.errors import UnreadableSource
from rca.ingest.file_names import is_log_name
from rca.ingest.interface import IngestContext, Ingested, Ingestor, Source
from rca.ingest.places.content import read_head
from rca.ingest.places.shares import reduced

_BINARY = (
    (b"\x80\x02", "a pickle, which is never loaded"),
    (b"\x80\x03", "a pickle, which is never loaded"),
    (b"\x80\x04", "a pickle, which is never loaded"),
    (b"\x80\x05", "a pickle, which is never loaded"),
    (b"PK\x03\x04", "a zip archive or a PyTorch checkpoint, which is never loaded"),
    (b"\x7fELF", "a program or a core dump"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"RIFF", "an audio or image file"),
    (b"%PDF", "a PDF document"),
    (
        b"SQLite format 3",
        "an SQLite database, which is not read; export what it holds as CSV or JSON "
        "(MLflow: `mlflow experiments csv --experiment-id ID --filename runs.csv`)",
    ),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF", "an HDF5 file"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"GGUF", "a GGUF model"),
)


def read_source(
    source: Source, ingestors: Sequence[Ingestor], context: IngestContext
) -> tuple[SourceRecord, Ingested | None]:
    """Read one source with the first ingestor that accepts it; return its record, and its events unless skipped.

    A file that is called a log and that its own reader cannot make sense of is given to the next one.
    """
    kind = ""
    problems: list[str] = []
    try:
        head = read_head(source)
        for reader in (item for item in ingestors if item.accepts(source, head)):
            kind = reader.name
            try:
                ingested = reader.read(source, context)
            except UnreadableSource as error:
                problems.append(str(error))
                if not is_log_name(source.path):
                    break
            else:
                ingested = reduced(ingested, one_of=source.one_of_many) if source.one_of_many else ingested
                return _read(source, kind, ingested, problems), ingested
    except UnreadableSource as error:
        problems.append(str(error))
    return _skipped(source, kind, problems[0] if problems else _unclaimed(head)), None


def _read(source: Source, kind: str, ingested: Ingested, problems: Sequence[str]) -> SourceRecord:
    return SourceRecord(
        path=source.path,
        kind=kind,
        lines=ingested.lines,
        bytes=ingested.bytes,
        events=ingested.events.num_rows,
        first_time=_iso(ingested.first_time),
        last_time=_iso(ingested.last_time),
        warnings=(*problems, *ingested.warnings),
    )


def _unclaimed(head: bytes) -> str:
    what = next((text for magic, text in _BINARY if head.startswith(magic)), None)
    if what is None and b"\0" not in head[:512] and head[:512].isascii():
        return "It is source code or a document, not what the job printed."
    return f"It is {what}." if what else "It is a binary file of a format that is not read."


def _skipped(source: Source, kind: str, why: str) -> SourceRecord:
    return SourceRecord(path=source.path, kind=kind, status="skipped", why=why, bytes=source.size)


def _iso(time: int | None) -> str | None:
    if time is None:
        return None
    return datetime.fromtimestamp(time / 1e6, tz=timezone.utc).isoformat(timespec="seconds")
