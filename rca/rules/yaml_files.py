"""Reads one rule file into a validated value, with errors that name the file, the line and the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from rca.errors import KnowledgeError

_Model = TypeVar("_Model", bound=BaseModel)
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Location = tuple[int | str, ...]
"""Keys and indexes that lead to a place in a file."""
_SCALARS = {"bool", "int", "float", "str"}


def read_yaml(file: Path) -> Any:
    """Parse one YAML file. Raises KnowledgeError with the line of a syntax error."""
    try:
        return yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        hint = "check the indentation, and quote what holds `: `, `#` or starts with a sign"
        raise KnowledgeError(f"not valid YAML: {error.problem}; {hint}", file=file, line=line) from error
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:  # dates of month 13 are a ValueError
        raise KnowledgeError(f"cannot be read: {error}", file=file) from error


def validate(model: type[_Model], data: Any, *, file: Path) -> _Model:
    """Check parsed YAML against a model. Raises KnowledgeError that names the line, the key and a likely correction."""
    if not isinstance(data, dict):
        raise KnowledgeError(f"expected a mapping with the keys of a {model.__name__.lower()}", file=file, line=1)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        # A misspelled key is also a missing one; only the first of the two says what to change.
        first = min(error.errors(include_url=False), key=lambda item: item["type"] != "extra_forbidden")
        raise KnowledgeError(
            _sentence(first, model).removeprefix(": "), file=file, line=line_of(file, first["loc"])
        ) from error


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the known one that looks like it, if any."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _sentence(error: Any, model: type[BaseModel]) -> str:
    """Turn one pydantic error into a sentence for the author of the file."""
    place = ".".join(str(part) for part in error["loc"])
    key = str(error["loc"][-1]) if error["loc"] else ""
    if "value" in error["loc"] or "where" in error["loc"]:  # the location goes on with the types that were tried
        place = ".".join(str(part) for part in error["loc"][: -1 if key in _SCALARS else None])
        return f"{place}: compare with a number, a text, true or false; `op: in` takes a list of them"
    if error["type"] == "missing":
        return f"{place}: the key {key!r} is missing; add it"
    if error["type"] == "extra_forbidden":
        return f"{place}: unknown key {key!r}{did_you_mean(key, _field_names(model))}"
    said = error["msg"].removeprefix("Value error, ").replace("Input should", "it should")
    return f"{place}: {said.replace('a valid tuple', 'a list')}"


def _field_names(model: type[BaseModel]) -> set[str]:
    names: set[str] = set()
    seen: set[type[BaseModel]] = set()
    pending = [model]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        for name, info in current.model_fields.items():
            names.add(info.alias or name)
            pending.extend(_models_in(info.annotation))
    return names


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [inner for part in getattr(annotation, "__args__", ()) for inner in _models_in(part)]


def line_of(file: Path, loc: Location) -> int | None:
    """Return the 1-based line of the deepest part of `loc` that stands in the file."""
    node = yaml.compose(file.read_text(encoding="utf-8"), Loader=_Loader)
    if node is None:
        return 1
    line: int = node.start_mark.line + 1
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            entry = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if entry is None:
                break
            line, node = entry[0].start_mark.line + 1, entry[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line
