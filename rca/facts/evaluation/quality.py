"""One model held against another: scores of an original and of what was made of it, and how far outputs differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from rca.events import Event, EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.evaluation import score_columns
from rca.facts.evaluation.score_columns import column_pairs, setting_pairs
from rca.facts.evaluation.variant_scores import variant_pairs
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "quality.lost_share": "share of the original's score that the compared model lost (negative: it is better)",
    "quality.reference": "score of the original in that comparison",
    "quality.candidate": "score of the compared model",
    "quality.of": "what the compared model is: export, quantised, service, or other",
    "outputs.difference_max": "largest difference of outputs that a comparison printed",
    "outputs.difference_min": "smallest difference of outputs that a comparison printed",
    "outputs.differs_for_some": "outputs agree to 1e-4 for some inputs and differ by 1e-2 or more for others",
    "outputs.differs_for_all": "outputs differ by 1e-2 or more for every compared input",
}

_LOWER_IS_BETTER = re.compile(
    r"^(?:wer|cer|eer|ppl|perplexity|mae|rmse|mse)$|\b(?:wer|cer|ppl|perplexity|error|mse)\b", re.I
)
_KINDS = (
    ("export", re.compile(r"onnx|^ort$|trt|tensorrt|traced|script|export|compiled|coreml|openvino|tflite", re.I)),
    ("quantised", re.compile(r"quant|int[248]|nf4|fp8|awq|gptq|w\d+a\d+|\d-?bit|^i?q\d|gguf", re.I)),
    ("service", re.compile(r"serv|prod|online|live|deploy|api", re.I)),
)
_FULL_PRECISION = re.compile(
    r"^\W*(?:\w+[ /_-])?(?:bf16|fp16|fp32|float16|bfloat16|float32|full[ _-]precision|original|baseline|base|"
    r"reference|ref|eager|pytorch|torch|hf|unquanti[sz]ed)(?:[ (_-]\w*\)?)?\W*$",
    re.I,
)
AGREES, DIFFERS = 1e-4, 1e-2
"""torch.testing.assert_close allows 1e-5 plus a millionth for float32, ONNX verification 1e-3 relative: half-precision
noise stays below 1e-2 for outputs of order one, and agreement below 1e-4 shows float32 arithmetic."""
_FEWEST = 3


class _Pair(NamedTuple):
    metric: str
    reference: float
    candidate: float
    kind: str
    events: tuple[int, ...]

    @property
    def lost(self) -> float | None:
        """Share of the score that was lost; errors and perplexities are turned round."""
        good, bad = (self.candidate, self.reference) if _LOWER_IS_BETTER.search(self.metric) else (
            self.reference, self.candidate)  # fmt: skip
        return 1 - bad / good if good > 0 else None


def scores(events: EventTable) -> Iterator[Fact]:
    """How much worse is the exported, quantised or served model than the original?"""
    pairs = [
        *_lines(events),
        *_tables(events),
        *_columns(events),
        *_documents(events),
        *_reports(events),
        *_variants(events),
    ]
    told = [(lost, pair) for pair in pairs if (lost := pair.lost) is not None]
    if not told:
        return
    lost, pair = max(told, key=lambda item: item[0])
    says = f"The {pair.metric} is {number(pair.candidate)} where the original has {number(pair.reference)}: "
    says += f"{percent(lost)} is lost." if lost > 0 else "nothing is lost."
    yield from emit("quality.lost_share", round(lost, 4), says, events=pair.events)
    yield from emit("quality.reference", pair.reference, says, events=pair.events)
    yield from emit("quality.candidate", pair.candidate, says, events=pair.events)
    yield from emit("quality.of", pair.kind, says, events=pair.events)


def _lines(events: EventTable) -> Iterator[_Pair]:
    for name in ("quality.reference_then_candidate", "quality.candidate_then_reference"):
        for event in events.named(name, kind="log"):
            reference, candidate = event.attr("reference"), event.attr("candidate")
            if isinstance(reference, (int, float)) and isinstance(candidate, (int, float)):
                kind = _kind(str(event.attr("what") or ""))
                metric = str(event.attr("metric") or "score")
                yield _Pair(metric, float(reference), float(candidate), kind, (event.event_id,))


def _variants(events: EventTable) -> Iterator[_Pair]:
    for pair in variant_pairs(events):
        yield _Pair(pair.metric, pair.reference, pair.candidate, "quantised", pair.events)


def _kind(words: str) -> str:
    return next((kind for kind, pattern in _KINDS if pattern.search(words)), "other")


def _tables(events: EventTable) -> Iterator[_Pair]:
    """Compare rows of printed score tables: a row named after full precision with every other row."""
    for rows in _score_rows(events).values():
        known = {label: event for label, event in rows if _FULL_PRECISION.search(label)}
        if not known:
            continue
        base = next(iter(known.values()))
        for label, event in rows:
            if label not in known and base.value is not None and event.value is not None:
                metric = base.name.removeprefix("score.")
                yield _Pair(metric, base.value, event.value, _kind(label), (event.event_id, base.event_id))


def _score_rows(events: EventTable) -> dict[tuple[str, str], list[tuple[str, Event]]]:
    found: dict[tuple[str, str], list[tuple[str, Event]]] = {}
    for name in events.metric_names:
        if name.startswith("score."):
            for series in events.all_metrics(name):
                for event_id in series.event_id:
                    event = events.get(int(event_id))
                    found.setdefault((event.source, name), []).append((str(event.attr("label") or ""), event))
    return found


def _columns(events: EventTable) -> Iterator[_Pair]:
    """Compare columns row by row; the row that lost most speaks for the table."""
    for pair in column_pairs(events):
        lost = [_Pair(pair.metric, float(base), float(value), "", ()).lost or 0.0
                for base, value in zip(pair.reference, pair.candidate, strict=True)]  # fmt: skip
        worst = int(np.argmax(lost))
        reference, candidate = float(pair.reference[worst]), float(pair.candidate[worst])
        kind = _kind(pair.candidate_word)
        yield _Pair(pair.metric, reference, candidate, kind, (int(pair.event_id[worst]),))


def _documents(events: EventTable) -> Iterator[_Pair]:
    """Compare scores that JSON files give for two versions."""
    for metric, word, base, event in setting_pairs(events):
        if base.value is not None and event.value is not None:
            yield _Pair(metric, base.value, event.value, _kind(word), (event.event_id, base.event_id))


def _reports(events: EventTable) -> Iterator[_Pair]:
    """Compare reports about the same examples (equal classes and supports): the better one is what can be reached."""
    found: dict[tuple[str, int], dict[tuple[str, int], tuple[float, int]]] = {}
    for series in events.all_metrics("report.f1"):
        for value, event_id in zip(series.value, series.event_id, strict=True):
            event = events.get(int(event_id))
            row = (str(event.attr("label")), int(event.attr("support")))
            found.setdefault((event.source, int(event.attr("report"))), {})[row] = (float(value), int(event_id))
    reports = [(place, rows) for place, rows in sorted(found.items()) if len(rows) >= _FEWEST]
    for place, (one, rows) in enumerate(reports):
        for other, others in reports[place + 1 :]:
            if one[0] != other[0] and rows.keys() == others.keys():
                lost = {row: rows[row][0] - others[row][0] for row in rows}
                total = max(rows, key=lambda row: row[1])
                good, bad, source = (rows, others, other[0]) if lost[total] >= 0 else (others, rows, one[0])
                events_told = (bad[total][1], good[total][1])
                yield _Pair(f"F1 ({total[0]})", good[total][0], bad[total][0], _kind(source), events_told)


def differences(events: EventTable) -> Iterator[Fact]:
    """Do the outputs of two versions of a model agree, for all inputs or for some?"""
    found = [
        (abs(float(value)), event.event_id)
        for event in events.named("outputs.difference", kind="log")
        if isinstance(value := event.attr("value"), (int, float))
    ]
    for values, event_ids in score_columns.differences(events):
        found += [(float(value), int(event_id)) for value, event_id in zip(values, event_ids, strict=True)]
    if not found:
        return
    top, low = max(found), min(found)
    says = f"Of {len(found)} compared outputs the differences lie between {number(low[0])} and {number(top[0])}."
    shown = [top[1], low[1]]
    yield from emit("outputs.difference_max", top[0], says, events=shown)
    yield from emit("outputs.difference_min", low[0], says, events=shown)
    if len(found) >= _FEWEST:
        yield from emit("outputs.differs_for_some", low[0] <= AGREES and top[0] >= DIFFERS, says, events=shown)
        yield from emit("outputs.differs_for_all", low[0] >= DIFFERS, says, events=shown)


FACTS: tuple[FactFunction, ...] = (scores, differences)
