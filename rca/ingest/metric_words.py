"""Names of metrics that say split and measure in words of their own order: `loss_train`, `average validation acc`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

_WORD = re.compile(r"[a-z]+[0-9]{0,2}")
_TRAIN = frozenset({"train", "training", "trn", "tr"})
_EVAL = frozenset({"val", "valid", "validation", "eval", "evaluation", "dev", "test", "holdout"})
_LOSS = frozenset({"loss", "logloss", "mlogloss", "xent", "nll"})
_ACCURACY = frozenset({"acc", "accuracy", "top1", "acc1"})
_FILLERS = frozenset(
    {"avg", "average", "averaged", "mean", "epoch", "total", "overall", "running", "the", "set", "split"}
)
_NAMES = {
    ("train", "loss"): "loss",
    ("eval", "loss"): "eval_loss",
    ("train", "accuracy"): "accuracy",
    ("eval", "accuracy"): "eval_accuracy",
}
_LONGEST = 60


@lru_cache(maxsize=4096)
def worded_metric(raw: str) -> str | None:
    """Return the common name of a metric whose words are one split, one measure and nothing that tells it apart.

    `box_loss_train` is a part of a loss and `train_loss_rank3` one of several, so neither has a common name.
    """
    name = raw.strip().lower()
    if len(name) > _LONGEST or re.fullmatch(r"[a-z0-9\s/_.-]+", name) is None:
        return None
    words = [word for word in re.split(r"[\s/_.-]+", name) if word and word not in _FILLERS]
    if len(words) != 2 or not all(_WORD.fullmatch(word) for word in words):
        return None
    splits = ["train" if word in _TRAIN else "eval" for word in words if word in _TRAIN | _EVAL]
    measures = ["loss" if word in _LOSS else "accuracy" for word in words if word in _LOSS | _ACCURACY]
    return _NAMES[splits[0], measures[0]] if len(splits) == len(measures) == 1 else None


def worded_names(raws: Iterable[str], taken: Iterable[str]) -> Mapping[str, str]:
    """Return the common names of the columns of one table that have one in words, where no two columns claim it.

    A task in front (`cls/loss_val`) is left out, unless several tasks of the table have the same metric.
    """
    found = {raw: name for raw in raws if (name := worded_metric(raw) or worded_metric(raw.rsplit("/", 1)[-1]))}
    claims = Counter([*taken, *found.values()])
    return {raw: name for raw, name in found.items() if claims[name] == 1}
