"""What samples, generations and token lists say in numbers: lengths, repetition, masking, padding.

The texts themselves are not kept; these columns are computed beside the ones a file already has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import re2

from rca.ingest.weights.token_alignment import IGNORE_INDEX, label_offset

_OUTPUT_COLUMNS = frozenset(
    {"output", "outputs", "response", "completion", "generated", "generated_text", "prediction", "generation", "answer"}
)
_ANSWER_COLUMNS = frozenset({"content", "message", "text", "reply", "assistant", "resp", "result"})
"""Names that hold what was generated where the same file tells why generation ended, or how long it was."""
_PARTS = re2.compile(r"^(?:model|raw|generated|assistant|decoded|output)_|_(?:head|text|preview|excerpt|snippet|tail)$")
_FINISH_COLUMNS = frozenset({"finish", "finish_reason", "finished_reason", "stop_reason", "done_reason"})
_COUNT_COLUMNS = frozenset({"completion_tokens", "output_tokens", "new_tokens", "eval_count", "tokens_predicted"})
_LENGTH_REASONS = frozenset({"length", "max_tokens", "max_length", "max_new_tokens", "model_length"})
_TURN = re2.compile(
    r"<\|(?:im_start|im_end|eot_id|start_header_id|end_header_id|user|assistant|system|end|endoftext)\|>|"
    r"\[/?INST\]|"
    r"<</?SYS>>|"
    r"<(?:start|end)_of_turn>|</s>|"
    r"### (?:Instruction|Response|Human|Assistant)\b|"
    r"(?:^|\n| |[.!?])(?:user|assistant|USER:|ASSISTANT:)\n"
)
"""Markers that chat templates put between turns; a text that holds one went on behind its end."""
_FEWEST_PROMPTS = 4
_HEADER_CHARS = (4, 40)
_NGRAM = 4
_CHARS = 20_000


def repetition(text: str) -> float:
    """Return the share of repeated 4-grams of words (of characters, for text without spaces): 0 none, near 1 a loop."""
    words = text[:_CHARS].split()
    units: Sequence[str] = words if len(words) >= 2 * _NGRAM else text[:_CHARS]
    grams = [tuple(units[index : index + _NGRAM]) for index in range(len(units) - _NGRAM + 1)]
    return 1 - len(set(grams)) / len(grams) if len(grams) >= _NGRAM else 0.0


def _prompt_header(columns: Mapping[str, Sequence[Any] | pa.ChunkedArray]) -> str | None:
    """Return the line that opens every prompt (`### user:`): in an answer it opens a turn that is not the model's."""
    prompts = next(
        (columns[name] for name in ("prompt", "input", "inputs", "formatted_prompt") if name in columns), None
    )
    listed = prompts.to_pylist() if isinstance(prompts, pa.ChunkedArray) else (prompts or [])
    texts = [text for text in listed if isinstance(text, str)]
    first = {text.split("\n", 1)[0].strip() for text in texts if "\n" in text}
    header = first.pop() if len(first) == 1 and len(texts) >= _FEWEST_PROMPTS else ""
    return header if _HEADER_CHARS[0] <= len(header) <= _HEADER_CHARS[1] else None


