"""Classes and their indices as data sets print them: `{'ant': 0, 'bee': 1}`."""

from __future__ import annotations

import re

from rca.events import EventBuilder
from rca.ingest.blocks.lines import place_of
from rca.ingest.logs.document import Document

_WORDS = (
    r"class(?:es)?(?:_to_idx|[_ ]ind(?:ex|ices)|_dict|_map(?:ping)?)?|label(?:s|2id|_to_id|_map(?:ping)?)?|categories"
)
_HEAD = re.compile(rf"(?<![A-Za-z0-9])(?:{_WORDS})\b[^{{}}\n]{{0,60}}?[:=]?\s{{0,4}}(?P<map>\{{.{{1,20000}}?\}})", re.I)
_ITEM = re.compile(r"['\"](?P<name>[^'\"]{1,80})['\"]\s?:\s?(?P<index>\d{1,6})\s?[,}]")
_FEWEST = 2
_MOST = 2000


class ClassIndicesParser:
    """Adds one `labels.indices` for each printed map from two or more class names to numbers that are all different."""

    name = "class indices"
    triggers: tuple[str, ...] = (
        rf"(?i)(?:^|[^A-Za-z0-9])(?:{_WORDS})\b[^{{}}]{{0,60}}\{{['\x22][^'\x22]+['\x22]\s?:\s?\d",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read one line; it stays open to others."""
        found = _HEAD.search(document.prefix(line).message[:24_000])
        if found is None:
            return line
        indices = {item["name"]: int(item["index"]) for item in _ITEM.finditer(found["map"])}
        if _FEWEST <= len(indices) <= _MOST and len(set(indices.values())) == len(indices):
            out.add(kind="artifact", name="labels.indices", **place_of(document, line), attrs={"indices": indices})
        return line
