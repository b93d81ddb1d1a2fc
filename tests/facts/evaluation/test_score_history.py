from __future__ import annotations

from typing import Any

import pytest


def history(after: float, *, other: float = 0.75, lower: bool = False) -> str:
    name = "wiki_ppl" if lower else "copy_task"
    rows = [
        f"2025-03-{day:02d},{'a1' if day < 6 else 'b2'},{(7.0 if lower else 0.8) + 0.002 * (day % 3)},0.75"
        for day in range(1, 6)
    ]
    rows += [f"2025-03-{day:02d},b2,{after + 0.002 * (day % 3)},{other}" for day in range(6, 10)]
    return f"date,engine,{name},choice_task\n" + "\n".join(rows) + "\n"


def test_a_score_that_fell_with_a_version(facts_of: Any) -> None:
    found = facts_of({"history.csv": history(0.4)})
    assert found["quality.drop"] == pytest.approx(0.5, abs=0.01)
    assert found["quality.drop_metric"] == "copy_task"
    assert found["quality.drop_with"] == "engine went from a1 to b2"
    assert "quality.drop_partial" not in found or found["quality.drop_partial"] is False


def test_other_scores_stayed(facts_of: Any) -> None:
    assert facts_of({"history.csv": history(0.4, other=0.7501)})["quality.drop_partial"] is True


def test_a_perplexity_that_rose(facts_of: Any) -> None:
    assert facts_of({"history.csv": history(90.0, lower=True)})["quality.drop"] > 0.9


def test_no_fall(facts_of: Any) -> None:
    assert "quality.drop" not in facts_of({"history.csv": history(0.8)})
    assert "quality.drop" not in facts_of({"history.csv": history(0.95)})
    epochs = "epoch,val_acc\n" + "".join(f"{n},{0.9 if n < 6 else 0.3}\n" for n in range(12))
    assert "quality.drop" not in facts_of({"history.csv": epochs})


def test_a_noisy_score_has_not_fallen(facts_of: Any) -> None:
    rows = "".join(f"2025-03-{day:02d},{0.5 + 0.3 * (day % 2)}\n" for day in range(1, 12))
    assert "quality.drop" not in facts_of({"history.csv": "date,f1\n" + rows})


def test_the_use_of_a_cache_is_no_score(facts_of: Any) -> None:
    rows = "".join(f"2025-03-{day:02d},{0.9 if day < 6 else 0.2}\n" for day in range(1, 12))
    assert "quality.drop" not in facts_of({"history.csv": "date,kv_cache_usage\n" + rows})


def test_a_label_that_changes_once_belongs_to_the_history(facts_of: Any) -> None:
    rows = "".join(f"2025-0{n}-01,{'bf16' if n < 5 else '3bit'},{6.1 if n < 5 else 31.0}\n" for n in range(1, 8))
    found = facts_of({"history.csv": "date,format,ppl\n" + rows})
    assert found["quality.drop"] > 0.7
    assert found["quality.drop_with"] == "format went from bf16 to 3bit"


def test_the_rows_of_a_sweep_are_no_history(facts_of: Any) -> None:
    rows = "".join(f"{n}e-5,{0.9 if n < 6 else 0.2}\n" for n in range(1, 9))
    assert "quality.drop" not in facts_of({"sweep.csv": "lr,acc\n" + rows})
