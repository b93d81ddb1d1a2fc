"""Progress bars as tqdm and Lightning draw them."""

from __future__ import annotations

import re
from typing import NamedTuple

_BAR = re.compile(
    r"(?P<tune>\d{1,5}\|\d{1,9}\|)?(?P<desc>[^|%]{0,120}?):?\s{0,8}(?P<percent>\d{1,3})%(?: Completed)? ?"
    r"\|(?P<drawn>[^|]{0,200})\|\s{0,4}"
    r"(?P<n>[\d.]{1,12}[kMG]?)/(?P<total>[\d.]{1,12}[kMG]?)\s{0,4}"
    r"(?:\[(?P<elapsed>[\d:]{4,12})<(?P<eta>[\d:?]{1,12})(?:,\s{0,4}(?P<rate>[\d.]{1,12}|"
    r"\?) ?(?P<unit>[A-Za-z]{1,12}/[A-Za-z]{1,12}))?"
    r"(?P<postfix>[^\]\r\n]{0,1000}))?"
)
_TRAINING = re.compile(r"^\s*$|epoch|train|step|iter|optimi", re.I)
_PREPARATION = re.compile(
    r"\b(?:scann?ing|caching|tokeni[sz]\w+|loading|reading|mapping|filtering|packing|download\w*|extracting|indexing|"
    r"preprocess\w*|generating (?:train|valid|test)\w* split|saving the dataset|checking|verifying)\b",
    re.I,
)
"""What is done to the data of a split before training: its items are no steps."""
_EVALUATION = re.compile(r"valid|eval|test|predict|sanity", re.I)
_LIGHTNING_EPOCH = re.compile(r"epoch\s*(?P<epoch>\d{1,6})(?:/(?P<epochs>\d{1,6}))?", re.I)
_POWER = {"k": 1e3, "M": 1e6, "G": 1e9}


class Bar(NamedTuple):
    """One state of a progress bar."""

    description: str
    name: str
    """The description without the number of the epoch."""
    done: int
    total: int
    rate: float | None
    unit: str | None
    postfix: str
    kind: str
    """`train`, `eval` or `other` (downloads, shards, tokenising)."""
    epoch: int | None
    epochs: int | None
    step: int | None
    """Global step where the description states it, as torchtune does."""


def bar_parts(text: str) -> re.Match[str] | None:
    """Return where the parts of a progress bar stand in a text."""
    return _BAR.search(text[:4096])


def bar(text: str) -> Bar | None:
    """Read a progress bar, or return None."""
    found = bar_parts(text)
    if found is None:
        return None
    description = found["desc"].strip()
    postfix = (found["postfix"] or "").lstrip(", ")
    name = description
    epoch = epochs = step = None
    named = _LIGHTNING_EPOCH.search(description)
    if found["tune"]:
        epoch, step = (int(part) for part in found["tune"].split("|")[:2])
        postfix = f"{description} {postfix}"
        kind = "train"
    elif _PREPARATION.search(description):
        kind = "other"
    elif _EVALUATION.search(description):
        kind = "eval"
    elif _TRAINING.search(description) and (found["unit"] or "it/s").lower() in {
        "it/s",
        "s/it",
        "step/s",
        "s/step",
        "batch/s",
        "s/batch",
    }:
        kind = "train"
    else:
        kind = "other"
    if named:
        name = description[: named.start("epoch")] + description[named.end("epoch") :]
        epoch = int(named["epoch"])
        epochs = int(named["epochs"]) if named["epochs"] else None
    rate = found["rate"]
    return Bar(
        description=description,
        name=name,
        done=_count(found["n"]),
        total=_count(found["total"]),
        rate=float(rate) if rate and rate.replace(".", "", 1).isdigit() else None,
        unit=found["unit"],
        postfix=postfix,
        kind=kind,
        epoch=epoch,
        epochs=epochs,
        step=step,
    )


def _count(text: str) -> int:
    scale = _POWER.get(text[-1], 1.0)
    digits = text.rstrip("kMG")
    return int(float(digits) * scale) if digits.count(".") <= 1 and digits.strip(".") else 0
