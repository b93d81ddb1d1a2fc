"""What `rca rules check` finds, each with its file, its line and what to write instead."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from rca.rules.check import check
from rca.rules.load import load

FACTS = {
    "loss.nan_step": "first step with a non-finite loss (step)",
    "step.data_share": "share of the step that waits for data",
    "run.kind": "train | eval | inference | unknown",
    "run.failed": "something failed",
}
HEAD = "id: acme.lease\ntitle: T\nsentence: S.\nsummary: S.\nprior: 0.01\n"
CASES = "fires:\n  - log: x\nsilent:\n  - {log: x, why: y}\n"
SIGNATURES = """\
emitter: acme
signatures:
  - {id: acme.lost, pattern: 'lease (?P<node>\\w+) lost', role: initiating, matches: ['lease n1 lost']}
"""


def common_name(setting: str) -> str:
    return {"lr": "learning_rate"}.get(setting, setting)


def found(folder: Path, body: str, *, head: str = HEAD, signatures: str = SIGNATURES, to_beat: float = -9) -> list[str]:
    """Check one cause of a team folder and return what is said about the folder."""
    (folder / "acme").mkdir()
    (folder / "acme" / "lease.yaml").write_text(head + textwrap.dedent(body))
    (folder / "acme" / "lease.cases.yaml").write_text(CASES)
    (folder / "signatures.yaml").write_text(signatures)
    return [
        str(item)
        for item in check(load([folder], builtin=False), facts=FACTS, common_name=common_name, to_beat=to_beat)
    ]


def evidence(*conditions: str) -> str:
    rows = [f"  - {{id: e{number}, weight: 3, says: S., {text}}}\n" for number, text in enumerate(conditions)]
    return "evidence:\n" + "".join(rows)


def test_a_fix_is_meant_for_evidence_that_exists(tmp_path) -> None:
    body = evidence("log: 'a b'") + "fixes:\n  - {action: A, snippet: x, when: [e0]}\n  - {action: B, when: [e00]}\n"
    (said,) = found(tmp_path, body)
    assert "when 'e00' does not exist; did you mean 'e0'? (evidence ids of acme.lease)" in said


def test_a_rule_without_fault_is_left_alone(tmp_path) -> None:
    body = evidence(
        "signature: acme.lost, where: {node: n1}, rank: only",
        "fact: loss.nan_step, op: '<', value: 10",
        "fact: step.data_share, op: '>', value: 0.5",
        "fact: run.kind, value: train",
        "config: learning_rate, op: '>', value: 1e-3",
        "any: [{log: 'a b'}, {exception: KeyError, where: {message: 'matches ^x'}}]",
    )
    assert found(tmp_path, body) == []


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        ("signature: acme.lots", "the signature 'acme.lots' does not exist; did you mean 'acme.lost'?"),
        ("order: [acme.lost, acme.nothing]", "the signature 'acme.nothing' does not exist"),
        ("fact: loss.nan_stap", "the fact 'loss.nan_stap' does not exist; did you mean 'loss.nan_step'?"),
        ("signature: acme.lost, where: {nodes: n1}", "the capture 'nodes' does not exist; did you mean 'node'?"),
        ("log: 'lease (?P<node>x)', where: {host: a}", "the capture 'host' does not exist"),
        ("signature: acme.lost, where: {node: '> soon'}", "orders numbers; 'soon' is none, so this is never met"),
        ("fact: loss.nan_step, value: true", "loss.nan_step is a number; True is true or false"),
        ("fact: loss.nan_step, op: '>', value: soon", "`op: >` orders numbers; 'soon' is none"),
        ("fact: step.data_share, op: '>', value: 50", "a share between 0 and 1, so this is never met"),
        ("fact: run.kind, value: training", "the value of run.kind 'training' does not exist; did you mean 'train'?"),
        ("fact: loss.nan_step, op: '>'", "`op: >` needs a `value:`"),
        ("fact: loss.nan_step, op: exists, value: 3", "`op: exists` reads no `value:`"),
        (
            "config: lr, op: '>', value: 1",
            "the setting 'lr' is known as 'learning_rate' in every framework; write that",
        ),
        ("log: '(?:lost)?'", "matches the empty line, so it tells nothing and is not searched"),
        ("config: seed, value: [1, 2]", "a list is met with `op: in`"),
        ("signature: acme.lost, op: '>', value: 3", "a signature condition does not read `op` and `value`"),
        ("fact: run.failed, where: {node: n1}", "a fact condition does not read `where:`"),
        ("fact: run.failed, rank: only", "a fact condition does not read `rank:`"),
        ("not: {fact: loss.nan_step}", "this is never met: where loss.nan_step is unknown there is no data"),
        ("any: []", "`any:` is empty"),
        ("any: [{log: a}, {log: a}]", "`any:` of e0 repeats a condition"),
        (
            "all: [{fact: loss.nan_step, op: '<', value: 3}, {fact: loss.nan_step, op: '>', value: 5}]",
            "e0 excludes itself, so it is never met",
        ),
        ("all: [{log: a}, {not: {log: a}}]", "e0 excludes itself, so it is never met"),
        (
            "all: [{config: fp16, value: true}, {any: [{config: fp16, value: false}, {config: fp16, value: 'no'}]}]",
            "e0 excludes itself, so it is never met",
        ),
    ],
)
def test_a_condition_that_never_does_what_it_says(tmp_path, condition, sentence) -> None:
    (message,) = found(tmp_path, evidence(condition))
    assert sentence in message
    assert message.startswith(f"{tmp_path / 'acme' / 'lease.yaml'}:7: error: ")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("fact: loss.nan_step, op: '<', value: 3, required: true", "fact: loss.nan_step, op: '>=', value: 3"),
        ("fact: run.failed, value: true, required: true", "fact: run.failed, value: false"),
        ("config: precision, op: in, value: [a, b], required: true", "config: precision, value: c"),
        ("log: a, required: true", "not: {log: a}"),
    ],
)
def test_evidence_that_what_is_required_excludes(tmp_path, first, second) -> None:
    (message,) = found(tmp_path, evidence(first, second))
    assert "e1 is never met where what is required is met" in message
    assert ":8: error: " in message


def test_requirements_that_exclude_each_other(tmp_path) -> None:
    one = "fact: loss.nan_step, op: '<', value: 3, required: true"
    other = "fact: loss.nan_step, op: '>', value: 5, required: true"
    (message,) = found(tmp_path, evidence(one, other))
    assert "what is required excludes itself (e0, e1 cannot all be met), so the cause is never considered" in message


@pytest.mark.parametrize(
    "pair",
    [
        ("fact: loss.nan_step, op: '<', value: 3, required: true", "fact: loss.nan_step, op: '>', value: 1"),
        ("config: x, op: matches, value: '^a', required: true", "config: x, op: matches, value: 'b$'"),
        ("config: x, op: '!=', value: 1, required: true", "config: x, op: '!=', value: 2"),
        ("fact: run.kind, op: in, value: [train, eval], required: true", "fact: run.kind, value: eval"),
    ],
)
def test_conditions_that_can_both_be_met_are_left_alone(tmp_path, pair) -> None:
    assert found(tmp_path, evidence(*pair)) == []


def test_the_same_condition_twice(tmp_path) -> None:
    (message,) = found(tmp_path, evidence("log: a", "log: a, group: g"))
    assert "e1 asks the same as e0; one of them is enough" in message


def test_the_same_condition_for_and_against(tmp_path) -> None:
    body = evidence("log: a") + "contradicts:\n  - {id: c, weight: 1, says: S., log: a}\n"
    (message,) = found(tmp_path, body)
    assert "c asks the same as e0 under evidence; they cancel each other" in message


def test_an_evidence_id_used_twice(tmp_path) -> None:
    body = evidence("log: a") + "contradicts:\n  - {id: e0, weight: 1, says: S., log: b}\n"
    (message,) = found(tmp_path, body)
    assert "the evidence id 'e0' is used twice" in message
    assert ":9: error: " in message


def test_evidence_too_weak_to_be_named(tmp_path) -> None:
    (message,) = found(tmp_path, evidence("log: a").replace("weight: 3", "weight: 0.5"), to_beat=-3.0)
    assert "all evidence together gives -4.1 nats of log-odds; -3.0 are needed to be named" in message


def test_a_name_in_braces_that_nothing_fills_in(tmp_path) -> None:
    body = evidence("signature: acme.lost").replace("S.", '"{nodes} lost at {loss.nan_step}, {text}"')
    (message,) = found(tmp_path, body)
    assert "the name in braces 'nodes' does not exist; did you mean 'node'?" in message


def test_a_key_that_stands_twice(tmp_path) -> None:
    (message,) = found(tmp_path, evidence("log: a") + evidence("log: b"))
    assert message.endswith(":8: error: the key 'evidence' stands twice in one mapping; only the last one counts")


def test_what_is_not_written_yet(tmp_path) -> None:
    (message,) = found(tmp_path, evidence("log: a").replace("S.", "FILL IN"))
    assert message.endswith("lease.yaml:7: error: this still says 'FILL IN'; write it, or take the line out")


def test_a_maturity_that_the_cases_do_not_back(tmp_path) -> None:
    few, none = found(tmp_path, evidence("log: a") + "maturity: stable\n")
    assert (
        "warning: maturity 'stable' stands for 3 fires and 3 silent cases or more; lease.cases.yaml has 1 and 1" in few
    )
    assert "warning: maturity 'stable' stands for a silent case that names the nearest rival with `first:`" in none


def test_references_to_what_does_not_exist(tmp_path) -> None:
    body = evidence("log: a") + "explains: [acme.lots]\nexperiments: [lr_tenth]\n"
    one, other = found(tmp_path, body)
    assert "explains 'acme.lots' does not exist; did you mean 'acme.lost'?" in one
    assert "experiments 'lr_tenth' does not exist" in other


ROW = "  - {{id: acme.{name}, pattern: '{pattern}', role: {role}, matches: ['{line}']}}\n"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (ROW.format(name="gone", pattern=r"lease (?P<node>\w+) lost", role="initiating", line="lease a lost"),
         "error: acme.gone has the very pattern of acme.lost"),
        (ROW.format(name="any", pattern="lease", role="benign", line="lease kept"),
         "warning: the example 'lease n1 lost' of acme.lost (initiating) is also matched by acme.any (benign)"),
        (ROW.format(name="kept", pattern="lease kept", role="benign", line="lease lost"),
         "error: the pattern of acme.kept does not match its example 'lease lost'"),
    ],
)  # fmt: skip
def test_signatures_that_claim_the_same_line(tmp_path, row, sentence) -> None:
    messages = found(tmp_path, evidence("log: a"), signatures=SIGNATURES + row)
    assert any(sentence in message for message in messages)
    assert len(messages) == 1


def test_what_is_wrong_in_an_extension_is_named_there(tmp_path) -> None:
    (tmp_path / "more.yaml").write_text(
        "extends: acme.lease\nevidence:\n  - {id: more, weight: 1, says: S., fact: loss.nan_stap}\n"
    )
    (message,) = found(tmp_path, evidence("log: a"))
    assert message.startswith(f"{tmp_path / 'more.yaml'}:3: error: the fact 'loss.nan_stap' does not exist")
