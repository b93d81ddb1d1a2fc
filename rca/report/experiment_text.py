"""One experiment for the terminal: question, prediction, arms, effect, verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rca.diagnosis import Arm, Effect, Experiment, Round, Table
from rca.report.colour import paint
from rca.report.findings import verdict_words
from rca.report.measures import clean, one_line, seconds
from rca.report.table_text import table_text
from rca.report.translation import translated
from rca.report.words import paragraph, say, word
from rca.report.wrapping import cut, padded, wrapped

_INDENT = 12
_SEEDS = 5


def experiment_text(
    experiment: Experiment, *, round_: Round | None = None, colour: bool = False, width: int = 80
) -> str:
    """Return one experiment in at most `width` columns; only the command that repeats it may be longer.

    `round_` is the entry of the log, for what the outcome did to the probabilities.
    """
    experiment = translated(experiment)
    lines = [
        paint(cut(f"{experiment.id}: {one_line(experiment.title)}", width), "strong", on=colour),
        *_row(say("arms.question"), experiment.question, width),
        *_row(say("arms.tests"), ", ".join(experiment.tests), width),
        *_row(say("arms.prediction"), experiment.prediction, width),
        *_row(say("arms.change"), experiment.change, width),
        *_arms(experiment),
        *_row(say("arms.effect"), _effect(experiment.effect), width),
        *_table(experiment.table, width, colour),
        *_row(say("arms.verdict"), paragraph(verdict_words(experiment), experiment.reason), width),
        *(_row(say("arms.believed"), _believed(round_), width) if round_ is not None else ()),
        *_row(say("arms.shown_on"), experiment.scope, width),
        *_row(say("arms.left_out"), say("list.part").join(experiment.not_carried_over), width),
    ]
    for name, value in experiment.details:
        lines += _row("", name + say("colon") + value, width)
    lines += _row(
        say("arms.time"), say("experiment.cost", time=seconds(experiment.seconds), device=experiment.device), width
    )
    if experiment.repro:
        lines.append(_label(say("arms.repeat")) + clean(experiment.repro))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _label(name: str) -> str:
    return padded(name, _INDENT)


def _row(name: str, text: str, width: int) -> list[str]:
    if not text.strip():
        return []
    return wrapped(one_line(text, limit=4000), width, first=_label(name), rest=" " * _INDENT)


def _arms(experiment: Experiment) -> Iterator[str]:
    arms = [arm for arm in (experiment.reference, experiment.control, experiment.treatment) if arm is not None]
    if not any(arm.values for arm in arms):
        return
    metric = experiment.effect.metric if experiment.effect is not None else say("arms.values")
    yield _label(say("arms.arms")) + " " * _INDENT + metric
    for arm in arms:
        yield _label("") + padded(word("arm", arm.name), _INDENT) + _values(arm)


def _values(arm: Arm) -> str:
    shown = "  ".join(f"{value:6.3g}" if math.isfinite(value) else f"{value!s:>6}" for value in arm.values[:_SEEDS])
    return shown + ("  " + say("arms.more", count=len(arm.values) - _SEEDS) if len(arm.values) > _SEEDS else "")


def _effect(effect: Effect | None) -> str:
    if effect is None:
        return ""
    numbers = {"value": f"{effect.value:+.3g}", "low": f"{effect.low:+.3g}", "high": f"{effect.high:+.3g}"}
    told = [say("arms.measured", **numbers)]
    if effect.recovered is not None:
        told.append(say("arms.recovered", share=f"{100 * effect.recovered:.0f}"))
    return say("list.part").join(told)


def _believed(round_: Round) -> str:
    after = dict(round_.after)
    changes = [f"{cause} {share:.2f} -> {after[cause]:.2f}" for cause, share in round_.before if cause in after]
    return ", ".join(changes)


def _table(table: Table | None, width: int, colour: bool) -> list[str]:
    return ["", *table_text(table, width=width, colour=colour).splitlines(), ""] if table is not None else []
