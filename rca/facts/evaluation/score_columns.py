"""Columns of one table held against each other: the score of an original beside that of what serves, row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rca.events import Event, EventTable
from rca.metric_series import MetricSeries

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
_NAMED = re.compile(
    r"(?:^|[_@,])(?:acc(?:uracy)?|f1|m?ap|m?iou|auc|auroc|bleu|chrf|rouge\w*|recall|precision|top_?-?\d|score|exact_match|em|"
    r"pass|ndcg|mrr|wer|cer|ppl|perplexity|psnr|ssim|dice)(?:$|[_@,])"
)
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


def setting_pairs(events: EventTable) -> Iterator[tuple[str, str, Event, Event]]:
    """Yield (metric, word of the candidate, original, candidate) of scores that JSON files give for two versions.

    The versions may be parts of one document (`offline.accuracy`, `served.accuracy`) or two files that are named alike
    (`results_fp16.json`, `results_int4.json`).
    """
    known: dict[str, Event] = {}
    others: list[tuple[str, str, Event]] = []
    single = (one for name in events.metric_names for one in events.all_metrics(name) if len(one) == 1)
    told = [events.get(int(one.event_id[0])) for one in single if one.source.endswith(".json")]
    for event in [*events.of_kind("config"), *told]:
        key = str(event.attr("key", event.name)).lower()
        if event.value is None or not _NAMED.search(key.rsplit(".", 1)[-1]) or not 0 <= event.value <= 100:
            continue
        words = _WORDS.split(f"{event.source.lower().removesuffix('.json')}.{key}")
        kinds = [word for word in words if _REFERENCE.fullmatch(word) or _CANDIDATE.fullmatch(word)]
        if len(kinds) == 1:
            rest = " ".join(word for word in words if word != kinds[0])
            if _REFERENCE.fullmatch(kinds[0]):
                known.setdefault(rest, event)
            else:
                others.append((rest, kinds[0], event))
    for rest, word, event in others:
        if rest in known:
            yield str(event.attr("key", event.name)).rsplit(".", 1)[-1], word, known[rest], event
