"""The figures of the HTML report: which charts there are, their tables, and what to say when one cannot be drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from rca.diagnosis import Diagnosis, Evidence, Experiment, Series
from rca.report.chart_engine import ENGINE, ChartEngine
from rca.report.chart_specs.arms import arms_spec
from rca.report.chart_specs.curves import Line, Panel, curves_spec, gaps
from rca.report.chart_specs.ranks import ranks_spec
from rca.report.chart_specs.steps import steps_spec
from rca.report.chronology import moments
from rca.report.measures import number, one_line
from rca.report.outline import outline
from rca.report.words import say, word

MAX_PANELS = 9
MAX_LINES = 6
MAX_AXES = 3
MAX_EXPERIMENT_CHARTS = 12

PANELS: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    ("panel.loss", ("loss", "eval_loss"), False),
    ("panel.grad_norm", ("grad_norm",), False),
    ("panel.learning_rate", ("learning_rate",), True),
    ("panel.loss_scale", ("loss_scale",), False),
    ("panel.memory", ("memory_allocated", "memory_reserved"), True),
    ("panel.time", ("step_time", "data_time"), True),
    ("panel.throughput", ("throughput",), True),
)
"""Key of the title, canonical metric names, and whether the axis starts at zero."""


class Figure(NamedTuple):
    """One chart with its words and numbers."""

    key: str
    title: str
    svg: Markup | None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""
    marks: str = ""
    """What the lines and shades across the chart mean; only of those that are there."""


class _Wanted(NamedTuple):
    figure: Figure
    spec: dict[str, Any]


def figures(diagnosis: Diagnosis, *, engine: ChartEngine = ENGINE) -> dict[str, Figure]:
    """Every figure of a report by its key: `curves`, `curves-1` (another axis), `ranks`, `experiment-0`, `steps-0`."""
    wanted = [
        *_curves(diagnosis),
        *_ranks(diagnosis),
        *(_experiments(diagnosis.experiments)),
        *_steps(diagnosis),
    ]
    drawn = engine.draw([item.spec for item in wanted])
    return {
        item.figure.key: item.figure._replace(
            svg=_named(svg, item.figure) if svg else None,
            note=item.figure.note if svg else " ".join((say("chart.missing"), item.figure.note)).strip(),
        )
        for item, svg in zip(wanted, drawn, strict=True)
    }


def _named(svg: str, figure: Figure) -> Markup:
    """The drawing, made by Vega from numbers and escaped labels, with a name for screen readers and ids of its own."""
    own = svg.replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    own = own.replace('id="clip', f'id="{figure.key}-clip').replace("url(#clip", f"url(#{figure.key}-clip")
    label = Markup('<svg role="img" aria-label="{}" ').format(figure.title)
    return label + Markup(own.removeprefix("<svg "))


def _curves(diagnosis: Diagnosis) -> list[_Wanted]:
    """One chart an axis, optimizer steps first, then the axis with the most curves."""
    axes = [series.x_name for series in diagnosis.series]
    ordered = sorted(set(axes), key=lambda name: (name != "step", -axes.count(name), name))[:MAX_AXES]
    charts = [chart for name in ordered if (chart := _over(name, diagnosis)) is not None]
    return [
        chart._replace(figure=chart.figure._replace(key="curves" if n == 0 else f"curves-{n}"))
        for n, chart in enumerate(charts)
    ]


def _over(x_name: str, diagnosis: Diagnosis) -> _Wanted | None:
    series = [_placed(s) for s in diagnosis.series if s.x_name == x_name]
    series = [s for s in series if any(math.isfinite(value) for _, value in s.points)]
    panels, left_out = _panels(series, diagnosis)
    if not panels:
        return None
    failure = diagnosis.failure.step if diagnosis.failure and x_name == "step" else None
    lead = outline(diagnosis).lead
    marks = _marked(lead.hypothesis.evidence_for, failure) if lead and x_name == "step" else []
    spec = curves_spec(panels, x_title=one_line(word("axis", x_name), limit=40), failure=failure, evidence=marks)
    figure = Figure(
        key="curves",
        title=say("chart.curves", what=say("list.item").join(panel.title for panel in panels), x=word("axis", x_name)),
        svg=None,
        columns=tuple(
            say(f"column.{name}") for name in ("curve", "points", "first", "least", "greatest", "last", "gaps")
        ),
        rows=tuple(_statistics(line) for panel in panels for line in panel.lines),
        note=say("chart.more", count=left_out) if left_out else "",
        marks=" ".join(
            text
            for text, there in (
                (say("curves.failure", step=failure), failure is not None),
                (say("curves.evidence"), marks),
                (say("curves.gaps"), any(gaps(line.points) for panel in panels for line in panel.lines)),
                (say("curves.healthy"), any(line.beside is not None for panel in panels for line in panel.lines)),
            )
            if there
        ),
    )
    return _Wanted(figure, spec)


def _placed(series: Series) -> Series:
    """Without points whose step is no number."""
    return series.model_copy(update={"points": tuple(point for point in series.points if math.isfinite(point[0]))})


def _panels(series: Sequence[Series], diagnosis: Diagnosis) -> tuple[list[Panel], int]:
    """Known quantities first, in reading order, then the others; what does not fit is counted."""
    known = {name for _, names, _ in PANELS for name in names}
    groups = [
        *((say(key), names, zero) for key, names, zero in PANELS),
        *((s.label or s.name, (s.name,), False) for s in series if s.name not in known),
    ]
    panels: list[Panel] = []
    used: set[str] = set()
    shown = 0
    for title, names, zero in groups:
        members = [s for s in series if s.name in names and s.name not in used]
        if not members or len(panels) == MAX_PANELS:
            continue
        used.update(names)
        members.sort(key=lambda s: (names.index(s.name), s.rank != _failing_rank(diagnosis), s.rank or 0))
        lines = members[:MAX_LINES]
        shown += len(lines)
        units = [unit for unit in dict.fromkeys(s.unit for s in lines) if unit]
        shown_lines = [Line(_line_name(s, lines), s.points) for s in lines]
        one = lines[0].label if len({s.name for s in lines}) == 1 else ""
        panels.append(
            Panel(
                title=one_line(one or title, limit=60) + (f", {one_line(', '.join(units), limit=20)}" if units else ""),
                lines=(*shown_lines, *_healthy(lines, shown_lines, diagnosis)),
                log=any(s.log_scale for s in lines),
                zero=zero,
            )
        )
    return panels, len(series) - shown


def _healthy(series: Sequence[Series], lines: Sequence[Line], diagnosis: Diagnosis) -> list[Line]:
    """The curves of the healthy run over the stretch that this run has, each beside the first curve of its name."""
    known = {line.name: line for line in (diagnosis.baseline.curves if diagnosis.baseline else ())}
    found: list[Line] = []
    for position, (own, line) in enumerate(zip(series, lines, strict=True)):
        there = known.pop(own.name, None)
        if there is None or there.x_name != own.x_name or not line.points:
            continue
        low, high = min(x for x, _ in line.points), max(x for x, _ in line.points)
        points = tuple(point for point in there.healthy if low <= point[0] <= high)
        if any(math.isfinite(value) for _, value in points):
            found.append(Line(say("baseline.line", name=line.label), points, beside=position))
    return found


def _failing_rank(diagnosis: Diagnosis) -> int | None:
    return diagnosis.failure.rank if diagnosis.failure else None


def _line_name(series: Series, together: Sequence[Series]) -> str:
    """Label, and rank or source where the panel holds the same label twice."""
    name = one_line(series.label or series.name, limit=40)
    twins = [s for s in together if (s.label or s.name) == (series.label or series.name)]
    if len(twins) > 1 and series.rank is not None:
        rank = say("rank", rank=series.rank)
        name = rank if len(twins) == len(together) else f"{name}, {rank}"
    if sum(s.rank == series.rank for s in twins) > 1:
        name += f", {one_line(series.source, limit=40)}"
    same = [s for s in twins if (s.rank, s.source) == (series.rank, series.source)]
    return name if len(same) == 1 else f"{name} ({same.index(series) + 1})"


def _marked(evidence: Sequence[Evidence], failure: int | None) -> list[float]:
    """Steps of the evidence, without the failure itself, at most six."""
    steps = sorted({item.step for item in evidence if item.step is not None and item.step != failure})
    return [float(step) for step in steps[:6]]


def _statistics(line: Line) -> tuple[str, ...]:
    finite = [value for _, value in line.points if math.isfinite(value)]
    missing = "; ".join(
        say("chart.gap_at", what=name, step=number(a))
        if a == b
        else say("chart.gap", what=name, first=number(a), last=number(b))
        for a, b, name in gaps(line.points)[:4]
    )
    first, last = line.points[0][1], line.points[-1][1]
    least, greatest = min(finite), max(finite)
    return (
        line.label,
        str(len(line.points)),
        *(number(v) for v in (first, least, greatest, last)),
        missing or say("chart.no_gaps"),
    )


def _ranks(diagnosis: Diagnosis) -> list[_Wanted]:
    failing = diagnosis.failure.rank if diagnosis.failure and len(diagnosis.run.ranks) > 1 else None
    spec = ranks_spec([moment.entry for moment in moments(diagnosis)], failing=failing, ranks=diagnosis.run.ranks)
    if spec is None:
        return []
    return [_Wanted(Figure(key="ranks", title=say("chart.ranks"), svg=None), spec)]


def _experiments(experiments: Sequence[Experiment]) -> list[_Wanted]:
    wanted = []
    for position, experiment in enumerate(experiments[:MAX_EXPERIMENT_CHARTS]):
        arms = [arm for arm in (experiment.reference, experiment.control, experiment.treatment) if arm is not None]
        metric = experiment.effect.metric if experiment.effect else say("chart.metric")
        spec = arms_spec(arms, metric=one_line(metric, limit=40))
        if spec is None:
            continue
        figure = Figure(
            key=f"experiment-{position}",
            title=say("chart.arms", title=experiment.title),
            svg=None,
            columns=(say("column.arm"), say("column.seeds"), say("column.by_seed", metric=metric)),
            rows=tuple(
                (word("arm", arm.name), ", ".join(map(str, arm.seeds)), ", ".join(number(v) for v in arm.values))
                for arm in arms
            ),
        )
        wanted.append(_Wanted(figure, spec))
    return wanted


def _steps(diagnosis: Diagnosis) -> list[_Wanted]:
    wanted = []
    for position, breakdown in enumerate(diagnosis.breakdowns[:4]):
        if breakdown.shares:
            title = say("chart.steps", time=number(breakdown.step_us / 1000))
            wanted.append(_Wanted(Figure(key=f"steps-{position}", title=title, svg=None), steps_spec(breakdown)))
    return wanted
