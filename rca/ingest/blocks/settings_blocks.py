"""Settings printed as a block of JSON, YAML or Rust's debug form."""

from __future__ import annotations

import re
from typing import Any

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.blocks.settings_out import tell
from rca.ingest.logs.document import Document
from rca.ingest.settings.reprs import Unknown, scalar
from rca.ingest.tables.structured import parse_json, parse_yaml

_OPENED = re.compile(r"(?:^|[\s=:(])\{\s*$")
_JSON_ROW = re.compile(r'\s{0,40}"[^"]{1,120}"\s?:')
_RUST_ROW = re.compile(r"\s{4}(?P<key>[a-z_]\w{0,80}): (?P<value>.*?),?\s*$")
_TITLE = re.compile(
    r"(?:config(?:uration)?|hparams|hyper-?parameters|arguments|args|settings|options|parameters)\s{0,4}:\s*$", re.I
)
_YAML_ROW = re.compile(r"(?P<indent>\s{0,16})(?:- )?(?P<key>[A-Za-z_][\w.\-/ ]{0,60}):(?: (?P<value>.{0,400}))?$")
_LINES = 2000


class SettingsBlockParser:
    """A block of settings up to its closing brace or to the first line that is no setting."""

    name = "settings block"
    triggers: tuple[str, ...] = (
        r"(?:^|[\s=:(])\{\s*$",
        r"(?i)(?:config(?:uration)?|hparams|hyper-?parameters|arguments|args|settings|options|parameters)\s{0,4}:\s*$",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add the settings of the block; return the line after it, or `line` where it is none."""
        message = document.prefix(line).message
        if _OPENED.search(message):
            return self._braces(document, line, out)
        if _TITLE.search(message):
            return self._yaml(document, line, out)
        return line

    @staticmethod
    def _braces(document: Document, line: int, out: EventBuilder) -> int:
        rows: list[str] = []
        depth = 1
        last = line
        while depth > 0 and last < len(document) and len(rows) < _LINES:
            last += 1
            row = document.prefix(last).message
            if not rows and not (_JSON_ROW.match(row) or _RUST_ROW.match(row)):
                return line
            depth += row.count("{") + row.count("[") - row.count("}") - row.count("]")
            rows.append(row)
        if not rows:
            return line
        found = _rust(rows) if _RUST_ROW.match(rows[0]) else _json(rows)
        if not found:
            return line
        tell(out, document, line, found)
        return last + 1

    @staticmethod
    def _yaml(document: Document, line: int, out: EventBuilder) -> int:
        rows: list[str] = []
        last = line
        while last < len(document) and len(rows) < _LINES:
            row = document.prefix(last + 1).message.rstrip()
            item = row.lstrip().startswith("- ") and bool(rows)
            if row and not item and not _YAML_ROW.fullmatch(row):
                break
            if not row and rows:
                break
            last += 1
            if row:
                rows.append(row)
        if len(rows) < 2:
            return line
        try:
            found = parse_yaml("\n".join(rows), what=document.path)
        except UnreadableSource:
            return line
        if not found or not isinstance(found[0], dict):
            return line
        tell(out, document, line, {str(key): value for key, value in found[0].items()})
        return last + 1


def _json(rows: list[str]) -> dict[str, Any]:
    text = "{" + "\n".join(rows)
    end = text.rfind("}")
    try:
        found = parse_json(text[: end + 1], what="the block")
    except UnreadableSource:
        return {}
    return found if isinstance(found, dict) else {}


def _rust(rows: list[str]) -> dict[str, Any]:
    """`name: value,` rows; a value over several lines (`Some(\\n 1,\\n)`) is its inner row."""
    found: dict[str, Any] = {}
    key = ""
    for row in rows:
        named = _RUST_ROW.match(row)
        if named:
            key = named["key"]
            value = scalar(named["value"]) if not named["value"].endswith(("(", "{", "[")) else None
        elif key and row.startswith(" " * 8):
            value = scalar(row)
        else:
            continue
        if value is not None and not isinstance(value, Unknown):
            found[key] = value
    return found
