"""Command lines that a log echoes: launcher calls with `--flag value`, `set -x` traces."""

from __future__ import annotations

import re

from rca.events import EventBuilder
from rca.ingest.blocks.settings_out import tell
from rca.ingest.logs.document import Document
from rca.ingest.settings.script_files import command_settings

_PROGRAM = re.compile(
    r"(?:^|[\s/'\"=])(?:python[\d.]*|torchrun|deepspeed|accelerate|srun|mpirun|docker|vllm|sglang|trtllm-\w+|axolotl|tune|"
    r"text-generation-launcher|llama-server|[\w./-]+\.py)(?=\s|$)"
)
_QUOTES = re.compile(r"""['"],? ?['"]?""")
_LINES = 60
_CHARS = 16_384


class CommandLineParser:
    """One echoed command, with the lines that a backslash continues."""

    name = "command line"
    triggers: tuple[str, ...] = (
        r" --[a-z][\w-]*[ =]\S.* --[a-z]",
        r"\.py +\\$",
        r"^\+ .*(?:python|torchrun|deepspeed|accelerate)\b.*--",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add the flags as settings; return the line after the command, or `line` where it is none."""
        text = document.prefix(line).message
        last = line
        while text.rstrip().endswith("\\") and last - line < _LINES and last < len(document) and len(text) < _CHARS:
            last += 1
            text = text.rstrip().rstrip("\\") + " " + document.prefix(last).message.strip()
        if not _PROGRAM.search(text[:_CHARS]):
            return line
        if text.count("', '") > 2:
            text = _QUOTES.sub(" ", text)
        settings = command_settings(text[:_CHARS])
        return last + 1 if settings and tell(out, document, line, settings, role="command") else line
