"""TensorBoard event files: scalars of both forms, texts, hyper-parameters. Damaged files give what is whole in them."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.content import open_content
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.metric_units import in_common_unit, meaning
from rca.ingest.metric_words import worded_names
from rca.ingest.names import METRIC_NAMES, canonical_metric
from rca.ingest.tensorboard_scalars import Scalars, decode_scalars
from rca.ingest.tensorboard_settings import HPARAMS, add_settings, hyper_parameters, message_of, settings_in
from rca.ingest.tensorboard_tensors import scalar_of, texts_of
from rca.ingest.tfrecord import HEADER, Block, Damage, payload_agrees, read_blocks, starts_with_record

TEXT = "tensorboard.text"
"""Name of the log events that hold text summaries; `attrs["tag"]` is their tag."""

_MAX_TEXTS = 500
_LATEST = 4.1e9
"""Seconds; a wall time after the year 2099 or before 1970 is no wall time."""
_EVALUATION = frozenset({"validation", "valid", "val", "eval", "evaluation", "test", "dev"})
_OTHER_KINDS = {"histo": "histogram", "image": "image", "audio": "audio clip"}


class TensorBoardIngestor:
    """Reads TensorBoard event files into metrics, configuration and text events."""

    name = "tensorboard events"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take files named `events.out.tfevents.*`, and files whose first record is an event with a wall time."""
        named = "tfevents" in source.path.rsplit("/", 1)[-1]
        return named or (starts_with_record(head) and head[HEADER : HEADER + 1] == b"\x09" and b"brain.Event" in head)

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read every whole record. Raises UnreadableSource where there is none."""
        reading = _Reading()
        with open_content(source, context.limits) as content:
            size = len(content.data)
            stream = io.BytesIO(content.data) if isinstance(content.data, bytes) else content.data
            for block in read_blocks(stream, limit=size):  # type: ignore[arg-type]  # a map reads like a file
                reading.take(block)
        if not reading.records:
            raise UnreadableSource(
                f"{source.path} holds no whole TensorBoard record in its {size:,} bytes: "
                "it is empty, still being written, or another format."
            )
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        first, last = reading.write(out)
        warnings = (*content.warnings, *reading.warnings())
        return Ingested(
            out.build(), lines=reading.records, bytes=size, first_time=first, last_time=last, warnings=warnings
        )


class _Reading:
    """What one event file said so far."""

    def __init__(self) -> None:
        self.records = 0
        self.damages: list[Damage] = []
        self.corrupt = 0
        self.first_corrupt = 0
        self.columns: list[Scalars] = []
        self.rest: list[tuple[int, float, int, str, float]] = []
        self.texts: list[tuple[int, float, int, str, str]] = []
        self.cut_texts = 0
        self.settings: list[tuple[int, float, dict[str, Any]]] = []
        self.left_out: Counter[str] = Counter()
        self.plugins: dict[str, str] = {}

    def take(self, block: Block) -> None:
        """Decode the records of one block."""
        self.damages += block.damages
        if not len(block.start):
            return
        good = payload_agrees(block.data, block.start, block.length)
        if not good.all():
            self.first_corrupt = self.first_corrupt or block.offset + int(block.start[~good][0]) - HEADER
            self.corrupt += int(np.count_nonzero(~good))
        index = self.records + 1 + np.arange(len(block.start))
        self.records += int(np.count_nonzero(good))
        start, length, index = block.start[good], block.length[good], index[good]
        found, done = decode_scalars(block.data, start, length)
        self.columns += [part._replace(record=index[part.record]) for part in found]
        rest = ~done
        for record, begin, size in zip(index[rest].tolist(), start[rest].tolist(), length[rest].tolist(), strict=True):
            self._event(record, block.data[begin : begin + size])

    def _event(self, record: int, payload: bytes) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        event = message_of(Event, payload)
        if event is None:
            self.left_out["record that is no event"] += 1
            return
        what = event.WhichOneof("what")
        if what == "summary":
            for value in event.summary.value:
                self._value(record, event.wall_time, event.step, value)
        elif what in {"graph_def", "meta_graph_def", "tagged_run_metadata"}:
            self.left_out["graph"] += 1

    def _value(self, record: int, wall_time: float, step: int, value: Any) -> None:
        tag, kind = value.tag, value.WhichOneof("value")
        # Only the first record of a tag has to name its plugin.
        plugin = value.metadata.plugin_data.plugin_name or self.plugins.get(tag, "")
        self.plugins.setdefault(tag, plugin)
        if plugin == "hparams":
            if tag == HPARAMS and (named := hyper_parameters(value.metadata.plugin_data.content)):
                self.settings.append((record, wall_time, named))
        elif kind == "simple_value":
            self.rest.append((record, wall_time, step, tag, value.simple_value))
        elif kind in _OTHER_KINDS:
            self.left_out[_OTHER_KINDS[kind]] += 1
        elif kind == "tensor" and plugin in {"", "scalars"} and (scalar := scalar_of(value.tensor)) is not None:
            self.rest.append((record, wall_time, step, tag, scalar))
        elif kind == "tensor" and plugin in {"", "text"} and (texts := texts_of(value.tensor)):
            self._text(record, wall_time, step, tag, "\n".join(texts))
        elif kind is not None:
            self.left_out[{"histograms": "histogram", "images": "image"}.get(plugin, "other summary")] += 1

    def _text(self, record: int, wall_time: float, step: int, tag: str, text: str) -> None:
        if len(self.texts) >= _MAX_TEXTS:
            self.cut_texts += 1
            return
        self.texts.append((record, wall_time, step, tag, text))
        settings = settings_in(text)
        if settings:
            self.settings.append((record, wall_time, settings))

    def write(self, out: EventBuilder) -> tuple[int | None, int | None]:
        """Add all events; return the first and last wall time in microseconds."""
        index, wall, step, code, value, tags = self._joined()
        times = _micros(wall)
        names = _names(tags, code, evaluated=_evaluates(out.source))
        for position, tag in enumerate(tags):
            where = np.flatnonzero(code == position)
            as_named = meaning(tag)
            known = times[where] >= 0
            out.extend(
                len(where),
                kind="metric",
                name=names[tag],
                line=index[where],
                time=pa.array(times[where], mask=~known).cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC")),
                step=step[where],
                value=in_common_unit(value[where], as_named),
                unit=as_named.unit or None,
            )
        for record, wall_time, text_step, tag, text in self.texts:
            when = _micro(wall_time)
            out.add(
                kind="log", name=TEXT, line=record, time=when, step=text_step, severity="info", text=text,
                attrs={"tag": tag},
            )  # fmt: skip
        for record, wall_time, settings in self.settings:
            add_settings(out, settings, line=record, time=_micro(wall_time))
        seen = times[times >= 0]
        return (int(seen.min()), int(seen.max())) if len(seen) else (None, None)

    def _joined(self) -> tuple[Any, Any, Any, Any, Any, list[str]]:
        """Return all scalars in file order as (record, wall time, step, tag code, value) and the tags."""
        tags: dict[str, int] = {}
        codes = []
        for part in self.columns:
            of_part = np.array([tags.setdefault(tag, len(tags)) for tag in part.tag.dictionary.to_pylist()])
            codes.append(of_part[part.tag.indices.to_numpy()])
        codes.append(np.array([tags.setdefault(row[3], len(tags)) for row in self.rest], dtype=np.int64))
        index = np.concatenate([*(part.record for part in self.columns), [row[0] for row in self.rest]])
        order = np.argsort(index, kind="stable")
        wall = np.concatenate([*(part.wall_time for part in self.columns), [row[1] for row in self.rest]])
        steps = np.array([row[2] for row in self.rest], dtype=np.int64)
        step = np.concatenate([*(part.step for part in self.columns), steps])
        value = np.concatenate([*(part.value for part in self.columns), [row[4] for row in self.rest]])
        code = np.concatenate(codes)
        return index[order].astype(np.int64), wall[order], step[order], code[order], value[order], list(tags)

    def warnings(self) -> Iterator[str]:
        """Say what was damaged or left out."""
        if self.corrupt:
            yield (
                f"{self.corrupt:,} records whose checksum does not fit were left out, "
                f"the first at byte {self.first_corrupt:,}."
            )
        for damage in self.damages[:8]:
            size = f": {damage.size:,} bytes were passed over" if damage.size else ""
            yield f"At byte {damage.offset:,} {damage.reason}{size}."
        if len(self.damages) > 8:
            yield f"{len(self.damages) - 8:,} more places are damaged."
        if self.left_out:
            listed = ", ".join(f"{count:,} {kind}{'s' * (count > 1)}" for kind, count in self.left_out.most_common())
            yield f"Not read as events: {listed}."
        if self.cut_texts:
            yield f"{self.cut_texts:,} text summaries after the first {_MAX_TEXTS} were left out."


def _evaluates(path: str) -> bool:
    """Say whether a writer named its folder after evaluation (Keras: `train/` and `validation/`, both `epoch_loss`)."""
    return not _EVALUATION.isdisjoint(path.lower().split("/")[:-1])


def _names(tags: list[str], code: np.ndarray, *, evaluated: bool) -> dict[str, str]:
    """Name each tag's metric; of several tags with one common name the one with the most points has it.

    Two curves under one name would be read as one curve that jumps.
    """
    counts = np.bincount(code, minlength=len(tags)).tolist()
    taken: set[str] = set()
    names: dict[str, str] = {}
    known = {tag: name for tag in tags if (name := meaning(tag).name) in METRIC_NAMES}
    worded = worded_names([tag for tag in tags if tag not in known], known.values())
    for _, tag in sorted(zip(counts, tags, strict=True), key=lambda item: (-item[0], item[1])):
        raw = tag.strip().lower()
        common = canonical_metric(raw.removeprefix("epoch_"))
        common = common if common in METRIC_NAMES else worded.get(tag) or meaning(tag).name
        if evaluated and f"eval_{common}" in METRIC_NAMES:
            common = f"eval_{common}"
        choices = (common, raw, *(f"{raw}#{number}" for number in range(2, len(tags) + 2)))
        names[tag] = next(name for name in choices if name not in taken)
        taken.add(names[tag])
    return names


def _micros(wall: np.ndarray) -> np.ndarray:
    """Return microseconds since the epoch, -1 where the wall time is none."""
    known = np.isfinite(wall) & (wall > 0) & (wall < _LATEST)
    return np.where(known, np.where(known, wall, 0) * 1e6, -1).astype(np.int64)


def _micro(wall: float) -> int | None:
    micros = int(_micros(np.array([wall]))[0])
    return micros if micros >= 0 else None
