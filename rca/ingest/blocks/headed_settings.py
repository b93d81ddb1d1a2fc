"""A line that lists settings and nothing else: `config: model=gpt batch=128 lr=2e-4 compile.backend=inductor`."""

from __future__ import annotations

import re
from typing import Any

from rca.events import EventBuilder
from rca.ingest.blocks.settings_out import tell
from rca.ingest.logs.document import Document
from rca.ingest.settings.reprs import Unknown, scalar

_WORDS = r"(?:cfg|conf|config(?:uration)?|args|arguments|settings|hparams|hyperparameters|params|options|flags)"
_HEAD = re.compile(
    rf"(?:\[[\w.-]{{1,30}}\] ?)?\W{{0,4}}{_WORDS}(?::\s{{0,3}}|\s{{1,3}})(?=[A-Za-z_][\w.]{{0,60}}=\S)", re.I
)
_PAIR = re.compile(
    r"(?<![\w.\-/=])(?P<key>[A-Za-z_][\w.]{0,60})="
    r"(?P<value>'[^']{0,200}'|\"[^\"]{0,200}\"|\([\d., e+-]{3,60}\)|[^\s,;]{1,200})"
)
_FEWEST = 3
_MOST = 4000


class HeadedSettingsParser:
    """Reads the pairs behind a word for configuration; settings, although `lr=` stands among them."""

    name = "headed settings"
    triggers: tuple[str, ...] = (
        rf"(?i)^(?:\[[\w.-]{{1,30}}\] ?)?\W{{0,4}}{_WORDS}(?::\s{{0,3}}|\s{{1,3}})[a-z_][\w.]{{0,60}}=\S",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add the settings; return the line after, or `line` where it lists fewer than three."""
        message = document.prefix(line).message[:_MOST]
        head = _HEAD.match(message)
        if head is None:
            return line
        found: dict[str, Any] = {item["key"]: scalar(item["value"]) for item in _PAIR.finditer(message, head.end())}
        settings = {key: value for key, value in found.items() if not isinstance(value, Unknown)}
        if len(settings) < _FEWEST:
            return line
        tell(out, document, line, settings)
        return line + 1
