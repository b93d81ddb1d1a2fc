"""The tables that belong to experiments: which columns hold figures, and which table was shown already."""

from __future__ import annotations

from collections.abc import Sequence

from rca.diagnosis import Experiment, Table


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
