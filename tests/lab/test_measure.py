"""Results are written as they come, and a second start goes on where the first stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rca.errors import UsageError
from rca.lab.measure import measured, read


def double(name: str, number: int) -> list[dict[str, object]]:
    return [{"run": name, "value": 2 * number}]


def test_results_are_written_as_they_come(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "results.jsonl"
    for rows in measured([("a", 1), ("b", 2)], double, file, jobs=1):
        assert read(file)[-1:] == rows
    assert [row["value"] for row in read(file)] == [2, 4]


def test_several_processes_give_the_same_rows(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    tasks = [(f"run-{number}", number) for number in range(5)]
    list(measured(tasks, double, file, jobs=2))
    assert {(row["run"], row["value"]) for row in read(file)} == {(name, 2 * number) for name, number in tasks}


def test_a_line_that_was_cut_is_measured_again(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text('{"run": "a"}\n{"run": "b", "val', encoding="utf-8")
    assert read(file) == [{"run": "a"}]
    list(measured([("b", 1)], double, file, jobs=1))
    assert [json.loads(line)["run"] for line in file.read_text(encoding="utf-8").splitlines()] == ["a", "b"]


@pytest.mark.parametrize("text", ["no json\n", "[1]\n", '{"case": 1}\n'])
def test_a_file_of_something_else_is_not_taken_for_results(tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"other\.jsonl"):
        read(file)
