"""The tables that belong to experiments: which columns hold figures, and which table was shown already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rca.diagnosis import Experiment, Table

_ARMS = ("reference", "control", "treatment")


class ArmFigures(NamedTuple):
    """The further figures of an experiment: those of each arm beside each other, and the others."""

    arms: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """What, then its value in each of the arms; empty where an arm has none."""
    others: tuple[tuple[str, str], ...]


def is_figure(cell: str) -> bool:
    """Whether a cell holds a number and nothing else."""
    digits = cell.replace(".", "", 1).replace(",", "").lstrip("-+")
    return digits.isdecimal()


def figure_columns(table: Table) -> tuple[bool, ...]:
    """For each column, whether all its cells are numbers."""
    return tuple(
        bool(table.rows) and all(is_figure(row[index]) for row in table.rows if index < len(row))
        for index in range(len(table.columns))
    )


def first_with(table: Table, experiments: Sequence[Experiment]) -> Experiment | None:
    """The first of the experiments that holds the same table: only there is it shown."""
    return next((experiment for experiment in experiments if experiment.table == table), None)


def arm_figures(details: Sequence[tuple[str, str]]) -> ArmFigures:
    """Sort (`control: loss on clean data`, value) by what was measured and by arm."""
    rows: dict[str, dict[str, str]] = {}
    others = []
    for label, value in details:
        arm, colon, what = label.partition(": ")
        if colon and arm in _ARMS:
            rows.setdefault(what, {})[arm] = value
        else:
            others.append((label, value))
    arms = tuple(arm for arm in _ARMS if any(arm in row for row in rows.values()))
    return ArmFigures(
        arms, tuple((what, *(row.get(arm, "") for arm in arms)) for what, row in rows.items()), tuple(others)
    )
