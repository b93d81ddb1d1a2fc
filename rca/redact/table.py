"""The event table without what must not leave the machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rca.events import EventTable
from rca.redact.assignments import names_secrets
from rca.redact.redactor import Redactor

_COLUMNS = ("source", "host", "name", "unit")
"""Columns of few different words."""
_Row = tuple[str, str, str | None, str | None]
"""Kind, name, text and attributes of an event."""


def learn_settings(events: EventTable, redactor: Redactor) -> None:
    """Tell a redactor of the secrets that the settings of a run name: those that are not shown too."""
    rows = events.table.filter(pc.equal(events.table["kind"], "config"))
    for _, name, text, attrs in _different(rows):
        key = str(json.loads(attrs).get("key", name)) if attrs else name
        if text and names_secrets(key):
            redactor.learn_value(key, text)


def redacted_events(events: EventTable, redactor: Redactor) -> EventTable:
    """The table with every text redacted; rows, places and numbers stay as they are."""
    if redactor.mode == "none":
        return events
    table = events.table
    rows = _different(table)
    for row in rows:
        _redacted(row, _Learner(redactor))
    shown = {row: _redacted(row, redactor) for row in rows}
    texts, attributes = zip(*(shown[row] for row in _rows(table)), strict=True) if table.num_rows else ((), ())
    for name in _COLUMNS:
        change = redactor.place if name == "source" else redactor.text
        table = table.set_column(table.column_names.index(name), table.schema.field(name), _words(table[name], change))
    for name, values in (("text", texts), ("attrs", attributes)):
        field = table.schema.field(name)
        table = table.set_column(table.column_names.index(name), field, pa.array(values, type=field.type))
    return EventTable(table)


class _Learner:
    """Stands in for a redactor that is only told of texts."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def text(self, text: str, *, addresses: bool = True) -> str:  # noqa: ARG002 - as of a redactor
        self._redactor.learn(text)
        return text

    def value(self, name: str, value: str) -> str:
        self._redactor.learn_value(name, value)
        return value


def _different(table: pa.Table) -> list[_Row]:
    return list(dict.fromkeys(_rows(table)))


def _rows(table: pa.Table) -> Iterator[_Row]:
    columns = (table[name].cast(pa.string()).to_pylist() for name in ("kind", "name", "text", "attrs"))
    return zip(*columns, strict=True)


def _redacted(row: _Row, redactor: Redactor | _Learner) -> tuple[str | None, str | None]:
    kind, name, text, attrs = row
    values: Any = json.loads(attrs) if attrs else {}
    if kind == "config":
        key = str(values.get("key", name))
        shown = None if text is None else redactor.value(key, text)
        if isinstance(values.get("value"), str):
            values["value"] = redactor.value(key, values["value"])
        elif text is not None and shown == "<secret>":
            values.pop("value", None)
    else:
        shown = None if text is None else redactor.text(text, addresses=kind != "package")
    return shown, json.dumps(_mapped(values, redactor), ensure_ascii=False, sort_keys=True) if attrs else attrs


def _mapped(value: Any, redactor: Redactor | _Learner, name: str = "") -> Any:
    if isinstance(value, str):
        return redactor.value(name, value) if name else redactor.text(value)
    if isinstance(value, Mapping):
        return {redactor.text(str(key)): _mapped(item, redactor, str(key)) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_mapped(item, redactor, name) for item in value]
    return value


def _words(column: pa.ChunkedArray, change: Callable[[str], str]) -> pa.Array:
    """A column of few different words with each of them changed once."""
    encoded = column.combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = pa.concat_arrays(encoded.chunks) if encoded.num_chunks else pa.array([], type=column.type)
    words = pa.array([change(word) if word else word for word in encoded.dictionary.to_pylist()], type=pa.string())
    unique = words.dictionary_encode()
    codes = np.asarray(unique.indices.fill_null(0))[np.asarray(encoded.indices.fill_null(0))] if len(words) else None
    if codes is None:
        return encoded
    indices = pa.array(codes, type=pa.int32(), mask=np.asarray(encoded.indices.is_null()))
    return pa.DictionaryArray.from_arrays(indices, unique.dictionary)
