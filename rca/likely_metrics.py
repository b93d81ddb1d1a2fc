"""Metrics that go by another name in a run: which of them is the loss, and which time is that of a step."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from rca.metric_series import MetricSeries

Series = Mapping[str, tuple[MetricSeries, ...]]

_LOSS = re.compile(
    r"(?:train(?:ing)?[_/. ]|batch[_/. ]|avg[_/. ]|mean[_/. ]|step[_/. ]|running[_/. ])*"
    r"(?:[a-z0-9]{1,16}[_/. ])?(?:loss(?:es)?|b?ce|xent|cross_?entropy|nll|ctc|mlm|mse|rmse|mae|huber|elbo|l[12]|cost|"
    r"objective|criterion)(?:[_/. ](?:train|batch|avg|mean|step|epoch))?"
)
_WHOLE = re.compile(
    r"(?:train(?:ing)?[_/. ])?(?:(?:total|overall|full|sum)(?:[_/. ](?:loss|cost|objective))?|"
    r"(?:loss|cost)[_/. ](?:total|sum|all)|cost|objective|criterion)"
)
_OTHER = re.compile(
    r"(?:^|[_/. ])(?:eval|val|valid|validation|test|dev|summary|best|min|d|g|disc\w*|gen\w*|adv\w*|real|fake|critic|"
    r"actor|policy|value|scale|ratio|lr|weight|time|delta|change)(?:$|[_/. ])"
)
"""Losses of other splits, of players that train against each other, and what is no loss."""
_EVALUATED = ("eval_{}", "eval/{}", "val_{}", "val/{}", "valid_{}", "valid/{}", "validation_{}", "dev_{}", "test_{}")
_FEWEST = 3
_ADDS_UP = 0.02
_CLIMBS = 0.95


def with_likely(series: Series) -> Series:
    """Return the series with those added that stand for a common name, where the run uses that name nowhere."""
    found = dict(series)
    if "loss" not in found:
        raw = _loss_name(found)
        if raw is not None:
            found["loss"] = tuple(_as("loss", item) for item in found[raw])
            evaluated = [name.format(raw) for name in _EVALUATED if name.format(raw) in found]
            if "eval_loss" not in found and len(evaluated) == 1:
                found["eval_loss"] = tuple(_as("eval_loss", item) for item in found[evaluated[0]])
    if "step_time" not in found:
        times = tuple(_as("step_time", item) for item in found.get("line_time", ()) if not _elapsed(item))
        if times:
            found["step_time"] = times
    return found


def _as(name: str, item: MetricSeries) -> MetricSeries:
    return MetricSeries(
        name=name,
        source=item.source,
        rank=item.rank,
        step=item.step,
        value=item.value,
        event_id=item.event_id,
        unit=item.unit,
        device=item.device,
    )


def _loss_name(series: Series) -> str | None:
    """Return the metric that is trained on: the whole of several parts, or the only loss of the run."""
    validated = series.get("eval_loss", ())
    named = [name for name, items in series.items() if _is_loss(name, items) and not _same(items, validated)]
    whole = [name for name in series if _WHOLE.fullmatch(name) and _long(series[name]) and not series[name][0].unit]
    if len(whole) == 1 and (whole[0] in named or [name for name in named if name != whole[0]]):
        return whole[0]
    if len(named) == 1:
        return named[0]
    sums = [name for name in named if _adds_up(series[name], [series[other] for other in named if other != name])]
    return sums[0] if len(sums) == 1 and len(named) > 2 else None


def _is_loss(name: str, items: Sequence[MetricSeries]) -> bool:
    return _LOSS.fullmatch(name) is not None and not _OTHER.search(name) and _long(items) and not items[0].unit


def _same(items: Sequence[MetricSeries], validated: Sequence[MetricSeries]) -> bool:
    """Say whether a metric is the validation loss once more, which a bar shows under the name of the measure too."""
    return any(
        len(one) == len(other) and float(np.mean(np.isclose(one.value, other.value, rtol=1e-3))) >= _CLIMBS
        for one in items
        for other in validated
    )


def _long(items: Sequence[MetricSeries]) -> bool:
    return max(len(item) for item in items) >= _FEWEST


def _adds_up(whole: Sequence[MetricSeries], parts: Sequence[Sequence[MetricSeries]]) -> bool:
    """Say whether one loss is the sum of all others."""
    longest = max(whole, key=len)
    others = [max(items, key=len).value for items in parts]
    if any(len(other) != len(longest) for other in others):
        return False
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.abs(np.sum(others, axis=0) / longest.value - 1)
    return bool(np.isfinite(off).any() and np.nanmedian(off) <= _ADDS_UP)


def _elapsed(item: MetricSeries) -> bool:
    """Say whether a nameless time counts from the start of the run: it climbs from line to line."""
    return len(item) < _FEWEST or float(np.mean(np.diff(item.value) > 0)) >= _CLIMBS
