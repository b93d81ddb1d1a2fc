"""The experiments in the Markdown report: what was tried, what it was expected to show, what it showed."""

from __future__ import annotations

from collections.abc import Iterator

from rca.diagnosis import Diagnosis, Experiment
from rca.report.findings import expectations, verdict_words
from rca.report.markdown_marks import Section, cells, code, escaped, fenced
from rca.report.measures import number, numbers_list, percent, seconds
from rca.report.outline import Outline
from rca.report.scripts import script_place
from rca.report.tables import figure_columns, first_with
from rca.report.words import count, say

SPARE = 9
"""Rank of what is left out without a word where there is no room: it lies beside the report as well."""
COMMAND = 300
"""Characters of a command that repeats an experiment: a longer one stands in page and JSON, for half of it is none."""


def experiments(diagnosis: Diagnosis, plan: Outline) -> list[str]:
    """Every experiment that was carried out, one list item each."""
    return [
        line for e in plan.tried for line in (*_experiment(e), *_expected_of(diagnosis, e), *_script_at(diagnosis, e))
    ]


def _experiment(experiment: Experiment) -> list[str]:
    told = say("experiment.told", title=escaped(experiment.title), verdict=verdict_words(experiment))
    lines = [
        f"- **{told}** {escaped(experiment.reason)}",
        f"  - {say('round.prediction')} {escaped(experiment.prediction)}",
    ]
    arm = experiment.control
    facts = [code(experiment.change) if experiment.change else ""]
    facts.append(say("experiment.seeds", seeds=numbers_list(arm.seeds)) if arm and arm.seeds else "")
    facts.append(say("experiment.cost", time=seconds(experiment.seconds), device=escaped(experiment.device)))
    lines.append(f"  - {say('experiment.setting')} " + say("list.clause").join(fact for fact in facts if fact))
    if experiment.effect:
        effect = experiment.effect
        what = escaped(effect.meaning or effect.metric)
        interval = say("experiment.interval", low=number(effect.low), high=number(effect.high))
        lines.append(f"  - {what}{say('colon')}{number(effect.value)} {interval}")
    if experiment.scope:
        lines.append(f"  - {say('experiment.scope')} {escaped(experiment.scope)}")
    if experiment.repro and len(experiment.repro) <= COMMAND:
        lines.append(f"  - {say('experiment.repeat')} {code(experiment.repro, limit=COMMAND)}")
    return lines


def _expected_of(diagnosis: Diagnosis, experiment: Experiment) -> list[str]:
    rows = [
        f"{escaped(cause)}{say('colon')}{say('column.confirms')} {percent(yes)}, {say('column.refutes')} {percent(no)}"
        for cause, yes, no, _ in expectations(diagnosis, experiment.id)[:3]
    ]
    return [f"  - {say('round.expected')}{say('colon')}{'; '.join(rows)}"] if rows else []


def _script_at(diagnosis: Diagnosis, experiment: Experiment) -> list[str]:
    if not experiment.script:
        return []
    return [f"  - {say('experiment.script_at')} {code(script_place(diagnosis, experiment))}"]


def script(plan: Outline) -> Iterator[Section]:
    """The script of the first experiment that has one; the others lie beside the report."""
    shown = next((experiment for experiment in plan.tried if experiment.script), None)
    if shown is not None:
        lines = shown.script.splitlines()
        title = f"{escaped(shown.title)}{say('colon')}{say('experiment.script', lines=count(len(lines), 'line'))}"
        text = fenced(shown.script, "python", lines=len(lines), width=200)
        yield Section(SPARE, title, f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>")


def tables(plan: Outline) -> Iterator[Section]:
    """Tables that experiments made, each once."""
    for experiment in plan.tried:
        table = experiment.table
        if table is None or first_with(table, plan.tried) is not experiment:
            continue
        rule = ["---:" if figures else "---" for figures in figure_columns(table)]
        lines = [f"#### {escaped(table.title)}", "", *(cells(texts) for texts in (map(escaped, table.columns), rule))]
        for index, row in enumerate(table.rows):
            first, *rest = (escaped(cell) for cell in row)
            marked = index == table.marked
            lines.append(cells([f"**{first}** ({say('table.marked')})" if marked else first, *rest]))
        if table.paste:
            lines += ["", say("table.paste"), "", fenced(table.paste, "python")]
        if table.note:
            lines += ["", escaped(table.note)]
        yield Section(3, escaped(table.title), "\n".join(lines))
