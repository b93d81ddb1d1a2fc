"""Lines of scripts that say in words how many tokens were generated and in what time."""

from __future__ import annotations

import re

from rca.events import EventBuilder
from rca.ingest.blocks.lines import claim, table_line
from rca.ingest.blocks.request_lines import add_request
from rca.ingest.logs.document import Document

_MADE = r"(?:new|generated|output|completion)"
_COUNTS = (
    r"\b(?:generated|decoded|sampled)[ :]{1,2}(?P<verb>\d{1,7}) (?:new )?tok(?:en)?s?\b",
    rf"\b(?P<before>\d{{1,7}}) {_MADE} tok(?:en)?s\b",
    rf"\b{_MADE} tokens?[ :=]{{1,3}}(?P<after>\d{{1,7}})\b",
    r"\bgenerated in [^()]{1,30}\([^()]{0,60}?\b(?P<bracket>\d{1,7}) tokens[,)]",
)
_COUNT = re.compile("(?i)" + "|".join(_COUNTS))
_NUMBER = r"(\d{1,9}(?:\.\d{1,9})?)"
_UNIT = r" ?(ms|seconds|secs|sec|s)\b"
_TIMED = re.compile(rf"(?i)\b(?:in|elapsed|latency|took|time|duration|wall|total|after)[ :=]{{1,3}}{_NUMBER}{_UNIT}")
_TIME = re.compile(rf"(?<![\w.]){_NUMBER}{_UNIT}")
_PROMPT = re.compile(r"(?i)\b(?:(\d{1,7}) (?:prompt|input) tokens|(?:prompt|input)(?: tokens)?[ :=]{1,3}(\d{1,7})\b)")
_VOCABULARY = re.compile(r"(?i)\b(?:add(?:ed|ing|s)?|special|vocab\w*|embedding\w*|tokenizer)\b")
"""New tokens of a vocabulary are not generated."""
_MOST = 500


class GenerationLineParser:
    """Adds new_tokens, latency_s and ms_per_token for a sentence that tells them of one generation."""

    name = "generation"
    triggers: tuple[str, ...] = (
        r"(?i)\b(?:generated|decoded|sampled)[ :]{1,2}\d+ (?:new )?tok",
        rf"(?i)\b\d+ {_MADE} tok",
        rf"(?i)\b{_MADE} tokens?[ :=]{{1,3}}\d",
        r"(?i)\bgenerated in [\d.]+ s",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read one sentence; return `line` where it lacks the number of tokens or the time."""
        text = table_line(document, line)[:_MOST]
        count = _COUNT.search(text)
        timed = _TIMED.search(text) or _TIME.search(text)
        if count is None or timed is None or _VOCABULARY.search(text):
            return line
        tokens = float(next(part for part in count.groups() if part is not None))
        seconds = float(timed[1]) / (1000 if timed[2].lower() == "ms" else 1)
        if tokens <= 0 or seconds <= 0:
            return line
        found = {"new_tokens": tokens, "latency_s": seconds, "ms_per_token": 1000 * seconds / tokens}
        if (prompt := _PROMPT.search(text)) is not None:
            found["prompt_tokens"] = float(prompt[1] or prompt[2])
        add_request(out, document, line, found)
        return claim(document, line, line + 1)
