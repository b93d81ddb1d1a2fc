from __future__ import annotations

import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rca.diagnosis import Arm, Breakdown, Diagnosis, Series, TimelineEntry
from rca.report.chart_engine import ENGINE, ChartEngine
from rca.report.chart_specs.arms import arms_spec
from rca.report.chart_specs.curves import COLOURS, Line, Panel, curves_spec, downsample, gaps
from rca.report.chart_specs.ranks import ranks_spec
from rca.report.chart_specs.steps import steps_spec
from rca.report.charts import figures
from rca.report.html import TEMPLATES, HtmlReport

from .page import Page
from .samples import every, lr_too_high, oom_on_many_ranks

VALUES = st.floats(allow_nan=True, allow_infinity=True, width=32)


@given(st.lists(VALUES | st.sampled_from([0.0, math.inf, math.nan]), max_size=400), st.integers(2, 60))
@example([0.0, math.inf, 0.0, math.inf, 0.0, 0.0], 2)
@example([1.0, math.nan, math.nan, math.inf, -math.inf, 1.0, 2.0, 3.0], 2)
def test_downsampling_keeps_extremes_ends_and_gaps(values: list[float], buckets: int) -> None:
    points = [(float(step), value) for step, value in enumerate(values)]
    kept = downsample(points, buckets)
    finite = [value for _, value in points if math.isfinite(value)]
    assert {step for step, _ in kept} <= {step for step, _ in points}
    assert [step for step, _ in kept] == sorted(step for step, _ in kept)
    assert len([v for _, v in kept if math.isfinite(v)]) <= max(2 * buckets + 2, 1)
    if points:
        assert kept[0][0] == 0
        assert kept[-1][0] == points[-1][0]
        shown_gaps = gaps(kept)
        for first, last, name in gaps(points):
            assert any(a <= first and last <= b and t == name for a, b, t in shown_gaps)
        assert all(not math.isfinite(values[int(step)]) for a, b, _ in shown_gaps for step in (a, b))
    if finite:
        shown = [value for _, value in kept if math.isfinite(value)]
        assert (min(shown), max(shown)) == (min(finite), max(finite))


def test_gaps_name_what_is_missing() -> None:
    nan, inf = math.nan, math.inf
    points = [(0, 1.0), (1, nan), (2, nan), (3, inf), (4, 2.0), (5, -inf)]
    assert gaps(points) == [(1, 2, "NaN"), (3, 3, "Inf"), (5, 5, "Inf")]


def test_curves_mark_failure_evidence_and_gaps() -> None:
    panel = Panel("Loss", (Line("loss", [(0, 1.0), (1, 2.0), (2, math.nan), (3, math.nan)]),))
    spec = curves_spec([panel], x_title="step", failure=2, evidence=[1.0])
    layers = spec["vconcat"][0]["layer"]
    marks = [layer["mark"]["type"] for layer in layers]
    assert marks.count("rule") == 2
    assert "rect" in marks
    (line,) = [layer for layer in layers if layer["mark"]["type"] == "line"]
    assert [row["y"] for row in line["data"]["values"]] == [1.0, 2.0, None, None]


@pytest.mark.parametrize(
    ("values", "scale"),
    [([1.0, 2.0], None), ([0.01, 100.0], "log"), ([0.0, 1000.0], None), ([-1.0, 1000.0], None)],
)
def test_log_axis_where_the_range_asks_for_it(values: list[float], scale: str | None) -> None:
    spec = curves_spec([Panel("x", (Line("x", list(enumerate(values))),))], x_title="step")
    (line,) = [layer for layer in spec["vconcat"][0]["layer"] if layer["mark"]["type"] == "line"]
    assert line["encoding"]["y"]["scale"].get("type") == scale


def test_every_figure_of_the_samples_is_drawn(sample: Diagnosis) -> None:
    for figure in figures(sample).values():
        assert figure.svg is not None, figure.key
        assert figure.title
        svg = str(figure.svg)
        assert "style=" not in svg
        assert "http" not in svg.replace('xmlns="http://www.w3.org/2000/svg"', "")
        colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)) - {"none", "transparent"}
        assert colours <= COLOURS, colours - COLOURS
        assert len(svg) < 80_000


def test_every_chart_colour_has_a_dark_counterpart() -> None:
    style = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    assert {colour for colour in COLOURS if f'"{colour}"' not in style} == set()


def test_curves_of_many_ranks_are_limited_and_say_so() -> None:
    figure = figures(oom_on_many_ranks())["curves"]
    assert [row[0] for row in figure.rows][:2] == ["rank 3", "rank 0"]
    assert len(figure.rows) == 8
    assert figure.note == "2 more series are in the JSON report."


