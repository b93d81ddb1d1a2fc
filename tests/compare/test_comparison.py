"""Whether two runs can be compared, and what the comparison says."""

from __future__ import annotations

from pathlib import Path

from rca.compare.comparison import compare, doubts, oppose
from rca.facts.baseline import CATALOGUE, baseline_facts
from rca.facts.interface import Fact

from .sides import Made

LINES = "".join(f"{word} the model now\n" for word in ("loading", "building", "compiling", "sharding", "training"))
SETTINGS = {f"setting_{n}": n for n in range(6)}


def test_runs_of_one_job_are_compared(tmp_path: Path) -> None:
    run = Made("run").config(**SETTINGS, learning_rate=0.3).says("x.y", "said").log(tmp_path, LINES).side()
    healthy = Made("good").config(**SETTINGS, learning_rate=0.1).says("x.y", "said").log(tmp_path, LINES).side()
    opposed = oppose(run, healthy)
    baseline = compare(run, opposed)
    assert (baseline.used, baseline.notes, baseline.alike, baseline.name) == (True, (), 1.0, "good")
    assert len(opposed.ordinary) == 1
    facts = {fact.name: fact for fact in baseline_facts(baseline, run.events)}
    assert facts["baseline.lr_ratio"].value == 0.3 / 0.1
    assert facts["baseline.lr_ratio"].events
    assert facts["baseline.only_change"].value == "learning_rate"
    assert facts.keys() <= CATALOGUE.keys()


def test_a_run_beside_itself_differs_in_nothing(tmp_path: Path) -> None:
    run = Made().config(**SETTINGS).curve("loss", [3.0, 2.0, 1.5, 1.2, 1.1] * 8).log(tmp_path, LINES).side()
    baseline = compare(run, oppose(run, run))
    assert (baseline.differences, baseline.messages) == ((), ())
    assert [line.parts_at for line in baseline.curves] == [None]


def test_another_program_counts_for_nothing(tmp_path: Path) -> None:
    run = Made("run").says("x.y", "said").config(**SETTINGS).log(tmp_path, LINES).side()
    other = Made("other").says("x.y", "said").config(**{f"other_{n}": n for n in range(6)})
    other.log(tmp_path, "".join(f"serving request {word} in time\n" for word in "abcdef"))
    opposed = oppose(run, other.side())
    assert opposed.ordinary == frozenset()
    baseline = compare(run, opposed)
    assert not baseline.used
    assert "same job?" in baseline.notes[0]
    assert list(baseline_facts(baseline, run.events)) == []


def test_a_run_that_broke_at_once_is_still_the_same_job(tmp_path: Path) -> None:
    broken = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    import x\nImportError: no x\n'
    opposed = oppose(Made("run").log(tmp_path, broken).side(), Made("good").log(tmp_path, LINES).side())
    assert (opposed.alike, opposed.notes) == (None, ())


def test_an_empty_run_can_be_compared() -> None:
    empty = Made().side()
    baseline = compare(empty, oppose(empty, empty))
    assert baseline.used
    assert baseline.unchanged == 0


def test_a_baseline_that_failed_or_is_ill_is_doubted() -> None:
    failed = {"run.failed": Fact("run.failed", True)}
    fine = {"run.failed": Fact("run.failed", False)}
    assert "failed itself" in doubts(failed, "memory.leak", 0.9)[0]
    assert "not healthy itself" in doubts(fine, "numerics.lr_too_high", 0.8)[0]
    assert doubts(fine, "numerics.lr_too_high", 0.4) == ()
    assert doubts(fine, "none", 0.99) == ()
    assert doubts({}, "unknown", 0.8) == ()


def test_a_doubted_baseline_counts_for_nothing() -> None:
    run = Made().says("x.y", "said").side()
    opposed = oppose(run, Made().says("x.y", "said").side(doubts=("It failed.",)))
    assert opposed.ordinary == frozenset()
    assert compare(run, opposed).notes == ("It failed.",)
