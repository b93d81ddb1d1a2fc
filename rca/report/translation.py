"""A diagnosis in the language in force: what rules and analysis say is translated, what the run said never is."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel

from rca.diagnosis import Diagnosis, Evidence
from rca.report.words import sentences

_Model = TypeVar("_Model", bound=BaseModel)

PROSE: dict[str, frozenset[str]] = {
    "Verdict": frozenset({"title", "sentence", "words", "next_step"}),
    "Hypothesis": frozenset({"title", "sentence", "summary", "decide", "falsepositives"}),
    "Evidence": frozenset({"says", "decides"}),
    "Fix": frozenset({"action", "why", "risk", "verify"}),
    "Experiment": frozenset(
        {"title", "question", "prediction", "change", "reason", "scope", "not_carried_over", "details"}
    ),
    "Effect": frozenset({"metric", "meaning"}),
    "Table": frozenset({"title", "columns", "rows", "note"}),
    "Round": frozenset({"why", "prediction", "result"}),
    "Breakdown": frozenset({"notes"}),
    "Baseline": frozenset({"notes"}),
    "CurveDifference": frozenset({"says", "label"}),
    "Series": frozenset({"label"}),
    "Resemblance": frozenset({"title"}),
    "Absent": frozenset({"says"}),
    "SourceRecord": frozenset({"why", "warnings"}),
    "Diagnosis": frozenset({"environment_findings", "warnings", "missing"}),
}
"""Part of a diagnosis -> its fields that hold sentences. All others are data, or what the run wrote."""
_PLAIN = frozenset({"TimelineEntry", "Setting", "ContextLine", "OddLine", "MessageDifference", "Difference"})
"""Parts without a sentence in them."""


def translated(part: _Model) -> _Model:
    """Return a diagnosis, or a part of one, as it is shown in the language in force; the same where that is English."""
    return part if sentences() is None else _in_language(part)


def _in_language(part: _Model) -> _Model:
    prose = PROSE.get(type(part).__name__, frozenset())
    if isinstance(part, Evidence) and part.kind == "fact" and not part.context:
        prose |= {"text"}  # the numbers behind a fact, in words
    changed: dict[str, Any] = {}
    for name in type(part).model_fields:
        value = getattr(part, name)
        shown = _said(value) if name in prose else _inside(value)
        if shown is not value:
            changed[name] = shown
    if isinstance(part, Diagnosis) and part.failure is not None and not _quoted(part):
        changed["failure"] = part.failure.model_copy(update={"what": _said(part.failure.what)})
    return part.model_copy(update=changed)


def _quoted(diagnosis: Diagnosis) -> bool:
    """Whether the observed failure is a line of the run, which then stands in the timeline, not a sentence about it."""
    what = diagnosis.failure.what if diagnosis.failure is not None else ""
    return any(entry.text == what for entry in diagnosis.timeline)


def _inside(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value if type(value).__name__ in _PLAIN else _in_language(value)
    if isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
        return value if type(value[0]).__name__ in _PLAIN else tuple(_in_language(item) for item in value)
    return value


def _said(value: Any) -> Any:
    say = sentences()
    if isinstance(value, tuple):
        return tuple(_said(item) for item in value)
    return say(value) if say is not None and isinstance(value, str) else value
