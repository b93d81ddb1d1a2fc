"""What the client of W&B logs of itself (`debug.log`): read as text, but no failure of the run.

When the program dies its tracker is torn down in the middle of its work, and says so with tracebacks of its own. An
error of W&B that ends a run is printed by the program as well.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from rca.ingest.interface import IngestContext, Ingested, Ingestor, Source

_MARKS = (b"[wandb_setup.py:", b"[wandb_init.py:")
_WRONG = ("error", "fatal")


class WandbDebugIngestor:
    """Reads W&B's own logs with the reader of logs; what is wrong in them is benign."""

    name = "W&B log"

    def __init__(self, text: Ingestor) -> None:
        self._text = text

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take logs named `debug*.log` that begin with what the client says first."""
        name = source.path.rsplit("/", 1)[-1]
        return name.startswith("debug") and name.endswith(".log") and any(mark in head[:2048] for mark in _MARKS)

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the lines. Raises UnreadableSource as the reader of logs does."""
        found = self._text.read(source, context)
        events = found.events
        severity = events["severity"].cast(pa.string())
        wrong = pc.or_(
            pc.equal(events["kind"].cast(pa.string()), "exception"),
            pc.fill_null(pc.is_in(severity, value_set=pa.array(_WRONG)), fill_value=False),
        )
        for name, value in (("role", "benign"), ("severity", "warning")):
            index = events.schema.get_field_index(name)
            column = pc.if_else(wrong, pa.scalar(value), events[name].cast(pa.string()))
            events = events.set_column(index, events.schema.field(index), column.cast(events.schema.field(index).type))
        return replace(found, events=events, text=False)
