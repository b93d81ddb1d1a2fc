"""Settings printed one a line: Megatron's and DeepSpeed's dotted tables, the Trainer's banner, torchtitan's summary."""

from __future__ import annotations

import re
from typing import Any

from rca.events import EventBuilder
from rca.ingest.blocks.settings_out import tell
from rca.ingest.logs.document import Document
from rca.ingest.settings.reprs import Unknown, scalar

_DOTTED = re.compile(r"\s{0,8}(?P<key>[A-Za-z_][\w.\-/]{0,80}?) ?(?:\.{3,120}|\s{2}) ?(?P<value>\S.*)$")
_BANNER = re.compile(
    r"\s{0,8}(?P<key>Num examples|Num Epochs|Num batches each epoch|Instantaneous batch size per (?:GPU|device)|"
    r"Total train batch size|Gradient Accumulation steps|Total optimization steps|Number of trainable parameters|"
    r"Batch size|Total Micro Batches)\b[^=:\n]{0,80}[=:] ?(?P<value>[\d,]+)"
)
_BANNER_KEYS = {
    "num examples": "num_train_examples",
    "num epochs": "num_train_epochs",
    "instantaneous batch size per gpu": "per_device_train_batch_size",
    "instantaneous batch size per device": "per_device_train_batch_size",
    "total train batch size": "global_batch_size",
    "gradient accumulation steps": "gradient_accumulation_steps",
    "total optimization steps": "max_steps",
    "number of trainable parameters": "trainable_parameters",
    "num batches each epoch": "batches_per_epoch",
    "batch size": "eval_batch_size",
}
_SUMMARY = re.compile(
    r"(?P<key>local batch size|global batch size|gradient accumulation steps|sequence length|total steps|"
    r"warmup) (?P<value>\d+)"
)
_SUMMARY_KEYS = {"total steps": "max_steps", "sequence length": "seq_len", "warmup": "warmup_steps"}


class SettingsLineParser:
    """One setting a line."""

    name = "settings line"
    triggers: tuple[str, ...] = (
        r"^\s{0,8}[A-Za-z_][\w.\-/]* ?\.{3,} \S",
        r"config\.py:\d+:print\]\s+\w+",
        r"Num examples|Num Epochs|Instantaneous batch size|Total train batch size|Gradient Accumulation steps|"
        r"Total optimization steps|Number of trainable parameters",
        r"Trainer is initialized with local batch size \d",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add the setting; return the line after it, or `line` where it is none."""
        message = document.prefix(line).message
        if message.startswith("Trainer is initialized"):
            found = {
                _SUMMARY_KEYS.get(item["key"], item["key"].replace(" ", "_")): int(item["value"])
                for item in _SUMMARY.finditer(message[:600])
            }
            return line + 1 if tell(out, document, line, found) else line
        banner = _BANNER.match(message)
        if banner:
            key = banner["key"].lower()
            return line + (
                tell(out, document, line, {_BANNER_KEYS.get(key, key): int(banner["value"].replace(",", ""))}) > 0
            )
        dotted = _DOTTED.match(message[:4000])
        if dotted is None:
            return line
        value: Any = scalar(dotted["value"])
        if value is not None and not isinstance(value, Unknown) and value not in ("{", "[", "("):
            tell(out, document, line, {dotted["key"]: value})
        return line + 1
