"""The schemas that editors use: committed as they are generated, named by every rule file, and true of all of them."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from rca.rules.json_schemas import FOLDER, SCHEMAS, editor_line, schema_text, write_schemas

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
LINE = re.compile(r"# yaml-language-server: \$schema=(\S+)")


def rule_files(root) -> list:
    files = sorted((root / "knowledge").rglob("*.yaml"))
    return [file for file in files if not any(part.endswith(".cases") or part == "languages" for part in file.parts)]


@pytest.mark.parametrize("kind", SCHEMAS)
def test_the_committed_schema_is_the_generated_one(root, kind) -> None:
    committed = (root / "knowledge" / FOLDER / f"{kind}.schema.json").read_text(encoding="utf-8")
    assert committed == schema_text(kind), "regenerate: rca rules schema --write knowledge"


def test_every_rule_file_names_its_schema_in_its_first_line_and_follows_it(root) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validators = {}
    wrong = []
    for file in rule_files(root):
        text = file.read_text(encoding="utf-8")
        named = LINE.match(text)
        assert named, f"{file}: the first line names no schema"
        schema = (file.parent / named[1]).resolve()
        assert schema.is_file(), f"{file}: {named[1]} does not exist"
        if schema not in validators:
            document = json.loads(schema.read_text(encoding="utf-8"))
            jsonschema.Draft202012Validator.check_schema(document)
            validators[schema] = jsonschema.Draft202012Validator(document)
        wrong += [
            f"{file}: {error.message}" for error in validators[schema].iter_errors(yaml.load(text, Loader=LOADER))
        ]
    assert wrong == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("cause", "{id: acme.x, title: T, sentence: S, summary: S, prior: 0.1, evidense: []}"),
        ("cause", "{id: acme.x, title: T, sentence: S, summary: S, prior: 2}"),
        ("cause", "{id: acme.x, evidence: []}"),
        ("cause", "{extends: acme.x, evidence: [{id: a, weight: 1, says: S, fact: f, config: c}]}"),
        ("cases", "{fires: [], silent: [{log: x, why: y}]}"),
        ("signatures", "{emitter: acme, signatures: [{id: acme.x, pattern: x, matches: []}]}"),
    ],
)
def test_what_the_loader_refuses_an_editor_marks(kind, text) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    assert not jsonschema.Draft202012Validator(json.loads(schema_text(kind))).is_valid(yaml.safe_load(text))


def test_an_extension_may_leave_out_what_it_takes_over() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    rule = {"extends": "memory.leak", "evidence": [{"id": "a", "weight": 1, "says": "S", "log": "x"}]}
    assert jsonschema.Draft202012Validator(json.loads(schema_text("cause"))).is_valid(rule)


def test_fields_carry_the_help_that_their_docstrings_give() -> None:
    cause = json.loads(schema_text("cause"))
    assert "before anything is known" in cause["properties"]["prior"]["description"]
    evidence = cause["$defs"]["EvidenceRule"]["properties"]
    assert "Nats" in evidence["weight"]["description"]
    assert "failing rank" in evidence["rank"]["description"]


def test_schemas_are_written_once(tmp_path) -> None:
    assert len(write_schemas(tmp_path)) == len(SCHEMAS)
    assert write_schemas(tmp_path) == []
    assert (tmp_path / "acme" / editor_line("cause").split("=")[1]).resolve().is_file()
