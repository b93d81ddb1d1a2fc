"""The score over labelled incidents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rca.errors import UsageError
from rca.evaluate import CaseOutcome, Withheld, evaluate, first_run, record_first_run, score
from rca.pipeline import Options
from rca.rules.load import load
from rca.scoreboard import row, summary


def outcome(truth: str, *ranked: str, probability: float = 0.9, also: tuple[str, ...] = ()) -> CaseOutcome:
    return CaseOutcome(
        case="case",
        truth=truth,
        accepted=(truth, *also),
        verdict=ranked[0],
        probability=probability,
        ranked=ranked,
        seconds=0.1,
    )


OUTCOMES = [
    outcome("a.x", "a.x"),
    outcome("a.x", "a.y", "a.x", probability=0.5),
    outcome("b.z", "unknown", "a.x", "a.y", "b.z", probability=0.6),
    outcome("b.z", "b.w", also=("b.w",)),
    outcome("none", "a.x", "none", probability=0.4),
    outcome("none", "unknown", probability=0.1),
]


def test_totals() -> None:
    result = score(OUTCOMES)
    assert result.top1 == pytest.approx(2 / 6)
    assert result.top3 == pytest.approx(4 / 6)
    assert (result.healthy, result.false_alarms, result.doubted, result.abstained) == (2, 1, 1, 1)
    assert {(item.domain, item.cases, item.top1) for item in result.domains} == {
        ("a", 2, 1),
        ("b", 2, 1),
        ("none", 2, 0),
    }
    assert ("a.x", "a.y", 1) in result.confusion


def test_calibration_error_weighs_the_distance_between_stated_and_observed() -> None:
    perfect = [outcome("a.x", "a.x", probability=1.0)] * 4
    boastful = [outcome("a.x", "a.y", probability=1.0)] * 4
    assert score(perfect).calibration_error == pytest.approx(0)
    assert score(boastful).calibration_error == pytest.approx(1)


def test_the_table_names_every_wrong_verdict() -> None:
    text = summary(score(OUTCOMES))
    assert "a.x -> a.y" in text
    assert row(OUTCOMES[0]).startswith("ok")
    assert row(OUTCOMES[1]).startswith("top3")
    assert "(truth b.z)" in row(OUTCOMES[2])


def test_a_cause_whose_rules_are_withheld_should_not_be_known() -> None:
    answers = [Withheld(verdict="unknown", probability=0.7)] * 3 + [Withheld(verdict="a.y", probability=0.9)]
    judged = [item.model_copy(update={"withheld": answer}) for item, answer in zip(OUTCOMES, answers, strict=False)]
    found = score([*judged, OUTCOMES[-1]]).withheld
    assert found is not None
    assert (found.cases, found.unknown, found.confidently_wrong) == (4, 0.75, 0.25)


def test_the_first_run_is_recorded_once_and_scored_against_what_is_accepted_today(tmp_path: Path) -> None:
    assert first_run(tmp_path, OUTCOMES) is None
    cases = [item.model_copy(update={"case": f"case {number}"}) for number, item in enumerate(OUTCOMES)]
    record_first_run(tmp_path, cases)
    found = first_run(tmp_path, cases)
    assert found is not None
    assert found[1] == pytest.approx(2 / 6)
    mended = [item.model_copy(update={"ranked": (item.truth,)}) for item in cases]
    assert first_run(tmp_path, mended) == found
    with pytest.raises(UsageError, match="happens once"):
        record_first_run(tmp_path, mended)


def test_an_incident_is_judged_with_and_without_the_rules_of_its_cause(tmp_path: Path) -> None:
    run = tmp_path / "one" / "run"
    run.mkdir(parents=True)
    (run / "train.log").write_text(
        "step 10 loss 2.1\nTraceback (most recent call last):\n"
        '  File "/srv/job/train.py", line 8, in <module>\n    fit(model)\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
        "79.25 GiB of which 1.10 GiB is free. Of the allocated memory 76.00 GiB is allocated by PyTorch, and "
        "500.00 MiB is reserved by PyTorch but unallocated.\n",
        encoding="utf-8",
    )
    label = {"cause": "memory.batch_too_large", "also_ok": ["memory.model_too_large"]}
    (tmp_path / "one" / "truth.json").write_text(json.dumps(label), encoding="utf-8")
    judged = next(evaluate(tmp_path, load(), options=Options(experiments="none")))
    assert judged.scores["memory.batch_too_large"] > judged.scores["unknown"]
    assert judged.withheld is not None
    assert judged.withheld.verdict not in judged.accepted


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"cause": "memory.batch_to_large"}', "did you mean 'memory.batch_too_large'"),
        ('{"label": "memory.leak"}', '"cause"'),
        ("memory.leak", "JSON"),
    ],
)
def test_a_wrong_label_is_said_with_its_file(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "truth.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=complaint) as raised:
        list(evaluate(tmp_path, load(), options=Options(experiments="none")))
    assert "truth.json" in str(raised.value)


def test_an_incident_that_left_nothing_readable_counts_as_unknown(tmp_path: Path) -> None:
    (tmp_path / "one" / "run").mkdir(parents=True)
    (tmp_path / "one" / "truth.json").write_text('{"cause": "memory.leak"}', encoding="utf-8")
    judged = next(evaluate(tmp_path, load(), options=Options(experiments="none")))
    assert (judged.verdict, judged.right) == ("unknown", False)
    assert judged.warnings


@pytest.mark.parametrize("text", ["[1]", "{}", '{"date": "x", "rca_version": "y", "verdicts": {"case 0": 5}}'])
def test_a_first_run_that_is_not_ours_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "first_run.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"first_run\.json"):
        first_run(tmp_path, OUTCOMES)


def test_a_label_that_is_a_folder_and_a_folder_of_sets_are_said(tmp_path: Path) -> None:
    (tmp_path / "set" / "one" / "truth.json").mkdir(parents=True)
    with pytest.raises(UsageError, match="cannot be read"):
        list(evaluate(tmp_path / "set", load(), options=Options(experiments="none")))
    with pytest.raises(UsageError, match="did you mean"):
        list(evaluate(tmp_path, load(), options=Options(experiments="none")))


def test_a_case_whose_baseline_is_empty_is_judged_without_it(tmp_path: Path) -> None:
    for case in ("first", "second"):
        (tmp_path / case / "run").mkdir(parents=True)
        (tmp_path / case / "truth.json").write_text('{"cause": "none"}')
        (tmp_path / case / "run" / "train.log").write_text("step 1 loss 2.0\nstep 2 loss 1.9\n")
    (tmp_path / "first" / "baseline").mkdir()
    first, second = evaluate(tmp_path, load(), options=Options(experiments="none"))
    assert "baseline cannot be used" in first.without_baseline
    assert "judged without it" in row(first)
    assert second.without_baseline == ""
    assert (first.verdict, first.ranked) == (second.verdict, second.ranked)
