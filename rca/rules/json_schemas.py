"""JSON Schemas of the rule files, generated from their models, so that editors complete, check and explain them."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from rca.rules import advice_schema, measured, schema
from rca.rules.advice_schema import RecordFile, RemedyFile
from rca.rules.measured import LikelihoodFile
from rca.rules.schema import (
    CASE_PARTS,
    CONDITION_KINDS,
    CaseFile,
    Cause,
    ExperimentRule,
    SignatureFile,
    Taxonomy,
)

SCHEMAS: Mapping[str, type[BaseModel]] = {
    "signatures": SignatureFile,
    "cause": Cause,
    "cases": CaseFile,
    "experiment": ExperimentRule,
    "taxonomy": Taxonomy,
    "records": RecordFile,
    "remedies": RemedyFile,
    "likelihoods": LikelihoodFile,
}
"""Kind of file -> its model."""
FOLDER = "schemas"
"""Where the schemas lie in a rules folder."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def editor_line(kind: str, *, up: int = 1) -> str:
    """Return the first line of a rule file that lies `up` folders below its rules folder: it names the schema."""
    return f"# yaml-language-server: $schema={'../' * up or './'}{FOLDER}/{kind}.schema.json"


def schema_text(kind: str) -> str:
    """Return the JSON Schema of one kind of file, with the docstrings of the fields as their help."""
    document = SCHEMAS[kind].model_json_schema(by_alias=True)
    models = {SCHEMAS[kind].__name__: document, **document.get("$defs", {})}
    texts = _field_docstrings()
    for name, model in models.items():
        for field, shape in model.get("properties", {}).items():
            models[name]["properties"][field] = _plain(shape) | texts.get((name, field), {})
    _relax(models)
    head = {"$schema": _DIALECT, "title": f"rca {kind} file"}
    return json.dumps({**document, **head}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_schemas(folder: Path) -> list[Path]:
    """Write all schemas below a rules folder; return those that were not there as they are now."""
    written = []
    for kind in SCHEMAS:
        file, text = folder / FOLDER / f"{kind}.schema.json", schema_text(kind)
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            written.append(file)
    return written


def _field_docstrings() -> dict[tuple[str, str], dict[str, str]]:
    """Model and field -> the string under the field. Fields of a base class count for its subclasses."""
    texts: dict[tuple[str, str], dict[str, str]] = {}
    nodes = [node for module in (schema, advice_schema, measured) for node in ast.parse(inspect.getsource(module)).body]
    for node in nodes:
        if not isinstance(node, ast.ClassDef):
            continue
        for base in (item.id for item in node.bases if isinstance(item, ast.Name)):
            texts |= {(node.name, field): text for (owner, field), text in texts.items() if owner == base}
        for field, below in zip(node.body, node.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
                text = " ".join(inspect.cleandoc(ast.literal_eval(below.value)).split())
                texts[node.name, field.target.id.rstrip("_")] = {"description": text}
    return texts


def _plain(shape: dict[str, Any]) -> dict[str, Any]:
    """Drop what only pydantic needs: titles, defaults of None, and null beside the type that a file gives."""
    kept = {key: value for key, value in shape.items() if key != "title" and (key, value) != ("default", None)}
    choices = [item for item in kept.get("anyOf", ()) if item != {"type": "null"}]
    if len(choices) == 1:
        kept.pop("anyOf")
        return {**kept, **choices[0]}
    return kept | ({"anyOf": choices} if choices else {})


def _relax(models: Mapping[str, dict[str, Any]]) -> None:
    """State what the loader does beyond the models: the emitter stands once, an extension may leave out the rest."""
    if "Signature" in models:
        models["Signature"]["required"].remove("emitter")
    for name in {"Condition", "EvidenceRule"} & set(models):
        models[name]["oneOf"] = [{"required": [kind.rstrip("_")]} for kind in CONDITION_KINDS]
    if "Case" in models:
        models["Case"]["anyOf"] = [{"required": [part]} for part in CASE_PARTS]
    if "Cause" in models:
        models["Cause"]["anyOf"] = [{"required": ["extends"]}, {"required": models["Cause"].pop("required")}]
