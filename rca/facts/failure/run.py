"""The run as a whole: what kind of job, how far it came, how it ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import Event, EventTable
from rca.facts.collectives.unfinished import LARGEST_JOB
from rca.facts.emit import emit, number
from rca.facts.failure.epoch_ends import last_epoch_over
from rca.facts.failure.first_failure import chronology, completed_jobs, finish_lines
from rca.facts.failure.phase import frames_of, phase_of, stack_text
from rca.facts.failure.progress import progress
from rca.facts.interface import Fact, FactFunction
from rca.facts.memo import once_per_table
from rca.facts.training.curves import SUMMARY_METRICS, config_number, curve

CATALOGUE: Mapping[str, str] = {
    "run.kind": "what the run does: train | eval | inference | unknown",
    "run.completed": "it said that it finished, exited with 0 or reached its planned steps, and did not fail later",
    "run.tracker_status": "how the experiment tracker has the run: RUNNING | FINISHED | FAILED | KILLED",
    "run.failed": "an initiating or fatal event, an uncaught exception, or a non-zero exit",
    "run.ended_silently": "progress stops before the plan without an error and without a goodbye",
    "run.end_unknown": "there was progress, and nothing says that it finished, failed, or how far it was meant to go",
    "run.steps_done": "largest step reported (step)",
    "run.steps_planned": "planned steps, from the configuration (step)",
    "run.progress": "share of the planned steps or epochs that was reached",
    "run.step_at_failure": "last step reported before the failure (step)",
    "run.phase": "phase at the failure: startup | load | data | train | eval | save | inference | teardown",
    "run.has_metrics": "the run reported metrics of its own (device readings not counted)",
    "run.has_text": "log text was read: only then does a missing message mean that it was not said",
    "run.error_count": "number of error and fatal messages and of exceptions",
    "run.ranks_seen": "number of global ranks that appear in the run directory",
    "run.world_size": "number of processes of the job, from the configuration or the ranks seen",
    "run.ranks_missing": "ranks of the job that left nothing behind",
}

REACHED = 0.995
"""Reached share of the plan that counts as done: the last logging interval may be missing."""
_SERVING = ("vllm.", "sglang.", "tgi.", "server.", "serving.", "llama_cpp.", "triton_server.", "uvicorn.")
_GENERATES = frozenset({"max_model_len", "max_new_tokens", "num_beams", "num_return_sequences"})
_STACKS = (
    ("train", re.compile(r"trainer\.(?:train|fit)|\.fit\(|training_step|train_(?:loop|epoch|one)|backward|\btrain\b")),
    ("inference", re.compile(r"\bgenerate\b|execute_model|engine_core|api_server|\bserve\b|pipeline\(")),
    ("eval", re.compile(r"\bevaluate\b|\bvalidat")),
)
_TRAIN_METRICS = ("loss", "grad_norm", "learning_rate", "loss_scale")
_TRACKED_FAILURES = frozenset({"FAILED", "KILLED"})
_EVAL_METRICS = ("eval_loss", "eval_accuracy", "eval_perplexity")


@once_per_table
def completion(events: EventTable) -> tuple[int, ...] | None:
    """Return the events that show that the run finished, or None where nothing does or it failed afterwards."""
    if chronology(events).first is not None or tracked_failures(events):
        return None
    shown = [event.event_id for event in finish_lines(events)]
    shown += [event.event_id for event in events.of_kind("process") if event.value == 0]
    shown += [event.event_id for event in completed_jobs(events)[:1]]
    shown += [
        int(series.event_id[-1]) for name in SUMMARY_METRICS for series in events.all_metrics(name) if len(series)
    ]
    planned, done = planned_steps(events), progress(events).last_step
    if not shown and planned is not None and done is not None and done >= REACHED * planned - 1:
        shown.append(progress(events).last_event or 0)
    if not shown and (over := last_epoch_over(events)) is not None:
        shown.append(over)
    return tuple(shown) or None


def planned_steps(events: EventTable) -> int | None:
    """Return the planned optimizer steps; a total that the run went past was that of one epoch and no plan."""
    setting = events.config("max_steps")
    steps = config_number(events, "max_steps")
    if setting is None or steps is None or steps <= 0:
        return None
    done = progress(events).last_step
    drawn = setting.attr("from") == "progress" or setting.attr("file_role") is None
    return None if drawn and done is not None and done > 1.02 * steps + 1 else int(steps)


def tracked_failures(events: EventTable) -> tuple[Event, ...]:
    """Return the runs that an experiment tracker has as failed or killed."""
    return tuple(event for event in events.named("tracker.run") if event.attr("status") in _TRACKED_FAILURES)


def tracked(events: EventTable) -> Iterator[Fact]:
    """How does the experiment tracker have the run?"""
    found = events.named("tracker.run")
    if found:
        worst = (*tracked_failures(events), found[-1])[0]
        yield from emit("run.tracker_status", str(worst.attr("status")), worst.text, events=[worst.event_id])


def ending(events: EventTable) -> Iterator[Fact]:
    """Did the run finish, fail, or just stop?"""
    found = chronology(events)
    done = completion(events)
    lost = tracked_failures(events)
    failed = found.first is not None or bool(lost)
    if done is not None or failed or events.has_text:
        if failed:
            head = found.first.event if found.first is not None else None
            seen = [head.event_id] if head is not None else [event.event_id for event in lost]
            says = f"The run failed with {head.name}." if head is not None else lost[0].text
        else:
            seen, says = list(done or ()), "No failing event was found."
        yield from emit("run.failed", failed, says, events=seen)
    if done is not None:
        shown = events.get(done[-1])
        says = f"The run finished: {shown.text[:120] or shown.name}."
        yield from emit("run.completed", True, says, events=done[::-1])
    elif failed or _stopped_early(events) is not None:
        yield from emit("run.completed", False, "The run did not reach its end.", events=())
    stopped = _stopped_early(events)
    if progress(events).last_step is not None and not failed and done is None:
        open_end = stopped is None
        says = "The progress ends with no word that the run finished, and no plan says how far it was meant to go."
        yield from emit("run.end_unknown", open_end, says, events=())
    if stopped is not None:
        silent = not failed and done is None
        says = f"The last progress is {stopped}; no error and no goodbye follow."
        last = progress(events).last_event
        yield from emit("run.ended_silently", silent, says, events=() if last is None else (last,))


def _stopped_early(events: EventTable) -> str | None:
    """Say where the progress stopped when that is short of the plan."""
    done, planned = progress(events).last_step, planned_steps(events)
    if done is not None and planned is not None:
        return f"step {done} of {planned}" if done < REACHED * planned - 1 else None
    epochs, reached = config_number(events, "epochs"), _epoch(events)
    if epochs is not None and reached is not None and epochs > 0 and reached < REACHED * epochs - 1:
        return f"epoch {number(reached)} of {number(epochs)}"
    return None


def _epoch(events: EventTable) -> float | None:
    line = curve(events, "epoch")
    if line is None or not line.finite.any():
        return None
    return float(np.max(line.value[line.finite]))


def extent(events: EventTable) -> Iterator[Fact]:
    """How far did the run come?"""
    steps = progress(events)
    planned, done = planned_steps(events), steps.last_step
    at_end = () if steps.last_event is None else (steps.last_event,)
    yield from emit("run.has_metrics", steps.rows > 0, f"{steps.rows} metric values were reported.")
    yield from emit(
        "run.has_text", events.has_text, "Log text was read." if events.has_text else "No log text was read."
    )
    yield from emit("run.steps_done", done, f"The largest reported step is {done}.", unit="step", events=at_end)
    yield from emit("run.steps_planned", planned, f"{planned} steps were planned.", unit="step")
    epochs, reached = config_number(events, "epochs"), _epoch(events)
    if planned is not None and done is not None:
        says = f"Step {done} of {planned} was reached."
        yield from emit("run.progress", min(done / planned, 1.0), says, events=at_end)
    elif epochs is not None and epochs > 0 and reached is not None:
        says = f"Epoch {number(reached)} of {number(epochs)} was reached."
        yield from emit("run.progress", min(reached / epochs, 1.0), says, events=at_end)
    head = chronology(events).first
    if head is not None:
        step = steps.step_before(head.event)
        says = f"The last step before the failure is {step}."
        yield from emit("run.step_at_failure", step, says, unit="step", events=[head.event.event_id])
        phase = phase_of(events, head.event, chronology(events).partner)
        yield from emit("run.phase", phase, f"The run failed in the phase {phase}.", events=[head.event.event_id])


def kind(events: EventTable) -> Iterator[Fact]:
    """What kind of job is it?"""
    names = set(events.metric_names)
    said = {event.name for event in events.of_kind("log")}
    settings = {event.name for event in events.of_kind("config")}
    if names & set(_TRAIN_METRICS) or "run.started" in said or {"optimizer", "gradient_accumulation_steps"} & settings:
        value = "train"
    elif any(name.startswith(_SERVING) for name in said) or _GENERATES & settings:
        value = "inference"
    elif names & set(_EVAL_METRICS) or "run.evaluation_started" in said:
        value = "eval"
    elif any(name.startswith(("latency", "generation", "token")) for name in names) or "run.prediction_started" in said:
        value = "inference"
    else:
        value = _by_stack(events)
    yield from emit("run.kind", value, f"The kind of the job is {value}.")


def _by_stack(events: EventTable) -> str:
    """Tell the kind of the job from the stacks of its exceptions, as a job that fails at once reports no metric."""
    for event in events.of_kind("exception"):
        if event.phase in {"inference", "eval"}:
            return event.phase
        stack = stack_text(frames_of(event))
        for kind_of_job, pattern in _STACKS:
            if pattern.search(stack):
                return kind_of_job
    return "unknown"


def errors(events: EventTable) -> Iterator[Fact]:
    """How much went wrong, by count?"""
    if not events.has_text:
        return
    bad = [
        event
        for event in events.events
        if event.kind in {"exception", "log"} and (event.kind == "exception" or event.severity in {"error", "fatal"})
    ]
    says = f"{len(bad)} error messages and exceptions were found."
    yield from emit("run.error_count", len(bad), says, events=[event.event_id for event in bad])


def ranks(events: EventTable) -> Iterator[Fact]:
    """How many processes took part, and did all leave something behind?"""
    seen = events.ranks
    if seen:
        yield from emit("run.ranks_seen", len(seen), f"{len(seen)} ranks left something: {_short(seen)}.")
    stated = config_number(events, "world_size")
    world = max(int(stated) if stated is not None and stated >= 1 else 0, seen[-1] + 1 if seen else 0)
    if not world:
        return
    yield from emit("run.world_size", world, f"The job has {world} processes.")
    missing = sorted(set(range(world)) - set(seen)) if world <= LARGEST_JOB else []
    if len(seen) > 1 and missing:
        says = f"{len(missing)} of {world} ranks left nothing behind: {_short(missing)}."
        yield from emit("run.ranks_missing", len(missing), says)


def _short(numbers: list[int] | tuple[int, ...]) -> str:
    shown = ", ".join(str(item) for item in numbers[:8])
    return shown if len(numbers) <= 8 else f"{shown}, ... {numbers[-1]}"


FACTS: tuple[FactFunction, ...] = (ending, tracked, extent, kind, errors, ranks)
