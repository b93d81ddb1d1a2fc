"""How often compiled functions were compiled again."""

from __future__ import annotations

import pytest

from ..tables import Run


def recompiled(*functions: str) -> Run:
    run = Run()
    for function in functions:
        run.log("dynamo.recompiling", f"Recompiling function {function} in /srv/m.py:7", role=None, function=function)
    return run


def test_the_function_that_is_compiled_again_most_often_counts() -> None:
    facts = recompiled("forward", "encode", "forward", "forward").facts()
    assert facts["compile.recompilations"].value == 3
    assert facts["compile.recompilations"].says == "forward was compiled again 3 times."


def test_a_run_without_recompilations_has_no_count() -> None:
    assert "compile.recompilations" not in Run().values()


def test_what_a_run_states_of_its_compilations() -> None:
    run = Run().curves({"step_time": [20.0, 0.1] * 5})
    run.log("dynamo.graphs", "unique_graphs 31", role=None, graphs=31)
    run.log("dynamo.compile_total", "_compile.compile_inner, 90.5", role=None, seconds=90.5)
    values = run.values()
    assert values["compile.graphs"] == 31
    assert values["compile.share"] == pytest.approx(90.5 / 100.5)


@pytest.mark.parametrize(("lengths", "ratio"), [([9, 8, 8, 7, 7, 6, 6, 5, 5, 4, 4], 200.0), ([8] * 11, None)])
def test_steps_with_a_length_that_is_new(lengths: list[float], ratio: float | None) -> None:
    times = [20.0 if number % 2 and number else 0.1 for number in range(len(lengths))]
    found = Run().curves({"step_time": times, "sequence_length": [float(one) for one in lengths]}).values()
    assert found.get("compile.first_length_ratio") == (None if ratio is None else pytest.approx(ratio, rel=0.1))
