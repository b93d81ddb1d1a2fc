"""Settings printed as an object: `Namespace(...)`, `TrainingArguments(...)`, an optimizer, a dict of arguments."""

from __future__ import annotations

import re

from rca.events import EventBuilder
from rca.ingest.blocks.settings_out import tell
from rca.ingest.logs.document import Document
from rca.ingest.settings.reprs import arguments, call_end

_CALL = re.compile(
    r"(?<![\w.])(?P<name>(?:[A-Za-z_]\w*\.){0,6}(?:Namespace|\w*Arguments|\w*Args|\w*Config|\w*Params|"
    r"\w*Options|\w*Recipe|"
    r"\w*Adam\w*|SGD|RMSprop|Adagrad|Adafactor|Lion|LAMB|Muon|DataLoader))\s?\("
)
_DICT = re.compile(
    r"(?:args|arguments|config|cfg|hparams|hyperparameters|params|settings|"
    r"options)\b[\w ]{0,30}['\"]?\s{0,4}[:=]\s{0,8}\{",
    re.I,
)
_PLAIN = re.compile(r"with config: (?=\w+=)")
_OPTIMIZER = re.compile(r"Adam|^SGD$|^RMSprop$|^Adagrad$|^Adafactor$|^Lion$|^LAMB$|^Muon$")
_LINES = 400
_CHARS = 65_536


class PrintedObjectParser:
    """Objects printed on one line or over several, up to the bracket that closes them."""

    name = "printed object"
    triggers: tuple[str, ...] = (
        r"\w*(?:Namespace|Arguments|Args|Config|Params|Options|Recipe|Adam\w{0,12}|SGD|RMSprop|Adagrad|"
        r"Adafactor|Lion|LAMB|Muon|DataLoader) ?\((?:\s*$|\s*\w+ ?=|Parameter|\s*\()",
        r"(?i)(?:args|arguments|config|cfg|hparams|hyperparameters|params|settings|"
        r"options)\b[\w ]{0,30}['\"]?\s{0,4}[:=]\s{0,8}\{ ?['\"]",
        r"with config: \w+=",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add the settings of the object; return the line after it, or `line` where it is none."""
        message = document.prefix(line).message
        plain = _PLAIN.search(message)
        if plain:
            tell(out, document, line, arguments(message[plain.end() :].rstrip(", ")))
            # The line tells the version of the engine as well: it stays open to other parsers.
            return line
        call = _CALL.search(message)
        if call is None:
            found = _DICT.search(message)
            if found is None:
                return line
            text, last = _to_close(document, line, message, found.end() - 1)
            settings = arguments(text)
        else:
            text, last = _to_close(document, line, message, call.end() - 1)
            name = call["name"].rsplit(".", 1)[-1]
            settings = _parameter_groups(text) if "Parameter Group" in text[:40] else arguments(text)
            if settings and _OPTIMIZER.search(name):
                settings["optimizer"] = name.lower()
        if not settings:
            return line
        tell(out, document, line, settings)
        return last + 1


def _to_close(document: Document, line: int, message: str, start: int) -> tuple[str, int]:
    """Return what stands between the bracket at `start` and the one that closes it, and the line of that one."""
    text = message
    last = line
    while (end := call_end(text, start)) is None and last - line < _LINES and len(text) < _CHARS:
        if last + 1 > len(document):
            break
        following = document.prefix(last + 1)
        if following.rank != document.prefix(line).rank:
            break
        last += 1
        text += "\n" + following.message
    return (text[start + 1 :], line) if end is None else (text[start + 1 : end - 1], last)


def _parameter_groups(text: str) -> dict[str, object]:
    """Settings of the first group of an optimizer as torch prints it."""
    first = text.split("Parameter Group 1", maxsplit=1)[0]
    rows = [row.strip() for row in first.splitlines() if ":" in row]
    return arguments(", ".join(rows))
