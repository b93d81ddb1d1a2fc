"""The configuration of a W&B run: items of key and JSON text."""

from __future__ import annotations

import json
from typing import Any

from rca.events import EventBuilder
from rca.ingest.settings.config_rows import add_settings
from rca.ingest.trackers.wandb_messages import text_of

_OWN = "_wandb"
_MOST = 5000


def add_configuration(out: EventBuilder, items: Any, *, line: int) -> None:
    """Add the settings of a configuration record; what W&B keeps there for itself is left out."""
    document: dict[str, Any] = {}
    for item in items[:_MOST]:
        path = [text_of(part) for part in ([item.key] if item.key else item.nested_key)]
        if not path or path[0] == _OWN:
            continue
        try:
            value = json.loads(item.value_json)
        except (ValueError, RecursionError):
            continue
        document[".".join(path)] = value
    if document:
        add_settings(out, document, role="training", line=line)
