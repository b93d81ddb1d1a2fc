"""Lists inside logs: `pip freeze`, `pip list`, and the environment variables that `env` prints."""

from __future__ import annotations

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import claim, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.settings.config_rows import add_settings
from rca.ingest.settings.packages import Package, add_package, package_name, pinned

_TABLE_RULE = re2.compile(r"-+\s+-+(?:\s+-+)*\s*")
_TABLE_ROW = re2.compile(r"([A-Za-z0-9][\w.-]*)\s+([0-9][\w.!+-]*)(?:\s+\S.*)?")
_VARIABLE = re2.compile(r"(?:export |declare -x )?([A-Z][A-Z0-9_]{2,60})=(.*)")
_KNOWN_VARIABLE = re2.compile(
    r"(?:NCCL|CUDA|PYTORCH|TORCH|HF|HUGGINGFACE|TRANSFORMERS|OMP|MKL|SLURM|MASTER|WANDB|VLLM|NVIDIA|GLOO|UCX|FI|RDMAV|"
    r"TOKENIZERS|XLA|TF|LD|TRITON|ACCELERATE|FSDP|DEEPSPEED|DS)_\w+|WORLD_SIZE|RANK|LOCAL_RANK|LOCAL_WORLD_SIZE|GROUP_RANK"
)
_FEWEST = 3
"""Lines in a row that make a list; one `name==version` in a sentence is none."""
_FEWEST_VARIABLES = 2


class PackageLinesParser:
    """Adds the packages of `pip freeze` and `pip list` output inside a log."""

    name = "package list"
    triggers: tuple[str, ...] = (r"^[A-Za-z0-9][\w.-]*==[0-9]", r"^Package\s+Version(?:\s+\w[\w ]*)?$")

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the list that starts at `line`; fewer than three lines are no list."""
        table = document.prefix(line).message.startswith("Package")
        found: list[tuple[int, Package]] = []
        end = line + 1
        for place, text in table_lines(document, line, most=5000):
            plain = text.strip()
            if table and (place == line or _TABLE_RULE.fullmatch(plain)):
                continue
            row = _TABLE_ROW.fullmatch(plain) if table else None
            package = Package(package_name(row[1]), row[2]) if row else None if table else pinned(plain)
            if package is None:
                break
            found.append((place, package))
            end = place + 1
        if len(found) < _FEWEST:
            return line
        for place, package in found:
            add_package(out, package, line=place, offset=document.offset(place), origin="list" if table else "freeze")
        return claim(document, line, end)


class VariablesParser:
    """Adds environment variables that a log or a text file lists, one `NAME=value` a line."""

    name = "environment variables"
    triggers: tuple[str, ...] = (r"^(?:export |declare -x )?[A-Z][A-Z0-9_]{2,60}=",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the list that starts at `line`; a single line counts where the variable is a known one."""
        found: list[tuple[int, str, str]] = []
        end = line
        for place, text in table_lines(document, line, most=5000):
            match = _VARIABLE.fullmatch(text.strip()[:4000])
            if match is None:
                break
            found.append((place, match[1], match[2].strip("\"'")))
            end = place + 1
        if len(found) < _FEWEST_VARIABLES and not any(_KNOWN_VARIABLE.fullmatch(name) for _, name, _ in found):
            return line
        for place, name, value in found:
            add_settings(out, {name: value}, role="environment", line=place)
        return claim(document, line, end)
