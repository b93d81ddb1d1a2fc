"""The draft of a rule: made from the line as it is shown, and good for the line as it was."""

from __future__ import annotations

import subprocess

import pytest
import re2
import yaml

from rca.leads import OddLine
from rca.unexplained.draft import drafted


def odd(text: str, **more) -> OddLine:
    return OddLine(**{"id": "odd-1", "text": text, "source": "rank_0.log", "line": 7, "signs": ("error_word",), **more})


def test_the_draft_fires_on_the_line_and_its_like() -> None:
    draft = drafted(odd("2026-03-01 12:00:01 - ERROR - acme - lease 88123 on pool blue was not renewed within 30 s"))
    rule = yaml.safe_load(draft.rule)
    assert rule["id"] == "team.lease_pool_blue_renewed"
    pattern = rule["evidence"][0]["log"]
    assert re2.search(pattern, "lease 4 on pool blue was not renewed within 600 s")
    assert "lease 88123" in yaml.safe_load(draft.cases)["fires"][0]["log"]


def test_what_was_replaced_matches_any_word() -> None:
    draft = drafted(odd("ERROR: <user-1> at <host-2> lost the lease, token=<secret>"))
    pattern = yaml.safe_load(draft.rule)["evidence"][0]["log"]
    assert re2.search(pattern, "jsmith at gpu-17.example lost the lease, token=abc")


@pytest.mark.parametrize(
    ("source", "command"),
    [
        ("rank_0.log", "sed -n 7p rank_0.log | rca"),
        ("a b.log", "sed -n 7p 'a b.log' | rca"),
        ("-n.log", "sed -n 7p ./-n.log | rca"),
        ("x.log.gz", "zcat x.log.gz | sed -n 7p | rca"),
    ],
)
def test_the_command_takes_the_line_from_its_file(source, command) -> None:
    assert drafted(odd("lease lost", source=source)).command.startswith(command)


def test_the_command_runs(tmp_path) -> None:
    (tmp_path / "rank_0.log").write_text("one\n" * 6 + "the lease of the pool was lost\n")
    command = drafted(odd("the lease of the pool was lost")).command.replace("rca ", "python -m rca ", 1)
    subprocess.run(command, shell=True, check=True, cwd=tmp_path, capture_output=True)
    written = tmp_path / "team" / "team" / "lease_pool_lost.yaml"
    assert "lease of the pool was lost" in written.read_text()


def test_a_line_without_words_gives_none() -> None:
    assert drafted(odd("错误 1234")) is None
