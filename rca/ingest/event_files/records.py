"""What the records of one event file say, collected block by block."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from rca.ingest.crc32c import masked_one
from rca.ingest.event_files.histograms import Summary, of_buckets, of_message
from rca.ingest.event_files.points import Columns, Place, Points
from rca.ingest.event_files.scalars import ScalarDecoder
from rca.ingest.event_files.settings import HPARAMS, hyper_parameters, message_of, settings_in
from rca.ingest.event_files.tensors import scalar_of, texts_of
from rca.ingest.event_files.tfrecord import FOOTER, HEADER, Block, payload_agrees

MAX_TEXTS = 500
"""Text summaries kept of one file."""
MAX_TAGS = 20_000
"""Tags read of one file; programs that put the step into the tag write no end of them."""

_CHECKED_TOGETHER = 1 << 10
"""Payloads up to this length are checked before they are decoded. Of the longer ones histograms are not: their sums
stand in the first bytes, and the buckets behind them, which are most of such files, are not looked at."""
_OTHER_KINDS = {"image": "image", "audio": "audio clip"}
_OTHER_PLUGINS = {
    "images": "image",
    "audio": "audio clip",
    "pr_curves": "precision-recall curve",
    "mesh": "mesh",
    "graph_run_metadata": "graph",
    "graph_keras_model": "graph",
    "custom_scalars": "dashboard layout",
    "histograms": "empty histogram",
    "text": "empty text",
    "hparams": "hyper-parameter description",
}


class Records:
    """What one event file said so far."""

    def __init__(self) -> None:
        self.whole = 0
        """Records with a checksum that fits."""
        self.corrupt = 0
        self.first_corrupt = 0
        """Byte of the file at which the first of them begins."""
        self.decoder = ScalarDecoder(most_tags=MAX_TAGS)
        self.points = Points()
        self.histograms = 0
        self.texts: list[tuple[Place, str, str]] = []
        """(place, tag, text)."""
        self.settings: list[tuple[Place, dict[str, Any]]] = []
        self.cut_texts = 0
        self.cut_tags = 0
        self.left_out: Counter[str] = Counter()
        self._index = 0

    def take(self, block: Block) -> None:
        """Decode the records of one block."""
        count = len(block.start)
        if not count:
            return
        first, self._index = self._index + 1, self._index + count
        found = self.decoder.decode(block.data, block.start, block.length)
        bad = found.corrupt
        rest = np.flatnonzero((found.code < 0) & ~bad)
        short = rest[block.length[rest] <= _CHECKED_TOGETHER]
        bad[short[~payload_agrees(block.data, block.start[short], block.length[short])]] = True
        for place in rest[~bad[rest]].tolist():
            begin, end = int(block.start[place]), int(block.start[place] + block.length[place])
            bad[place] = not self._event(first + place, block.data, begin, end)
        if bad.any():
            self.first_corrupt = self.first_corrupt or block.offset + int(block.start[bad][0]) - HEADER
            self.corrupt += int(np.count_nonzero(bad))
        self.whole += count - int(np.count_nonzero(bad))
        code = self._scalars_only(found.code)
        where = np.flatnonzero(code >= 0)
        self.points.close_block(
            Columns(
                first + where,
                found.wall_time[where],
                found.step[where],
                code[where],
                found.value[where],
                np.full(len(where), None, object),
            )
        )

    def _scalars_only(self, code: np.ndarray) -> np.ndarray:
        """Take out tensors of one number whose plugin is another one: only the first record of a tag need name it."""
        for tensor in self.decoder.tensors:
            plugin = self.decoder.plugins.get(self.decoder.series[tensor], "")
            if plugin not in {"", "scalars"} and (others := np.flatnonzero(code == tensor)).size:
                self.left_out[_OTHER_PLUGINS.get(plugin, "other value")] += others.size
                code[others] = -1
        return code

    def _event(self, record: int, data: bytes, begin: int, end: int) -> bool:
        """Decode one record; return False where its checksum does not fit."""
        from tensorboard.compat.proto.event_pb2 import Event

        payload = data[begin:end]
        event = message_of(Event, payload)
        values = event.summary.value if event is not None and event.WhichOneof("what") == "summary" else ()
        checked = len(payload) <= _CHECKED_TOGETHER or any(_is_histogram(value) for value in values)
        if not checked and masked_one(payload) != int.from_bytes(data[end : end + FOOTER], "little"):
            return False
        if event is None:
            self.left_out["record that is no event"] += 1
        elif values:
            for value in values:
                self._value(Place(record, event.wall_time, event.step), value)
        elif event.WhichOneof("what") in {"graph_def", "meta_graph_def", "tagged_run_metadata"}:
            self.left_out["graph"] += 1
        return True

    def _value(self, place: Place, value: Any) -> None:
        tag, kind = value.tag, value.WhichOneof("value")
        # Only the first record of a tag has to name its plugin.
        plugin = value.metadata.plugin_data.plugin_name or self.decoder.plugins.get(tag, "")
        if len(self.decoder.plugins) < MAX_TAGS:
            self.decoder.plugins.setdefault(tag, plugin)
        if plugin == "hparams":
            if tag == HPARAMS and (named := hyper_parameters(value.metadata.plugin_data.content)):
                self.settings.append((place, named))
        elif kind == "simple_value":
            self._point(place, tag, value.simple_value)
        elif kind == "histo" or (kind == "tensor" and plugin == "histograms"):
            summary = of_message(value.histo) if kind == "histo" else of_buckets(value.tensor)
            self._histogram(place, tag, summary)
        elif kind in _OTHER_KINDS:
            self.left_out[_OTHER_KINDS[kind]] += 1
        elif kind == "tensor" and plugin in {"", "scalars"} and (scalar := scalar_of(value.tensor)) is not None:
            self._point(place, tag, scalar)
        elif kind == "tensor" and plugin in {"", "text"} and (texts := texts_of(value.tensor)):
            self._text(place, tag, "\n".join(texts))
        elif kind is not None:
            self.left_out[_OTHER_PLUGINS.get(plugin, "other value")] += 1

    def _point(self, place: Place, tag: str, value: float, note: str | None = None) -> None:
        code = self.decoder.code(tag)
        if code < 0:
            self.cut_tags += 1
        else:
            self.points.add(place, code, value, note=note)

    def _histogram(self, place: Place, tag: str, summary: Summary | None) -> None:
        if summary is None:
            self.left_out["empty histogram"] += 1
            return
        self.histograms += 1
        self._point(place, f"{tag}_norm", summary.norm, summary.note)

    def _text(self, place: Place, tag: str, text: str) -> None:
        if len(self.texts) >= MAX_TEXTS:
            self.cut_texts += 1
            return
        self.texts.append((place, tag, text))
        if settings := settings_in(text):
            self.settings.append((place, settings))


def _is_histogram(value: Any) -> bool:
    return bool(value.WhichOneof("value") == "histo" or value.metadata.plugin_data.plugin_name == "histograms")
