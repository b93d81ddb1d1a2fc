"""Settings printed one a line, as scripts list their arguments: `max_iters = 600000`, `learning_rate     : 0.005`."""

from __future__ import annotations

import re
from typing import Any

from rca.events import EventBuilder
from rca.ingest.blocks.settings_out import tell
from rca.ingest.logs.document import Document
from rca.ingest.names import CONFIG_NAMES, canonical_config
from rca.ingest.settings.reprs import Unknown, scalar

_ROW = re.compile(
    r"(?:(?:\[ {0,6}[A-Z]{4,8}\] )?- )?\s{0,8}(?P<key>[A-Za-z_][\w.\-]{0,60})(?: {0,24}= ?| {2,60}(?P<aligned>:) ?)"
    r"(?P<value>[^=\s].{0,200}?),?\s*$"
)
_WORD = re.compile(r"[\w./@-]{1,160}")
_MEASURED = re.compile(
    r"loss$|acc(?:uracy)?$|runtime$|per_second$|perplexity$|(?:^|_)(?:f1|bleu|rouge\w*|wer|cer|auc)$", re.I
)
"""Names of results: a listing that holds one tells how it went, not how it was set."""
_FEWEST = 3
"""Assignments in a row that make a listing; one or two may be a message."""
_LINES = 2000


class AssignedSettingsParser:
    """Three or more lines in a row that assign a plain value to a name, before training starts."""

    name = "assigned settings"
    triggers: tuple[str, ...] = (
        r"^\s{0,8}[A-Za-z_][\w.\-]{0,60} {0,24}= ?(?:['\"\[(]|-?\.?\d|True\b|False\b|None\b|[a-z_]+\s*$)",
        r"(?:^\s{0,8}|- )[a-z_][\w.\-]{0,60} {2,60}: ?\S+\s*$",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add the settings of the listing; return the line after it, or `line` where it is none."""
        if document.step(line) is not None:
            return line
        found: dict[str, Any] = {}
        aligned = False
        last = line - 1
        while last < len(document) and len(found) < _LINES:
            row = _ROW.fullmatch(document.prefix(last + 1).message[:300])
            value = None if row is None else scalar(row["value"])
            if row is not None and isinstance(value, Unknown) and row["aligned"] and _WORD.fullmatch(row["value"]):
                value = row["value"]
            if row is None or isinstance(value, Unknown):
                break
            aligned |= bool(row["aligned"])
            found[row["key"]] = value
            last += 1
        if len(found) < _FEWEST or any(_MEASURED.search(key) for key in found):
            return line
        # Aligned colons stand in tables of all kinds; one that sets something common is a listing of settings.
        if aligned and not any(canonical_config(key) in CONFIG_NAMES for key in found):
            return line
        tell(out, document, line, {key: value for key, value in found.items() if value is not None})
        return last + 1
