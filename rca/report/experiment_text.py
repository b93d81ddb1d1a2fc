"""One experiment for the terminal: question, prediction, arms, effect, verdict."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

from rca.diagnosis import Arm, Effect, Experiment, Round, Table
from rca.report.colour import paint
from rca.report.measures import clean, one_line, seconds
from rca.report.table_text import table_text
from rca.report.words import say

_INDENT = 12
_SEEDS = 5


def experiment_text(
    experiment: Experiment, *, round_: Round | None = None, colour: bool = False, width: int = 80
) -> str:
    """Return one experiment in at most `width` columns; only the command that repeats it may be longer.

    `round_` is the entry of the log, for what the outcome did to the probabilities.
    """
    verdict = say("experiment." + experiment.verdict)
    lines = [
        paint(f"{experiment.id}: {one_line(experiment.title)}"[:width], "strong", on=colour),
        *_row("question", experiment.question, width),
        *_row("tests", ", ".join(experiment.tests), width),
        *_row("prediction", experiment.prediction, width),
        *_row("change", experiment.change, width),
        *_arms(experiment),
        *_row("effect", _effect(experiment.effect), width),
        *_table(experiment.table, width, colour),
        *_row("verdict", f"{verdict}. {experiment.reason}", width),
        *(_row("believed", _believed(round_), width) if round_ is not None else ()),
        *_row("shown on", experiment.scope, width),
        *_row("left out", "; ".join(experiment.not_carried_over), width),
    ]
    for name, value in experiment.details:
        lines += _row("", f"{name}: {value}", width)
    lines += _row("time", f"{seconds(experiment.seconds)} on {experiment.device}", width)
    if experiment.repro:
        lines.append(_label("repeat") + clean(experiment.repro))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _label(name: str) -> str:
    return f"{name:<{_INDENT}}"


def _row(name: str, text: str, width: int) -> list[str]:
    if not text.strip():
        return []
    return textwrap.wrap(
        one_line(text, limit=4000),
        width,
        initial_indent=_label(name),
        subsequent_indent=" " * _INDENT,
        break_on_hyphens=False,
    )


def _arms(experiment: Experiment) -> Iterator[str]:
    arms = [arm for arm in (experiment.reference, experiment.control, experiment.treatment) if arm is not None]
    if not any(arm.values for arm in arms):
        return
    metric = experiment.effect.metric if experiment.effect is not None else "value of each seed"
    yield _label("arms") + f"{'':<12}{metric}"
    for arm in arms:
        yield _label("") + f"{arm.name:<12}{_values(arm)}"


def _values(arm: Arm) -> str:
    shown = "  ".join(f"{value:6.3g}" if math.isfinite(value) else f"{value!s:>6}" for value in arm.values[:_SEEDS])
    return shown + (f"  and {len(arm.values) - _SEEDS} more" if len(arm.values) > _SEEDS else "")


def _effect(effect: Effect | None) -> str:
    if effect is None:
        return ""
    recovered = f"; {100 * effect.recovered:.0f} % recovered" if effect.recovered is not None else ""
    return f"{effect.value:+.3g} (95 % interval {effect.low:+.3g} to {effect.high:+.3g}){recovered}"


def _believed(round_: Round) -> str:
    after = dict(round_.after)
    changes = [f"{cause} {share:.2f} -> {after[cause]:.2f}" for cause, share in round_.before if cause in after]
    return ", ".join(changes)


def _table(table: Table | None, width: int, colour: bool) -> list[str]:
    return ["", *table_text(table, width=width, colour=colour).splitlines(), ""] if table is not None else []