def generation_columns(columns: Mapping[str, Sequence[Any] | pa.ChunkedArray]) -> dict[str, list[float | None]]:
    """Return columns computed from texts and token lists, named after what they measure."""
    found: dict[str, list[float | None]] = {}
    token_rows: dict[str, list[list[int] | None]] = {}
    plain = {raw: _plain(raw) for raw in columns}
    answers = bool((_FINISH_COLUMNS | _COUNT_COLUMNS) & set(plain.values()))
    outputs = _OUTPUT_COLUMNS | (_ANSWER_COLUMNS if answers else frozenset())
    named = {name: columns[raw] for raw, name in plain.items()}
    header = _prompt_header(named)
    found |= _foreign_markers(named, outputs)
    counts = next((items for raw, items in columns.items() if plain[raw] in _REPEAT_COLUMNS), None)
    repeats = counts.to_pylist() if isinstance(counts, pa.ChunkedArray) else counts
    for raw, items in columns.items():
        name = plain[raw]
        listed = items.to_pylist() if isinstance(items, pa.ChunkedArray) else items
        if name in _FINISH_COLUMNS and any(isinstance(item, str) for item in listed):
            found["finished_by_length"] = [
                float(item.strip().lower() in _LENGTH_REASONS) if isinstance(item, str) else None for item in listed
            ]
        elif (name in outputs or _PARTS.sub("", name) in outputs) and any(
            isinstance(item, str) and " " in item for item in listed
        ):
            texts = [item if isinstance(item, str) else None for item in listed]
            found["output_repetition"] = [None if text is None else repetition(text) for text in texts]
            found["output_turn_markers"] = [
                None
                if text is None
                else float(len(_TURN.findall(text[:_CHARS])) + (text.count(header) if header else 0))
                for text in texts
            ]
            found["output_chars"] = [None if text is None else float(len(text)) for text in texts]
        elif _TOKEN_TIMES.search(name) and any(isinstance(item, list) for item in listed):
            found["token_time_growth"] = [_growth(item) for item in listed]
        elif _repeated(name, listed, repeats) and not _TOKEN_COLUMNS & {name}:
            found["output_repeat_spread"] = [_spread(item) for item in listed]
        elif name in _TOKEN_COLUMNS and any(isinstance(item, list) for item in listed):
            rows = token_rows[name] = [_whole_numbers(item) for item in listed]
            found |= _token_columns(name, rows)
    if {"input_ids", "labels"} <= token_rows.keys():
        both = zip(token_rows["input_ids"], token_rows["labels"], strict=True)
        found["labels_offset"] = [None if one is None or other is None else _offset(one, other) for one, other in both]
    return found


def _offset(inputs: Sequence[int], labels: Sequence[int]) -> float | None:
    found = label_offset(inputs, labels)
    return None if found is None else float(found)


_TOKEN_TIMES = re2.compile(
    r"(?:ms|time|s|latency)_per_tok|per_token_(?:ms|s|time|latency)|token_(?:times|latenc)|^itl|^tpot"
)
_FEWEST_BLOCKS = 3
_LARGEST = 1e100


def _plausible(value: Any) -> bool:
    """Say whether a value is a number that can be squared; JSON holds integers of any length."""
    return type(value) in {int, float} and abs(value) < _LARGEST


