"""MLflow's local store: one text file a metric (`time value step` a line), one a parameter."""

from __future__ import annotations

from pathlib import PurePosixPath

import numpy as np
import re2

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.config_rows import add_settings
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.metric_table import add_metrics
from rca.ingest.structured import decode, read_lines

_POINT = re2.compile(r"\d{12,14} \S+ -?\d{1,18}")
_LONGEST_VALUE = 6000
"""Characters that MLflow keeps of a parameter."""


class MlflowIngestor:
    """Reads the metric and parameter files of an MLflow run."""

    name = "mlflow store"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take files below `metrics/` whose first line is a point, and short ones below `params/` of a run."""
        parts = PurePosixPath(source.path).parts
        first = decode(head).split("\n", 1)[0]
        if "metrics" in parts[:-1]:
            return _POINT.fullmatch(first.strip()) is not None
        return len(parts) > 2 and parts[-2] == "params" and source.size <= _LONGEST_VALUE and "\0" not in first

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read one metric or one parameter; the path below the folder is its name."""
        data, _cut, notes = read_lines(source, context)
        text = decode(data)
        out = EventBuilder(source.path)
        parts = PurePosixPath(source.path).parts
        if "metrics" not in parts[:-1]:
            add_settings(out, {parts[-1]: text.strip()}, role="training", line=1)
            return Ingested(out.build(), lines=1, bytes=len(data), warnings=notes)
        name = "/".join(parts[parts.index("metrics") + 1 :])
        found = [(place, line.split()) for place, line in enumerate(text.splitlines(), start=1)]
        rows = [(place, *words) for place, words in found if len(words) == 3]
        if not rows:
            raise UnreadableSource(f"{source.path} holds no point of a metric.")
        places, times, values, steps = zip(*rows, strict=True)
        columns = {"timestamp": times, "step": steps, name: values}
        warnings = add_metrics(out, columns, lines=np.asarray(places, dtype=np.int64))
        return Ingested(out.build(), lines=len(found), bytes=len(data), warnings=(*notes, *warnings))
