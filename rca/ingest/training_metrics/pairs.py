"""`name value` pairs in one line of a training log, with their units made common."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rca.ingest.metric_words import worded_metric
from rca.ingest.names import METRIC_NAMES, canonical_metric

MOST = 4096
"""Characters of a line that are searched for pairs."""

NUMBER = r"[-+]?(?:\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|[nN][aA][nN]|[iI]nf(?:inity)?(?!o))"
_FIRST_WORD = (
    r"(?:(?:train(?:ing)?|val\.?|valid\.?|validation|test|eval|dev|lm|avg|average|mean|total|grad(?:ient)?|loss|learning|"
    r"max|global|running|current|iter(?:ation)?|step|data|batch|elapsed|peak|gpu|cuda|num|prompt|generation|gen|"
    r"[Ll]ogit)[ -])"
)
_PAIR = re.compile(
    r"(?<![\w./@|%$-])(?P<key>" + _FIRST_WORD + r"{0,2}(?:time per iteration|(?:Data|Batch|Forward|Backward|Iter) time|"
    r"number of (?:skipped|nan) iterations|[A-Za-z][\w./@%-]*|\|{1,2}(?:[gGwW]|[dΔ][wW]|grad|theta|params?|Δ?θ)\|{1,2})"
    r"(?: ?\((?:ms|s|t|%|GB|GiB|MB|sec|tokens?/s)\)|\([a-z_]{3,12}\))?)"
    r"""(?P<sep>['"]?[ \t]{0,16}[:=]\s{0,16}['"]?|[ \t]{1,16}(?:is[ \t]{1,4})?)"""
    r"(?P<open>\[{0,2}|\()(?P<value>" + NUMBER + r")(?![\w]*/\w*\.\w)"
    r"(?P<unit> ?(?:GiB|GB|MiB|MB|KiB|KB|G|M|ms|us|µs|sec|s|%|k|K|B)(?![\w/])|)"
    r"(?![\d:])"
)
_SUFFIXED = re.compile(
    r"(?<![\w.:/-])(?P<value>\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?) ?"
    r"(?P<unit>s(?:ec)?/(?:step|it(?:er(?:ation)?)?|batch)|ms/(?:step|it(?:er(?:ation)?)?)|(?:it|its|steps?)/s(?:ec)?|"
    r"(?:tok(?:en)?s?|samples?|img|imgs|images|ex(?:amples)?|seqs?|words?|sent(?:ence)?s?|docs?|utt(?:erance)?s?|req(?:uest)?s?|"
    r"prompts?|rows?)/s(?:ec(?:ond)?)?)(?![\w/])"
)
_JOINED = re.compile(
    r"(?<![\w./-])(?P<key>loss|acc|accuracy|ppl)_(?P<value>\d{1,9}\.\d{1,20}(?:[eE][-+]?\d+)?)(?![\w.])"
)
"""`loss_3.27 acc_0.39`, as wenet joins names and values."""
_SPEED_KEY = re.compile(
    r"(?:it|its|steps?|tok(?:en)?s?|samples?|img|imgs|images|seqs?)/s(?:ec)?(?:/(?:gpu|dev(?:ice)?))?", re.I
)
_TIME_AND_DATA = re.compile(r"\btime \(data\): (?P<step>\d{1,9}\.\d{1,9}) \((?P<data>\d{1,9}\.\d{1,9})\)")
"""BasicSR prints the time of a step and, in brackets, the part of it that waited for data."""
_FOLLOWED = re.compile(r"[ :=]{1,8}[\d.]")
_BARE_MS = re.compile(r"(?:^|[|,]) ?(?P<value>\d[\d,]*\.?\d*) ms(?= ?(?:[|,(]|$))")
_BARE_SECONDS = re.compile(r"(?<=[\s|,(])(?P<value>\d[\d,]*\.\d+) ?(?:s|secs?|seconds)\)?[.,;|\s]{0,4}$")
"""A time that ends a line of metrics and has no name: of a step, since the line before, or since the start."""
_OF_TUTORIAL = re.compile(rf"%(?: \([\dhms ]{{2,20}}\)|\)) (?P<value>{NUMBER})(?= |$)")
"""PyTorch's tutorials print the loss behind what is done: `5000 5% (0m 7s) 2.71`, `0m 7s (- 2m 23s) (5000 6%) 2.86`."""
_AFTER = re.compile(
    r"(?:^|[|,;:] ?)(?:the )?(?P<key>[A-Za-z][\w ()/.-]{0,40}?) (?:after|at|for|in|on) (?:the )?(?:end of )?"
    r"(?:epoch|step|iteration|iter|round)s?[ #:]{0,2}\d+(?:/\d+)? ?(?:[:=]|is|->) {0,4}(?P<value>"
    + NUMBER
    + r") ?(?P<unit>%)?",
    re.I,
)
"""`Cost after iteration 100: 0.58`, `Accuracy at step 300: 0.87`: the name stands in front of the counter."""
_SPACE_VALUE = re.compile(r"[.eE]|[nN][aA][nN]|[iI]nf")
_GIB = {"gib": 1.0, "gb": 1.0, "g": 1.0, "mib": 1 / 1024, "mb": 1 / 1024, "m": 1 / 1024, "kib": 2**-20, "kb": 2**-20}
_SIZE_IN_NAME = re.compile(r"[_ (](gib|gb|mib|mb)\)?$")
_TIME = {"ms": 1e-3, "us": 1e-6, "µs": 1e-6}
_STATED_UNIT = re.compile(r" ?\((?:ms|s|%|gb|gib|mb|sec|tokens?/s)\)$")
_NOT_METRICS = frozenset(
    (
        "eta",
        "epoch",
        "epochs",
        "ep",
        "step",
        "steps",
        "iter",
        "iters",
        "iteration",
        "iterations",
        "it",
        "batch",
        "update",
        "num_updates",
        "global_step",
        "micro_step",
        "rank",
        "local_rank",
        "pid",
        "seed",
        "port",
        "world_size",
        "node",
        "version",
        "torch",
        "python",
        "cuda",
        "time_elapsed",
        "elapsed",
        "remaining",
        "s",
        "exp.",
        "of",
        "in",
        "at",
        "to",
        "the",
        "for",
        "and",
        "with",
        "from",
        "is",
        "was",
        "took",
        "after",
        "than",
        "every",
        "only",
        "not",
        "line",
        "v",
        "v_num",
        "id",
        "block",
        "best",
        "tokens",
        "samples",
        "sample",
        "consumed",
        "model",
    )
)
"""Words in front of a number that count, place or join, and measure nothing."""
_SPLITS = {"train": "loss", "training": "loss", "val": "eval_loss", "valid": "eval_loss", "validation": "eval_loss"}
_LOSS_LIKE = re.compile(r"(?:[1-9]|1\d)\.\d{3,8}")
_MEASURED = re.compile(
    r"acc|f1|auc|iou|\bmap|score|prec|recall|error|r2|bleu|time|size|samples|examples|images|rows", re.I
)
_STEP_TIME_KEYS = frozenset({"time", "iter time", "iter_time", "elapsed time per iteration", "step time", "step_avg"})
_SOURCE_FILES = (".py", ".cc", ".cpp", ".cu", ".rs")
"""`train.py:88]` says where a line was printed."""
_ONE_STEP = frozenset({"step", "iter", "iteration"})
"""Counters that are the time of one step where a short time follows: `step 424.9 ms`."""
_PEAKS = frozenset({"peak", "max", "used"})
"""Words that mean device memory when a size follows: `mem peak=26.5 GiB`."""
_KNOWN = frozenset(METRIC_NAMES)
_OF_ONE_LOSS = r"avg|avr|average|mean|running|moving|current|cur|last|step|batch|iter|epoch|smooth(?:ed)?|ema"
_SAME_LOSS = re.compile(rf"(?:(?:{_OF_ONE_LOSS})[ _./-])?loss(?:[ _./-](?:{_OF_ONE_LOSS}|value))?")
"""`step_loss` of diffusers, `avr_loss` of sd-scripts, `loss.avg`: the loss of training under its own name."""
_FAMILY = re.compile(
    r"loss|acc(?:uracy)?\b|_acc|top\d|ppl|perplex|reward|\bkl\b|iou|dice|\bf1|bleu|\bwer\b|\bcer\b|\bmae\b|mse|auc|"
    r"entropy|nll|throughput|\bfid\b|psnr|ssim|(?:^|_)(?:b?ce|ctc|mlm|elbo|kld|huber|cost|objective|criterion)$"
)


class Pair(NamedTuple):
    """One metric of a line."""

    name: str
    value: float
    unit: str | None
    known: bool
    """Whether the name is one that training programs are known to print."""


class Reading(NamedTuple):
    """How the number at one place of a line is to be read."""

    name: str
    unit: str | None
    scale: float = 1.0
    how: str = "plain"
    """`inverse` for steps a second, `memory` for sizes without a unit."""
    known: bool = False

    def pair(self, raw: str) -> Pair | None:
        """Return the metric, or None where the text is no number."""
        try:
            value = float(raw.replace(",", "") if "," in raw else raw)
        except ValueError:
            return None
        if self.how == "inverse":
            value = 1 / value if value else float("inf")
        elif self.how == "memory":
            value = _gib(value)
        elif self.scale != 1.0:
            value *= self.scale
        return Pair(self.name, value, self.unit, self.known)

    def column(self, raw: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return what `pair` gives for many numbers at once."""
        if self.how == "inverse":
            with np.errstate(divide="ignore"):
                return np.where(raw == 0, np.inf, 1 / raw)
        if self.how == "memory":
            return np.where(raw >= 1e7, raw / 2**30, np.where(raw >= 300, raw / 1024, raw))
        return raw * self.scale if self.scale != 1.0 else raw


class Slot(NamedTuple):
    """One number of a line that is a metric."""

    start: int
    end: int
    reading: Reading


def slots(message: str) -> list[Slot]:
    """Return the places of the metrics of a line; counters such as the step are left out."""
    text = message[:MOST]
    found: list[Slot] = []
    taken: set[int] = set()
    printed: dict[int, str] = {}
    for item in _PAIR.finditer(text):
        key, separator, opened, raw, unit = item.group("key", "sep", "open", "value", "unit")
        start, end = item.span("value")
        if _SPEED_KEY.fullmatch(key):
            found.append(Slot(start, end, rate(key)))
            continue
        name = "step_time" if unit.strip() in _TIME and key.lower() in _ONE_STEP else _name(key)
        if name is None or (opened and name != "learning_rate"):
            continue
        if not separator.strip(" \tis"):
            if not (_SPACE_VALUE.search(raw) or name in _KNOWN or unit.strip() in _TIME):
                continue
            taken.add(start)
        found.append(Slot(start, end, _reading(name, key.lower(), unit.strip().lower())))
        printed[start] = key.lower()
    # `loss 3.5 it/s 1.3`: the number belongs to the name in front of it when a number follows the unit.
    found.extend(
        Slot(*item.span("value"), rate(item["unit"]))
        for item in _SUFFIXED.finditer(text)
        if not (item.start() in taken and _FOLLOWED.match(text, item.end()))
    )
    found.extend(Slot(*item.span("value"), entry(item["key"])) for item in _JOINED.finditer(text))
    bare = _BARE_MS.search(text)
    if bare:
        found.append(Slot(*bare.span("value"), Reading("step_time", "s", 1e-3, known=True)))
    seconds = _BARE_SECONDS.search(text)
    if seconds and all(slot.start != seconds.start("value") for slot in found):
        found.append(Slot(*seconds.span("value"), Reading("line_time", "s")))
    after = _AFTER.search(text)
    if after and all(slot.start != after.start("value") for slot in found) and (name := _name(after["key"])):
        found.append(Slot(*after.span("value"), _reading(name, after["key"].lower(), "")))
    if not found:
        of_tutorial = _OF_TUTORIAL.search(text)
        if of_tutorial:
            found.append(Slot(*of_tutorial.span("value"), Reading("loss", None, known=True)))
    split = _TIME_AND_DATA.search(text)
    if split:
        found.append(Slot(*split.span("step"), Reading("step_time", "s", known=True)))
        found.append(Slot(*split.span("data"), Reading("data_time", "s", known=True)))
    return _told_apart(_of_splits(text, found), printed)


def of_epochs(found: list[Slot]) -> list[Slot]:
    """Return the places with a nameless time called that of an epoch, in a line that counts no steps."""
    return [
        slot._replace(reading=slot.reading._replace(name="epoch_time")) if slot.reading.name == "line_time" else slot
        for slot in found
    ]


def _of_splits(text: str, found: list[Slot]) -> list[Slot]:
    """Call the numbers of bare splits losses: `step 100 | train 3.2114 | val 3.3020`, where nothing else is named.

    Only numbers that a share cannot be, with the decimals of a loss, are taken for one.
    """
    if _MEASURED.search(text) or any(slot.reading.name in _SPLITS.values() for slot in found):
        return found
    return [
        slot._replace(reading=slot.reading._replace(name=_SPLITS[slot.reading.name], known=True))
        if slot.reading.name in _SPLITS and _LOSS_LIKE.fullmatch(text[slot.start : slot.end])
        else slot
        for slot in found
    ]


def _told_apart(found: list[Slot], printed: dict[int, str]) -> list[Slot]:
    """Give a common name to one metric of the line only: to the one printed so, else to the first.

    `lm_loss: 3.5 d_loss: nan loss: nan` holds three losses, and the loss is the last of them.
    """
    owner: dict[str, int] = {}
    for slot in found:
        owner.setdefault(slot.reading.name, slot.start)
    owner.update({slot.reading.name: slot.start for slot in found if printed.get(slot.start) == slot.reading.name})
    found = _of_evaluation(found, owner)
    return [
        slot
        if owner[slot.reading.name] == slot.start or slot.start not in printed
        else slot._replace(reading=slot.reading._replace(name=printed[slot.start].replace(" ", "_")))
        for slot in found
    ]


def _of_evaluation(found: list[Slot], owner: dict[str, int]) -> list[Slot]:
    """Give the second accuracy of a line to the evaluation whose loss stands right before it.

    `train loss 0.31 acc 0.91 | val loss 0.42 acc 0.87` holds one of each.
    """
    losses = [slot.start for slot in found if slot.reading.name == "eval_loss"]
    if not losses or "eval_accuracy" in owner or owner.get("accuracy", losses[0]) >= losses[0]:
        return found
    second = next((slot for slot in found if slot.reading.name == "accuracy" and slot.start > losses[0]), None)
    if second is None:
        return found
    owner["eval_accuracy"] = second.start
    moved = second._replace(reading=second.reading._replace(name="eval_accuracy"))
    return [moved if slot is second else slot for slot in found]


def pairs(message: str) -> list[Pair]:
    """Return the metrics of a line; times in seconds, memory in GiB."""
    found = (slot.reading.pair(message[slot.start : slot.end]) for slot in slots(message))
    return [pair for pair in found if pair is not None]


@lru_cache(maxsize=256)
def rate(unit: str) -> Reading:
    """Return how a speed is read, as bars and loops print it: as step time in seconds or as throughput."""
    low = unit.lower()
    if low.startswith(("s/", "sec/")):
        return Reading("step_time", "s", known=True)
    if low.startswith("ms/"):
        return Reading("step_time", "s", 1e-3, known=True)
    if low.startswith(("it/", "its/", "step/", "steps/", "batch/", "batches/")):
        return Reading("step_time", "s", how="inverse", known=True)
    return Reading("throughput", unit, known=True)


@lru_cache(maxsize=4096)
def entry(key: str) -> Reading:
    """Return how one entry of a dict of metrics is read."""
    return _reading(canonical_metric(key), key.lower(), "")


@lru_cache(maxsize=4096)
def _name(key: str) -> str | None:
    low = key.lower().strip()
    if len(low) < 2 or low in _NOT_METRICS or low.endswith(_SOURCE_FILES):
        return None
    if low.rsplit(" ", 1)[-1] in _NOT_METRICS and canonical_metric(low) not in _KNOWN:
        return None
    low = low.removeprefix("running ").removeprefix("current ").removeprefix("avg ")
    bare = _STATED_UNIT.sub("", low)
    if bare in _STEP_TIME_KEYS:
        return "step_time"
    common = canonical_metric(low)
    if common not in _KNOWN and _SAME_LOSS.fullmatch(bare):
        return "loss"
    return common if common in _KNOWN else worded_metric(bare) or canonical_metric(bare).replace(" ", "_")


@lru_cache(maxsize=4096)
def _reading(name: str, key: str, unit: str) -> Reading:
    """How a number is read: times in seconds, memory in GiB."""
    if unit in _GIB and name in _PEAKS:
        name = "memory_allocated"
    known = name in _KNOWN or _FAMILY.search(name) is not None
    if name in {"step_time", "data_time"}:
        stated = unit or ("ms" if re.search(r"(?:\(|_|\b)ms\)?$", key) else "")
        return Reading(name, "s", _TIME.get(stated, 1.0), known=known)
    if name in {"memory_allocated", "memory_reserved"}:
        size = _SIZE_IN_NAME.search(key)
        stated = unit or (size[1] if size else "")
        if stated in _GIB:
            return Reading(name, "GiB", _GIB[stated], known=known)
        return Reading(name, "GiB", how="memory", known=known)
    if unit == "k":
        return Reading(name, None, 1000.0, known=known)
    return Reading(name, unit or None, known=known)


def _gib(value: float) -> float:
    """Memory without a unit: bytes where it is that large, MiB as torchvision and mmengine print, else GiB."""
    if value >= 1e7:
        return value / 2**30
    return value / 1024 if value >= 300 else value
