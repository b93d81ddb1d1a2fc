"""Curves written as words, so that a rule case can state a training run in one line.

`decays 4 to 2 then nan at 120, noise sd 0.05`: segments joined by `then` follow each other, parts behind a comma change
single points or add noise. Segments: `constant X`, `decays [A] to B [from S]`, `rises [A] to B [from S]`,
`oscillates A to B [every N]`, `nan at S`, `inf at S`. Changes: `nan at S`, `inf at S`, `spike X at S`, `noise sd D`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rca.errors import KnowledgeError

_NUMBER = r"(-?\d+(?:\.\d+)?(?:e-?\d+)?|nan|-?inf)"
_SEGMENT = re.compile(
    rf"^(?:(?P<word>decays|rises)(?: {_NUMBER})? to {_NUMBER}|constant {_NUMBER}|oscillates {_NUMBER} to {_NUMBER}"
    rf"(?: every (?P<every>\d+))?)(?: (?:from|at) (?P<start>\d+))?$"
)
_POINT = re.compile(rf"^(?:(?P<what>nan|inf) at (?P<at>\d+)|spike {_NUMBER} at (?P<spike>\d+))$")
_NOISE = re.compile(rf"^noise(?: {_NUMBER})? sd {_NUMBER}$")
_WORDS = "`constant X`, `decays A to B`, `rises A to B`, `oscillates A to B` or `nan at S`, joined by `then`"
_STEPS = re.compile(r"^(\d+)\.\.(\d+)(?: by (\d+))?$")


def expand(series: Mapping[str, Any]) -> list[dict[str, float]]:
    """Return one record a step with the value of every curve. Raises KnowledgeError where a curve cannot be read."""
    steps = _steps(series.get("step", "0..100"))
    columns = {name: _curve(name, text, steps) for name, text in series.items() if name != "step"}
    return [
        {"step": step, **{name: values[index] for name, values in columns.items() if values[index] is not None}}
        for index, step in enumerate(steps)
    ]


def _steps(text: Any) -> list[int]:
    if isinstance(text, list):
        return [int(step) for step in text]
    match = _STEPS.match(str(text))
    if match is None:
        raise KnowledgeError(f"step: {text!r} is not a range such as 0..200 or 0..200 by 10")
    return list(range(int(match[1]), int(match[2]) + 1, int(match[3] or 1)))


def _curve(name: str, text: Any, steps: Sequence[int]) -> list[Any]:
    if isinstance(text, list):
        return [float(value) if value is not None else None for value in (*text, *[None] * len(steps))][: len(steps)]
    if isinstance(text, (int, float)):
        return [float(text)] * len(steps)
    parts = [part.strip() for part in str(text).split(",")]
    values = _segments(name, parts[0], steps)
    generator = np.random.default_rng(0)
    for part in parts[1:]:
        values = _changed(part, values, steps, curve=name, generator=generator)
    return list(values.tolist())


def _segments(name: str, text: str, steps: Sequence[int]) -> np.ndarray:
    words = [word.strip() for word in text.split(" then ")]
    starts = [_start(name, word, steps) for word in words]
    values = np.full(len(steps), math.nan)
    before = math.nan
    for index, word in enumerate(words):
        start = starts[index] if index else 0
        end = starts[index + 1] if index + 1 < len(words) else len(steps)
        values[start:end] = _shape(word, end - start, before)
        before = values[end - 1] if end > start else before
    return values


def _start(name: str, word: str, steps: Sequence[int]) -> int:
    match = _SEGMENT.match(word) or _POINT.match(word)
    if match is None:
        raise KnowledgeError(f"{name}: {word!r} is not a curve; write {_WORDS}")
    groups = match.groupdict()
    step = groups.get("start") or groups.get("at")
    return 0 if step is None else int(np.searchsorted(steps, int(step)))


def _shape(word: str, length: int, before: float) -> np.ndarray:
    if _POINT.match(word):
        return np.full(length, math.inf if word.startswith("inf") else math.nan)
    numbers = [float(item) for item in re.findall(_NUMBER, re.sub(r" (from|every) \d+", "", word))]
    progress = np.linspace(0.0, 1.0, max(length, 1))[:length]
    if word.startswith("constant"):
        return np.full(length, numbers[0])
    if word.startswith("oscillates"):
        match = _SEGMENT.match(word)
        period = int(match["every"]) if match and match["every"] else 2
        phase = np.arange(length) % period < max(1, period // 2)
        return np.where(phase, numbers[0], numbers[1])
    start, end = (numbers[0], numbers[1]) if len(numbers) > 1 else (before, numbers[0])
    if word.startswith("decays"):
        return end + (start - end) * (np.exp(-4 * progress) - math.exp(-4)) / (1 - math.exp(-4))
    if start > 0 and end / start > 100:
        return np.geomspace(start, end, max(length, 1))[:length]
    return start + (end - start) * progress


def _changed(
    part: str, values: np.ndarray, steps: Sequence[int], *, curve: str, generator: np.random.Generator
) -> np.ndarray:
    noise = _NOISE.match(part)
    if noise is not None:
        return values + generator.normal(0.0, float(noise[2]), len(values))
    point = _POINT.match(part)
    if point is None:
        raise KnowledgeError(
            f"{curve}: {part!r} is not a change of a curve; write `nan at S`, `spike X at S`, `noise sd D`"
        )
    step = int(point["at"] or point["spike"])
    value = float(point[3]) if point["spike"] else float(point["what"])
    changed = values.copy()
    changed[int(np.searchsorted(steps, step))] = value
    return changed
