"""Columns of one table held against each other: the score of an original beside that of what serves, row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rca.events import EventTable, MetricSeries

_REFERENCE = re.compile(
    r"eager|(?:py)?torch|hf|(?:bf|fp|f)(?:16|32)|b?float(?:16|32)|offline|train(?:ing)?|orig(?:inal)?|ref(?:erence)?|base(?:line)?|"
    r"expected|golden|native|unquanti[sz]ed|transformers|before|old|notebook"
)
_CANDIDATE = re.compile(
    r"serv(?:e|ed|ing)|onnx\w*|ort|trt|tensorrt|int[48]|fp8|nf4|quant(?:i[sz]ed)?|online|live|prod(?:uction)?|compiled|traced|"
    r"scripted|export(?:ed)?|gguf|awq|gptq|coreml|openvino|tflite|engine|deployed|api|vllm|tgi|sglang|triton|after|new|candidate"
)
_DIFFERENCE = re.compile(
    r"(?:^|[_./ -])(?:abs_?)?(?:logit_?|prob_?|output_?|max_?)?(?:diff(?:erence)?|abs_?err(?:or)?|deviation)$"
)
_WORDS = re.compile(r"[_./\s-]+")
FEWEST_ROWS = 3


class ColumnPair(NamedTuple):
    """Two columns that measure the same thing of an original and of what was made of it, row by row."""

    metric: str
    candidate_word: str
    reference: npt.NDArray[np.float64]
    candidate: npt.NDArray[np.float64]
    event_id: npt.NDArray[np.int64]


def column_pairs(events: EventTable) -> Iterator[ColumnPair]:
    """Yield the pairs of score columns of each source, such as `eager_acc` and `onnx_acc`."""
    known: dict[tuple[str, str], MetricSeries] = {}
    others: list[tuple[str, str, MetricSeries]] = []
    for name in events.metric_names:
        words = _WORDS.split(name.lower())
        kinds = [word for word in words if _REFERENCE.fullmatch(word) or _CANDIDATE.fullmatch(word)]
        if len(kinds) != 1 or len(words) < 2:
            continue
        rest = " ".join(word for word in words if word != kinds[0])
        for series in events.all_metrics(name):
            if _REFERENCE.fullmatch(kinds[0]):
                known.setdefault((series.source, rest), series)
            else:
                others.append((rest, kinds[0], series))
    for rest, word, series in others:
        base = known.get((series.source, rest))
        if base is not None and len(base) == len(series) > 0 and _is_score(base.value) and _is_score(series.value):
            yield ColumnPair(rest, word, base.value, series.value, series.event_id)


def _is_score(values: npt.NDArray[np.float64]) -> bool:
    """Accuracies and the like lie between 0 and 1, or 0 and 100; times and counts do not stay there."""
    return bool(np.isfinite(values).all() and (values >= 0).all() and (values <= 100).all())


def differences(events: EventTable) -> Iterator[tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]]:
    """Yield the columns of a table that hold differences of outputs, with their events."""
    for name in events.metric_names:
        if _DIFFERENCE.search(name.lower()):
            for series in events.all_metrics(name):
                good = np.isfinite(series.value)
                if good.sum() >= FEWEST_ROWS:
                    yield np.abs(series.value[good]), series.event_id[good]
