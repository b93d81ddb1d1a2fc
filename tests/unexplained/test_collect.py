"""Runs that no cause explains, from the folder to the diagnosis, with the inputs that people really have."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rca.diagnosis import Diagnosis, Verdict
from rca.pipeline import Options, examine
from rca.rules.load import Knowledge, load
from rca.unexplained.collect import is_wanted

KNOWLEDGE = load()
STEP = "2026-03-01 12:{minute:02d}:{second:02d},000 - INFO - trainer - step {number} loss {loss:.3f}\n"


def steps(count: int, start: int = 0) -> str:
    return "".join(
        STEP.format(minute=n // 60 % 60, second=n % 60, number=n, loss=3 - n / 1000)
        for n in range(start, start + count)
    )


def diagnose(folder: Path, files: dict[str, str | bytes], *, knowledge: Knowledge = KNOWLEDGE, **options) -> Diagnosis:
    folder = folder / "job"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return examine(folder, knowledge, options=Options(experiments="none", strict=True, **options)).diagnosis


def verdict(status: str, probability: float) -> Verdict:
    return Verdict(cause="a.b", title="-", sentence="-", probability=probability, words="-", status=status)


def test_it_is_computed_only_where_the_answer_is_open(tmp_path) -> None:
    assert is_wanted(verdict("unknown", 0.9))
    assert is_wanted(verdict("suspected", 0.49))
    assert not is_wanted(verdict("suspected", 0.5))
    assert not is_wanted(verdict("confirmed", 0.4))
    assert not is_wanted(verdict("none", 0.4))
    done = diagnose(tmp_path, {"a.log": steps(300) + "Training completed. Do not forget to share your model\n"})
    assert (done.verdict.cause, done.unexplained) == ("none", None)


def test_the_rank_that_failed_first_leads_and_the_echoes_are_folded(tmp_path) -> None:
    lost = "2026-03-01 12:09:01,000 - ERROR - acme.lease - lease 88 on pool blue was not renewed within 30 s\n"
    echo = "2026-03-01 12:09:31,000 - ERROR - acme.lease - a peer gave its lease back\n"
    files = {f"rank_{rank}.log": steps(400) + (lost if rank == 2 else echo) for rank in range(4)}
    found = diagnose(tmp_path, files)
    first, second = found.unexplained.lines[:2]
    assert found.verdict.cause == "unknown"
    assert (first.source, first.line, first.rank, first.signs) == ("rank_2.log", 401, 2, ("error_word", "rare", "near"))
    assert (second.ranks, second.count) == ((0, 1, 3), 3)
    assert first.time == "2026-03-01T12:09:01Z"
    assert any(row.line == 400 for row in first.context)
    assert found.unexplained.draft.line == first.id
    assert found.verdict.next_step.startswith("Read rank_2.log:401 first")


def test_the_ordinary_lines_and_what_the_rules_know_do_not_stand_out(tmp_path) -> None:
    found = diagnose(tmp_path, {"a.log": steps(300) + "Killed\n"})
    assert found.verdict.cause == "unknown"
    assert [line.text for line in found.unexplained.lines] == []
    assert found.unexplained.draft is None
    asked = [item.id for item in found.unexplained.absent]
    assert asked[0] == "kernel_log_after_kill"
    assert "host_memory" in asked


def test_a_run_that_ends_mid_progress_without_a_word_is_unknown(tmp_path) -> None:
    found = diagnose(tmp_path, {"a.log": steps(300), "args.json": json.dumps({"max_steps": 5000})})
    assert found.verdict.cause == "unknown"
    assert found.unexplained.absent[0].id == "kernel_log_after_silence"


def test_without_a_plan_it_is_unknown_too_and_the_plan_is_asked_for(tmp_path) -> None:
    found = diagnose(tmp_path, {"a.log": steps(300)})
    assert found.verdict.cause == "unknown"
    assert "plan" in [item.id for item in found.unexplained.absent]


def test_missing_ranks_are_named(tmp_path) -> None:
    files = {f"rank_{rank}.log": "world_size: 4\n" + steps(50) + "the flux inverter is stuck\n" for rank in range(3)}
    found = diagnose(tmp_path, files)
    said = next(item.says for item in found.unexplained.absent if item.id == "rank_logs")
    assert "job of 4 processes" in said
    assert said.endswith("1 of 4 ranks left nothing behind: 3.")


def test_a_line_resembles_what_is_written_about_a_cause(tmp_path) -> None:
    found = diagnose(tmp_path, {"a.log": steps(50) + "acme.store - ERROR - connection was reset by the peer node\n"})
    assert "distributed.network" in [item.cause for item in found.unexplained.resembles]
    assert {"reset", "peer"} <= set(found.unexplained.resembles[0].shared)
    assert found.unexplained.resembles[0].line == found.unexplained.lines[0].id


SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.mark.parametrize("mode", ["default", "strict"])
def test_secrets_and_names_are_in_no_part_of_it(tmp_path, mode) -> None:
    odd = f"ERROR - lease of /home/jsmith/pool at 10.2.3.4 was not renewed, token={SECRET}\n"
    found = diagnose(tmp_path, {"a.log": steps(50) + odd}, redact=mode).unexplained
    text = found.model_dump_json()
    assert found.draft is not None
    assert not [word for word in (SECRET, "jsmith", "10.2.3.4") if word in text]


INPUTS = {
    "nothing but a configuration": ({"config.yaml": "learning_rate: 1.0e-3\n"}, "log"),
    "an empty log": ({"a.log": ""}, "log"),
    "binary junk": ({"a.log": os.urandom(4096), "config.yaml": "learning_rate: 1.0e-3\n"}, "log"),
    "one line": ({"a.log": "starting\n"}, "metrics"),
    "a line without end": ({"a.log": "x" * 3_000_000}, "metrics"),
    "a progress bar": ({"a.log": "".join(f"\r{n}%|##  | {n}/5000" for n in range(5000))}, None),
}


@pytest.mark.parametrize("name", INPUTS)
def test_odd_inputs_have_a_page_that_says_what_to_record(tmp_path, name) -> None:
    files, asked = INPUTS[name]
    found = diagnose(tmp_path, files)
    assert found.verdict.cause == "unknown"
    assert asked is None or found.unexplained.absent[0].id == asked


@pytest.mark.parametrize("line", ["训练失败：无法连接到租约服务器", "ошибка: не удалось продлить аренду"])
def test_other_languages_are_read(tmp_path, line) -> None:
    found = diagnose(tmp_path, {"a.log": "начало\n" + steps(50) + line + "\n"})
    assert found.unexplained.lines[0].text == line
    assert found.unexplained.draft is None


@pytest.mark.parametrize("text", ["waiting for the pool\n", "ERROR: waiting for the pool\n"])
def test_the_same_line_a_hundred_thousand_times_costs_little(tmp_path, text) -> None:
    found = diagnose(tmp_path, {"a.log": text * 100_000})
    assert [(line.line, line.signs) for line in found.unexplained.lines] == (
        [(1, ("error_word", "near"))] if "ERROR" in text else []
    )
    assert found.unexplained.looked_at < 60_000
    assert found.timings["unexplained"] < 5


def test_an_exception_of_any_name_stands_out_but_its_stack_does_not(tmp_path) -> None:
    stack = (
        "Traceback (most recent call last):\n"
        '  File "/opt/acme/lib/python3.11/site-packages/acme/pool.py", line 12, in renew\n'
        "    raise LeaseExpired(lease)\n"
        "acme.pool.LeaseExpired: lease 88 is gone\n"
    )
    found = diagnose(tmp_path, {"a.log": steps(50) + stack}, knowledge=Knowledge())
    assert [line.text for line in found.unexplained.lines] == ["acme.pool.LeaseExpired: lease 88 is gone"]
    assert found.unexplained.lines[0].signs[0] == "exception"


def test_the_odd_line_of_a_container_log_is_shown_as_it_was_said(tmp_path) -> None:
    lost = "2026-03-01 12:09:01,000 - ERROR - acme.lease - lease 88 on pool blue was not renewed within 30 s\n"
    said = [*steps(400).splitlines(keepends=True), lost]
    wrapped = "".join(
        json.dumps({"log": line, "stream": "stderr", "time": f"2026-03-01T12:00:00.{at:09d}Z"}) + "\n"
        for at, line in enumerate(said)
    )
    found = diagnose(tmp_path, {"container-json.log": wrapped})
    assert [source.kind for source in found.sources] == ["wrapped log"]
    first = found.unexplained.lines[0]
    assert (first.line, first.text) == (401, lost.strip())
    assert "error_word" in first.signs
