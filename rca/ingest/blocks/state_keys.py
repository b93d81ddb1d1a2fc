"""Names that a checkpoint and a model do not share, as loaders list them in one line."""

from __future__ import annotations

import re

from rca.events import EventBuilder
from rca.ingest.blocks.lines import place_of
from rca.ingest.logs.document import Document

_LIST = re.compile(r"\b(?P<kind>missing|unexpected)[_ ]keys?(?:\(s\))?(?: in (?:source )?state_dict)?\s?[:=]\s?", re.I)
_NAME = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)+")
_LONGEST = 200_000
_MOST = 2000


class StateKeysParser:
    """Adds one `weights.keys` for each list of names that are missing from or unexpected in a checkpoint."""

    name = "state keys"
    triggers: tuple[str, ...] = (
        r"(?i)\b(?:missing|unexpected)[_ ]keys?(?:\(s\))?(?: in (?:source )?state_dict)?\s?[:=]",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read one line; it stays open to others."""
        text = document.prefix(line).message[:_LONGEST]
        heads = list(_LIST.finditer(text))
        for head, following in zip(heads, [*heads[1:], None], strict=True):
            part = text[head.end() : following.start() if following is not None else None]
            keys = list(dict.fromkeys(_NAME.findall(part)))[:_MOST]
            if keys:
                attrs = {"kind": head["kind"].lower(), "keys": keys}
                out.add(kind="artifact", name="weights.keys", **place_of(document, line), attrs=attrs)
        return line
