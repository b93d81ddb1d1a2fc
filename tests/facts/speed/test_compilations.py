"""How often compiled functions were compiled again."""

from __future__ import annotations

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
