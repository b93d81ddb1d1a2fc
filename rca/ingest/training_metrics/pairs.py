"""`name value` pairs in one line of a training log, with their units made common."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from rca.ingest.names import METRIC_NAMES, canonical_metric

MOST = 4096
"""Characters of a line that are searched for pairs."""

NUMBER = r"[-+]?(?:\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|[nN][aA][nN]|[iI]nf(?:inity)?)"
_FIRST_WORD = (
    r"(?:(?:train(?:ing)?|val(?:id(?:ation)?)?|test|eval|dev|lm|avg|average|mean|total|grad(?:ient)?|loss|learning|max|"
    r"global|running|current|iter(?:ation)?|step|data|batch|elapsed|peak|gpu|cuda|num)[ -])"
)
_PAIR = re.compile(
    r"(?<![\w./@|%$-])"
    r"(?P<key>"
    + _FIRST_WORD
    + r"{0,2}(?:time per iteration|[A-Za-z][\w./@%-]*|\|g\|)(?: ?\((?:ms|s|%|GB|GiB|MB|sec)\))?)"
    r"""(?P<sep>['"]?[ \t]{0,16}[:=]\s{0,16}['"]?|[ \t]{1,16})"""
    r"(?P<open>\[{0,2}|\()(?P<value>" + NUMBER + r")(?![\w]*/\w*\.\w)"
    r"(?P<unit> ?(?:GiB|GB|MiB|MB|KiB|KB|G|M|ms|us|µs|sec|s|%|k|K|B)(?![\w/])|)"
    r"(?![\d:])"
)
_SUFFIXED = re.compile(
    r"(?<![\w.:/-])(?P<value>\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?) ?"
    r"(?P<unit>s(?:ec)?/(?:step|it(?:er(?:ation)?)?|batch)|ms/(?:step|it(?:er(?:ation)?)?)|(?:it|its|steps?)/s(?:ec)?|"
    r"(?:tok(?:en)?s?|samples?|img|imgs|images|ex(?:amples)?|seqs?|words?)/s(?:ec(?:ond)?)?)(?![\w/])"
)
_BARE_MS = re.compile(r"(?:^|[|,]) ?(?P<value>\d[\d,]*\.?\d*) ms(?= ?(?:[|,(]|$))")
_SPACE_VALUE = re.compile(r"[.eE]|[nN][aA][nN]|[iI]nf")
_GIB = {"gib": 1.0, "gb": 1.0, "g": 1.0, "mib": 1 / 1024, "mb": 1 / 1024, "m": 1 / 1024, "kib": 2**-20, "kb": 2**-20}
_TIME = {"ms": 1e-3, "us": 1e-6, "µs": 1e-6}
_NOT_METRICS = frozenset(
    """eta epoch epochs ep step steps iter iters iteration iterations it batch update num_updates global_step micro_step
    rank local_rank pid seed port world_size node version torch python cuda time_elapsed elapsed remaining it/total s
    exp. of in at to the for and with from is was took after than every only not line took v v_num id""".split()
)
_KNOWN = frozenset(METRIC_NAMES)
_FAMILY = re.compile(
    r"loss|acc|ppl|perplex|reward|kl|iou|dice|f1|bleu|wer|cer|mae|mse|rmse|auc|map|dice|entropy|nll|err"
)


class Pair(NamedTuple):
    """One metric of a line."""

    name: str
    value: float
    unit: str | None
    known: bool
    """Whether the name is one that training programs are known to print."""


def pairs(message: str) -> Iterator[Pair]:
    """Yield the metrics of a line; times in seconds, memory in GiB. Counters such as the step are left out."""
    text = message[:MOST]
    for found in _PAIR.finditer(text):
        key, separator, opened, raw, unit = found.group("key", "sep", "open", "value", "unit")
        spaced = separator.isspace()
        name = _name(key)
        if name is None:
            continue
        known = name in _KNOWN or _FAMILY.search(name) is not None
        if spaced and not (_SPACE_VALUE.search(raw) or name in _KNOWN):
            continue
        if opened and name not in {"learning_rate", "betas"}:
            continue
        value = _float(raw)
        if value is not None:
            yield Pair(*_common(name, key, value, unit.strip()), known)
    for found in _SUFFIXED.finditer(text):
        value = _float(found["value"])
        if value:
            yield rate(value, found["unit"])
    bare = _BARE_MS.search(text)
    if bare:
        yield Pair("step_time", float(bare["value"].replace(",", "")) / 1000, "s", True)


def rate(value: float, unit: str) -> Pair:
    """Return a speed as printed by bars and loops as step time in seconds or as throughput."""
    low = unit.lower()
    if low.startswith(("s/", "sec/")):
        return Pair("step_time", value, "s", True)
    if low.startswith("ms/"):
        return Pair("step_time", value / 1000, "s", True)
    if low.startswith(("it/", "its/", "step/", "steps/", "batch/", "batches/")):
        return Pair("step_time", 1 / value if value else float("inf"), "s", True)
    return Pair("throughput", value, unit, True)


def plain(name: str, value: float) -> Pair:
    """Return one entry of a dict of metrics."""
    common = canonical_metric(name)
    return Pair(*_common(common, name, value, ""), common in _KNOWN or _FAMILY.search(common) is not None)


@lru_cache(maxsize=4096)
def _name(key: str) -> str | None:
    low = key.lower().strip()
    if low in _NOT_METRICS:
        return None
    bare = re.sub(r" ?\((?:ms|s|%|gb|gib|mb|sec)\)$", "", low)
    if low == "time" or bare in {"iter time", "iter_time", "elapsed time per iteration", "step time"}:
        return "step_time"
    common = canonical_metric(low)
    return common if common in _KNOWN else canonical_metric(bare)


def _common(name: str, key: str, value: float, unit: str) -> tuple[str, float, str | None]:
    """Return name, value and unit with times in seconds and memory in GiB."""
    low = unit.lower()
    if name in {"step_time", "data_time"}:
        stated = low or ("ms" if re.search(r"(?:\(|_|\b)ms\)?$", key.lower()) else "")
        return name, value * _TIME.get(stated, 1.0), "s"
    if name in {"memory_allocated", "memory_reserved"}:
        if low in _GIB:
            return name, value * _GIB[low], "GiB"
        return name, _gib(value), "GiB"
    if low in {"k"}:
        return name, value * 1000, None
    return name, value, unit or None


def _gib(value: float) -> float:
    """Memory without a unit: bytes where it is that large, MiB as torchvision and mmengine print, else GiB."""
    if value >= 1e7:
        return value / 2**30
    return value / 1024 if value >= 300 else value


def _float(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