def test_experiments_without_curves_show_one_mark_a_seed() -> None:
    arms = [Arm(name="control", seeds=(0, 1), values=(1.0, 2.0)), Arm(name="treatment", seeds=(0,), values=(0.5,))]
    spec = arms_spec(arms, metric="g")
    assert spec is not None
    assert spec["mark"]["type"] == "point"
    assert arms_spec([Arm(name="control")], metric="g") is None


def test_an_arm_that_is_lost_says_where() -> None:
    curve = ((0.0, 5.0), (1.0, math.nan), (2.0, math.nan))
    arms = [Arm(name="control", curve=curve), Arm(name="treatment", curve=((0.0, 5.0), (2.0, 3.0)))]
    spec = arms_spec(arms, metric="g")
    assert spec is not None
    assert [row["t"] for row in spec["layer"][1]["data"]["values"]] == ["control: NaN from step 1"]
    assert ENGINE.draw([spec])[0]


def test_ranks_need_two_ranks_and_times() -> None:
    assert ranks_spec(lr_too_high().timeline) is None
    spec = ranks_spec(oom_on_many_ranks().timeline)
    assert spec is not None
    assert {row["r"] for row in spec["layer"][1]["data"]["values"]} == set(range(8))


def test_the_first_failing_rank_is_marked_even_where_its_line_names_no_rank() -> None:
    entries = [entry for entry in oom_on_many_ranks().timeline if entry.rank != 3]
    spec = ranks_spec(entries, failing=3, ranks=range(9))
    assert spec is not None
    ring, name, marks = spec["layer"][1:4]
    assert ring["data"]["values"][0]["r"] == 3
    assert name["data"]["values"][0]["t"] == "first failure: rank 3"
    assert (0.0, 3) in {(row["x"], row["r"]) for row in marks["data"]["values"]}
    assert marks["encoding"]["y"]["scale"]["domain"] == list(range(9)), "ranks that said nothing have their row"


def test_only_marks_that_are_drawn_are_explained() -> None:
    assert figures(lr_too_high())["curves"].marks.startswith("Dashed red line: the failure at step")
    assert figures(every()["healthy"])["curves"].marks == ""


def test_step_shares_are_sorted() -> None:
    spec = steps_spec(Breakdown(source="t", step_us=1000, shares=(("a", 0.2), ("b", 0.8))))
    assert [row["c"] for row in spec["data"]["values"]] == ["b", "a"]
    assert spec["data"]["values"][0]["t"] == "80%  0.8 ms"


@pytest.mark.parametrize(
    "points",
    [
        (),
        ((0.0, math.nan),),
        ((0.0, 1.0),),
        ((math.nan, 1.0),),
        ((0.0, 1e308), (1.0, -1e308)),
        ((5.0, 0.0), (5.0, 0.0)),
    ],
)
def test_odd_series_never_break_a_page(points: tuple[tuple[float, float], ...]) -> None:
    diagnosis = lr_too_high().model_copy(update={"series": (Series(name="x", label="", points=points),)})
    Page(HtmlReport().render(diagnosis))


def test_a_chart_that_cannot_be_drawn_is_left_out_with_a_note() -> None:
    assert ENGINE.draw([{"mark": "no such mark"}, steps_spec(lr_too_high().breakdowns[0])])[0] is None
    dead = ChartEngine(timeout_s=0.0)
    found = figures(lr_too_high(), engine=dead)
    assert all(figure.svg is None and "could not be drawn" in figure.note for figure in found.values())
    assert found["curves"].rows
    dead.close()


def test_the_engine_starts_again_after_its_child_died() -> None:
    engine = ChartEngine()
    spec = steps_spec(lr_too_high().breakdowns[0])
    engine.start()
    assert engine._child is not None
    engine._child.kill()
    engine._child.wait()
    assert engine.draw([spec])[0]
    engine.close()
    assert engine.draw([spec])[0]
    engine.close()


def test_pages_without_charts_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ENGINE, "draw", lambda specs: [None] * len(specs))
    for diagnosis in every().values():
        page = Page(HtmlReport().render(diagnosis))
        assert not page.all("svg", role="img")


def test_the_rank_that_began_it_has_a_row_whatever_the_clocks_of_the_others_say() -> None:
    entries = [
        TimelineEntry(
            id=f"e{rank}", kind="log", name="x", source="a.log", text="x", rank=rank, severity="fatal",
            relative_s=0.0 if rank == 90 else -0.001 * rank - 0.001, role="initiating" if rank == 90 else "cascade",
        )
        for rank in range(100)
    ]  # fmt: skip
    spec = ranks_spec(entries)
    assert spec is not None
    assert 90 in {mark["r"] for mark in spec["layer"][1]["data"]["values"]}
