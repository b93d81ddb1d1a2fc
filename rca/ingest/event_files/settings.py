"""Settings inside TensorBoard event files: hyper-parameter records, and texts that hold a configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rca.events import EventBuilder
from rca.ingest.names import canonical_config
from rca.ingest.tables.structured import flatten

HPARAMS = "_hparams_/session_start_info"
"""Tag of the record that holds the hyper-parameters (tensorboard/plugins/hparams/metadata.py)."""

_MAX_SETTINGS = 2000
_TABLE_ROW = re.compile(r"\|([^|\n]{1,80})\|([^|\n]{0,400})\|")


def message_of(kind: Any, data: bytes) -> Any:
    """Decode a protobuf message, or return None where the bytes are none."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        return kind.FromString(data)
    except DecodeError:
        return None


def hyper_parameters(content: bytes) -> dict[str, Any]:
    """Return the hyper-parameters of a session; empty where the bytes hold none."""
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    data = message_of(HParamsPluginData, content)
    return {} if data is None else {key: _plain(item) for key, item in data.session_start_info.hparams.items()}


def _plain(value: Any) -> Any:
    """Return a protobuf struct value as a JSON value."""
    kind = value.WhichOneof("kind")
    if kind in {"number_value", "string_value", "bool_value"}:
        return getattr(value, kind)
    if kind == "list_value":
        return [_plain(item) for item in value.list_value.values]
    return None


def settings_in(text: str) -> dict[str, Any]:
    """Return the settings a text summary holds: a JSON object (transformers writes one) or a two-column table."""
    stripped = text.strip()
    if stripped.startswith("{"):
        try:
            found = json.loads(stripped)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}
    if not stripped.startswith("|"):
        return {}
    rows = [_TABLE_ROW.fullmatch(line.strip()) for line in stripped.splitlines()[:_MAX_SETTINGS]]
    pairs = [(row[1].strip(), row[2].strip()) for row in rows if row]
    return {key: value for key, value in pairs[1:] if key.strip("-: ")}


def _number(value: Any) -> float | None:
    if not isinstance(value, (bool, int, float, str)) or (isinstance(value, str) and len(value) > 40):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def add_settings(out: EventBuilder, settings: Mapping[str, Any], *, line: int, time: int | None) -> None:
    """Add one config event a setting, nested settings by their dotted key."""
    for key, value in flatten(settings, limit=_MAX_SETTINGS):
        known = _number(value)
        out.add(
            kind="config",
            name=canonical_config(key),
            line=line,
            time=time,
            value=known,
            text=value if isinstance(value, str) else json.dumps(value, default=str),
            attrs={"key": key, "value": value},
        )
