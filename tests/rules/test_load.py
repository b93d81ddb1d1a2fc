"""Loading knowledge: validation with file and line, overrides, extensions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rca.errors import KnowledgeError
from rca.rules.load import inline_id, load

CAUSE = """\
id: acme.lease_expired
title: Lease expired
sentence: The lease ran out.
summary: The lease ran out.
prior: 0.01
evidence:
  - id: message
    log: "lease .* expired"
    weight: 4
    says: The log says so.
"""


def write(folder: Path, text: str, name: str = "acme/lease_expired.yaml") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_a_team_rule_is_loaded_and_its_pattern_is_searched(tmp_path) -> None:
    write(tmp_path, CAUSE)
    knowledge = load([tmp_path], builtin=False)
    assert knowledge.causes["acme.lease_expired"].domain == "acme"
    assert [item.id for item in knowledge.patterns] == [inline_id("lease .* expired")]


def test_an_unknown_key_names_file_line_and_the_likely_key(tmp_path) -> None:
    file = write(tmp_path, CAUSE.replace("weight: 4", "wieght: 4"))
    with pytest.raises(KnowledgeError) as caught:
        load([tmp_path], builtin=False)
    message = str(caught.value)
    assert message.startswith(f"{file}:")
    assert "wieght" in message or "weight" in message
    assert caught.value.line in {7, 9}


def test_a_condition_needs_exactly_one_kind(tmp_path) -> None:
    write(tmp_path, CAUSE.replace('log: "lease .* expired"', 'log: "x"\n    fact: loss.nan_step'))
    with pytest.raises(KnowledgeError, match="exactly one of"):
        load([tmp_path], builtin=False)


def test_broken_yaml_names_the_line(tmp_path) -> None:
    file = write(tmp_path, "id: [unclosed\n")
    with pytest.raises(KnowledgeError) as caught:
        load([tmp_path], builtin=False)
    assert str(file) in str(caught.value)
    assert "YAML" in str(caught.value)


def test_a_missing_folder_is_an_error_with_the_option_to_check(tmp_path) -> None:
    with pytest.raises(KnowledgeError, match="--rules"):
        load([tmp_path / "absent"], builtin=False)


def test_the_same_id_later_wins_and_is_noted(tmp_path) -> None:
    write(tmp_path / "one", CAUSE)
    write(tmp_path / "two", CAUSE.replace("Lease expired", "Lease lost"))
    knowledge = load([tmp_path / "one", tmp_path / "two"], builtin=False)
    assert knowledge.causes["acme.lease_expired"].title == "Lease lost"
    assert any("replaced" in note for note in knowledge.notes)


def test_extends_adds_evidence_to_a_cause(tmp_path) -> None:
    write(tmp_path / "one", CAUSE)
    extension = "extends: acme.lease_expired\nevidence:\n  - {id: code, log: E4711, weight: 3, says: Our code.}\n"
    write(tmp_path / "two", extension, "more.yaml")
    knowledge = load([tmp_path / "one", tmp_path / "two"], builtin=False)
    assert [rule.id for rule in knowledge.causes["acme.lease_expired"].evidence] == ["message", "code"]
    assert knowledge.causes["acme.lease_expired"].title == "Lease expired"


def test_an_extension_says_first_what_to_do(tmp_path) -> None:
    write(tmp_path / "one", CAUSE + "decide: [look]\nfixes: [{action: wait}]\n")
    extension = "extends: acme.lease_expired\ndecide: [ask]\nfixes: [{action: renew}]\nfalsepositives: [a pause]\n"
    write(tmp_path / "two", extension, "more.yaml")
    cause = load([tmp_path / "one", tmp_path / "two"], builtin=False).causes["acme.lease_expired"]
    assert cause.decide == ("ask", "look")
    assert [fix.action for fix in cause.fixes] == ["renew", "wait"]
    assert cause.falsepositives == ("a pause",)


def test_extending_what_does_not_exist_suggests_the_likely_id(tmp_path) -> None:
    write(tmp_path / "one", CAUSE)
    write(tmp_path / "two", "extends: acme.lease_expird\nevidence: []\n", "more.yaml")
    with pytest.raises(KnowledgeError, match=r"did you mean 'acme\.lease_expired'"):
        load([tmp_path / "one", tmp_path / "two"], builtin=False)


def test_disabled_ids_are_left_out_and_unknown_ones_are_an_error(tmp_path) -> None:
    write(tmp_path, CAUSE)
    assert load([tmp_path], disabled=["acme.lease_expired"], builtin=False).causes == {}
    with pytest.raises(KnowledgeError, match="cannot disable"):
        load([tmp_path], disabled=["acme.nothing"], builtin=False)


def test_the_built_in_knowledge_loads() -> None:
    knowledge = load()
    assert len(knowledge.causes) >= 40
    assert len(knowledge.signatures) >= 120
    assert knowledge.notes == ()


@pytest.mark.parametrize("text", ["a: 2026-99-99\n", "a: 1" + "0" * 6000 + "\n", "a: \x01\n", "[" * 20_000])
def test_whatever_a_rule_file_holds_it_is_named(tmp_path, text) -> None:
    write(tmp_path, text)
    with pytest.raises(KnowledgeError, match=r"\.yaml"):
        load([tmp_path], builtin=False)


def test_a_pipe_among_the_rules_is_not_opened(tmp_path) -> None:
    write(tmp_path, CAUSE)
    os.mkfifo(tmp_path / "pipe.yaml")
    assert list(load([tmp_path], builtin=False).causes) == ["acme.lease_expired"]


def test_an_installed_package_brings_rules_by_its_entry_point(tmp_path, monkeypatch) -> None:
    write(tmp_path / "acme_rules", CAUSE)
    (tmp_path / "acme_rules" / "__init__.py").write_text("")
    about = tmp_path / "acme_rules-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[rca.knowledge]\nacme = acme_rules\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "acme.lease_expired" in load(builtin=False).causes


def test_what_lies_in_a_recorded_run_beside_the_cases_is_no_rule(tmp_path) -> None:
    write(tmp_path, CAUSE)
    write(tmp_path, "id: [not a rule", "acme/lease_expired.cases/first/config.yaml")
    assert list(load([tmp_path], builtin=False).causes) == ["acme.lease_expired"]


def test_where_two_kinds_of_condition_stand_the_one_that_is_null_does_not_count(tmp_path) -> None:
    write(tmp_path, CAUSE.replace('log: "lease .* expired"', 'log: "lease .* expired"\n    fact: null'))
    assert load([tmp_path], builtin=False).causes["acme.lease_expired"].evidence[0].kind == "log"
