"""In which part of a job something happened: read off the message, the stack, or how far the steps had come."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rca.events import Event, EventTable
from rca.facts.failure.progress import clock, progress

_STACK: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "save",
        re.compile(
            r"save_pretrained|save_checkpoint|_save_|torch\.save|\bsave\b|save_model|_save_to_state|write_state"
        ),
    ),
    (
        "data",
        re.compile(r"_MapDatasetFetcher|__getitem__|collate|_next_data|_worker_loop|DataLoader|data_collator|_try_get"),
    ),
    (
        "eval",
        re.compile(
            r"evaluat|prediction_(?:loop|step)|\bvalidat(?:e|ing|ion)\b|\bvalidate_(?:\w*epoch|loop|step|model)|validation_|"
            r"\beval_|nested_concat|_run_eval|\bpredict\b"
        ),
    ),
    (
        "inference",
        re.compile(r"\bgenerate\b|_sample\b|_beam_search|greedy_search|execute_model|chat_completion|llm_engine"),
    ),
    (
        "load",
        re.compile(
            r"from_pretrained|load_state_dict|load_checkpoint|_load_|torch\.load|load_model|safe_open|load_weights"
        ),
    ),
    (
        "train",
        re.compile(
            r"training_step|train_(?:step|epoch|one_epoch|batch|loop)|\bbackward\b|optimizer|inner_training_loop"
        ),
    ),
)
"""First match wins, innermost stage first: an evaluation inside the training loop is an evaluation."""


_BEFORE = frozenset({"startup", "load"})


def _trained_since(events: EventTable, event: Event) -> bool:
    """Say whether steps were reported after the source last said that it was starting.

    Most ranks never print a step: what they said last before they failed is what they said at the start.
    """
    began = [
        other.time
        for other in events.events
        if other.source == event.source
        and other.phase == event.phase
        and other.time is not None
        and other.event_id < event.event_id
        and other.role not in {"initiating", "cascade", "teardown"}
        and other.kind == "log"
    ]
    return bool(began) and progress(events).steps_between(max(began), clock(events).time(event)) > 0


def frames_of(event: Event) -> list[Mapping[str, Any]]:
    """Return the frames of an exception, outermost first; those of a worker's own traceback included."""
    frames = event.attr("frames") or []
    return [frame for frame in frames if isinstance(frame, dict)] if isinstance(frames, list) else []


def stack_text(frames: Iterable[Mapping[str, Any]]) -> str:
    """Return functions and code of a stack as one text to search."""
    return "\n".join(f"{frame.get('function', '')} {frame.get('code', '')}"[:300] for frame in frames)


def phase_of(events: EventTable, event: Event, partner: Event | None = None) -> str | None:
    """Return the phase of an event: stated, proven by its stack, or told by whether steps had been reported."""
    for known in (event, partner):
        if known is not None and known.kind == "exception":
            stack = stack_text(frames_of(known))
            found = next((phase for phase, pattern in _STACK if stack and pattern.search(stack)), None)
            if found is not None:
                return found
    steps = progress(events)
    for known in (event, partner):
        if known is not None and known.phase is not None:
            return "train" if known.phase in _BEFORE and _trained_since(events, known) else known.phase
    said = _last_said(events, event)
    if said is not None and said not in _BEFORE:
        return said
    if steps.step_before(event) is not None:
        return "train"
    return "startup" if events.has_text else None


def _last_said(events: EventTable, event: Event) -> str | None:
    """Return the phase that the source told last before an event that tells none, such as the exit of a process.

    Steps that were reported after that say that the phase was over.
    """
    at = event.line or 0
    told = [
        other
        for other in events.of_kind("log")
        if other.source == event.source and other.phase is not None and (other.line or 0) <= at
    ]
    if not told:
        return None
    last = max(told, key=lambda other: other.line or 0)
    track = progress(events).tracks.get(event.source)
    reported = track is not None and bool(((track.last_line > (last.line or 0)) & (track.last_line <= at)).any())
    return None if reported else last.phase
