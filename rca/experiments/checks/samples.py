"""Samples that a run left or the user named: which files count, and what became of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from rca.experiments.checks.files import LeftFile, is_sample_file, listing, opened, shown
from rca.experiments.checks.sample_formats import BROKEN, MAX_BYTES, Samples, Unusable, read_table

MAX_ALTOGETHER = 1024 * 2**20
"""Bytes of all files."""
# fmt: off
_KNOWN = frozenset({
    "text", "content", "messages", "conversations", "prompt", "input", "inputs", "question", "sentence", "document",
    "instruction", "source", "input_ids", "ids", "token_ids", "tokens", "decoder_input_ids", "labels", "label",
    "target", "targets", "y", "x", "features", "image", "pixel_values", "input_values", "input_features",
    "attention_mask", "label_ids", "completion", "response", "chosen", "rejected", "answer", "sentence1", "sentence2",
    "premise", "hypothesis", "images", "data", "query", "context",
})
# fmt: on
"""Columns of samples."""
_CURVES = frozenset(
    {"loss", "step", "epoch", "lr", "learning_rate", "grad_norm", "train_loss", "eval_loss", "global_step"}
)
"""Columns of records about a training."""
_PART = re.compile(
    r"(?:^|[._-])(?:head|tail|part|excerpt|first|last|copy|sample|snippet|preview|small|subset)(?=$|[._\-\d])", re.I
)
"""Names of files that hold some of the samples only."""


@dataclass
class Reading:
    """All samples below a folder."""

    tables: list[Samples] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    """(file, why)."""
    damaged: list[tuple[str, str]] = field(default_factory=list)
    """Files that are not what their name says: (file, what is wrong)."""


def read_samples(root: Path, *, named: bool) -> Reading:
    """Read every file of samples below `root`; `named` is a place that the user chose, where every table counts."""
    found = Reading()
    budget = MAX_ALTOGETHER
    for file in listing(root).files:
        if not is_sample_file(file.path, named=named):
            continue
        if file.size > min(MAX_BYTES, budget) and not file.path.lower().endswith((".jsonl", ".ndjson", ".csv", ".tsv")):
            found.unread.append((shown(file.path), f"{file.size:,} bytes are more than is read"))
            continue
        budget -= min(file.size, MAX_BYTES)
        if budget < 0:
            found.unread.append((shown(file.path), "more files than are read"))
            break
        try:
            found.tables.extend(_table(root, file, named=named))
        except Unusable as error:
            found.unread.append((shown(file.path), str(error)))
        except PermissionError:
            found.unread.append((shown(file.path), "reading it is not permitted"))
        except BROKEN as error:
            # The words of a system error would name the place on this machine.
            words = error.strerror or "" if isinstance(error, OSError) and error.filename else str(error)
            said = " ".join(words.split())[:120]
            found.damaged.append((shown(file.path), f"{type(error).__name__}: {said}"))
    return found


def _table(root: Path, file: LeftFile, *, named: bool) -> Iterator[Samples]:
    with opened(root, file.path) as stream:
        made = read_table(stream, file)
    names = {str(name).lower() for name in made.columns}
    if not named and (names & _CURVES or (names and not names & _KNOWN)):
        return
    part = not named and _PART.search(file.path.rpartition("/")[2]) is not None
    yield replace(made, whole=False) if part else made