def _growth(item: Any) -> float | None:
    """Return the last over the first time per token of one generation, or None where the list is no such times."""
    if not isinstance(item, list) or len(item) < _FEWEST_BLOCKS or not all(map(_plausible, item)):
        return None
    part = max(1, len(item) // 8)
    first, last = sum(item[:part]) / part, sum(item[-part:]) / part
    return last / first if first > 0 else None


_PROMPT_COLUMNS = ("prompt", "prompt_rendered", "rendered_prompt", "prompt_text", "full_prompt", "input", "input_text")
_MARKERS = (
    re2.compile(r"<\|im_(?:start|end)\|>"),
    re2.compile(r"<\|(?:eot_id|start_header_id|end_header_id)\|>"),
    re2.compile(r"\[/?INST\]|<</?SYS>>"),
    re2.compile(r"<(?:start|end)_of_turn>"),
    re2.compile(r"### (?:Instruction|Response)\b"),
    re2.compile(r"<\|(?:user|assistant|system)\|>"),
)
"""Markers of one family of chat templates each."""


def _foreign_markers(columns: Mapping[str, Any], outputs: frozenset[str]) -> dict[str, list[float | None]]:
    """Return whether each text answers in the markers of another chat template than its prompt is written in."""
    prompts = next((columns[name] for name in _PROMPT_COLUMNS if name in columns), None)
    texts = next((columns[name] for name in columns if name in outputs or _PARTS.sub("", name) in outputs), None)
    if prompts is None or texts is None:
        return {}
    rows: list[float | None] = []
    for prompt, text in zip(_listed(prompts), _listed(texts), strict=True):
        known = _families(prompt)
        rows.append(float(bool(_families(text) - known)) if known and isinstance(text, str) else None)
    return {"output_foreign_markers": rows} if any(row is not None for row in rows) else {}


def _listed(items: Any) -> Sequence[Any]:
    found: Sequence[Any] = items.to_pylist() if isinstance(items, pa.ChunkedArray) else items
    return found


def _families(text: Any) -> set[int]:
    part = text[:_CHARS] if isinstance(text, str) else ""
    return {place for place, pattern in enumerate(_MARKERS) if pattern.search(part)}


_REPEAT_COLUMNS = frozenset({"repeats", "n_repeats", "repetitions", "runs", "n_runs", "trials", "calls", "reps"})
_REPEATED = re2.compile(r"(?:^|_)(?:repeat(?:s|ed)?|repetitions?|runs|trials|calls|again|to_first)(?:_|$)")
_OUTPUTS = re2.compile(
    r"(?:^|_)(?:cos\w*|sim\w*|scores?|logits?|probs?|prob\w*|emb\w*|outputs?|preds?|prediction\w*|conf\w*|values?|acc\w*|f1|"
    r"dist\w*|iou|dice|answers?|results?|norms?)(?:_|$)"
)
"""Names of what a model puts out; how long it took differs each time for any model."""
_FEWEST_REPEATS = 3


def _repeated(name: str, items: Sequence[Any], repeats: Sequence[Any] | None) -> bool:
    """Say whether a column lists what one input gave when it was given several times."""
    lists = [(place, item) for place, item in enumerate(items) if isinstance(item, list)]
    if not lists or not _OUTPUTS.search(name) or not all(_spread(item) is not None for _place, item in lists):
        return False
    counted = repeats is not None and all(repeats[place] == len(item) for place, item in lists)
    return counted or _REPEATED.search(name) is not None


def _spread(item: Any) -> float | None:
    """Return the standard deviation of a list of numbers over their mean, or None where it is no such list."""
    if not isinstance(item, list) or len(item) < _FEWEST_REPEATS or not all(map(_plausible, item)):
        return None
    mean = sum(item) / len(item)
    variance = sum((x - mean) ** 2 for x in item) / len(item)
    return float(variance**0.5 / abs(mean)) if mean else None


def _plain(raw: str) -> str:
    """Return the name of a column without the objects around it; a prompt's own text keeps its path."""
    name = raw.strip().lower().rsplit("/", 1)[-1]
    return name if name.startswith(("request.", "prompt", "input", "messages")) else name.rsplit(".", 1)[-1]


_TOKEN_COLUMNS = frozenset({"input_ids", "labels", "attention_mask", "token_ids", "tokens", "output_ids"})


def _token_columns(name: str, rows: Sequence[list[int] | None]) -> dict[str, list[float | None]]:
    if name == "labels":
        kept = [None if row is None else [item for item in row if item != IGNORE_INDEX] for row in rows]
        return {
            "labels_ignored_share": [
                None if not row else 1 - len(rest or ()) / len(row) for row, rest in zip(rows, kept, strict=True)
            ],
            "labels_max": [float(max(row)) if row else None for row in kept],
            "labels_min": [float(min(row)) if row else None for row in kept],
        }
    if name == "attention_mask":
        return {"padding_share": [row.count(0) / len(row) if row else None for row in rows]}
    prefix = "output" if name == "output_ids" else "sequence"
    return {
        f"{prefix}_length": [None if row is None else float(len(row)) for row in rows],
        f"{prefix}_max_id": [float(max(row)) if row else None for row in rows],
    }


def _whole_numbers(item: Any) -> list[int] | None:
    """Return a list of token ids, the first row of a batch, or None."""
    if isinstance(item, list) and item and isinstance(item[0], list):
        item = [part for row in item if isinstance(row, list) for part in row]
    return item if isinstance(item, list) and all(isinstance(part, int) for part in item) else None
