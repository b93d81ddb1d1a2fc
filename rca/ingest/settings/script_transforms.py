"""Which transforms a Python script gives its held-out data, read off its syntax tree; nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rca.events import EventBuilder
from rca.ingest.blocks.evaluation_setup import split_named

_COMPOSES = frozenset({"Compose", "Sequential", "AugmentationSequential"})
_KEYWORDS = frozenset({"transform", "transforms", "tfm", "augment", "augmentation", "pipeline"})
_LONGEST = 400_000
_MOST = 40


def add_transforms(out: EventBuilder, text: str) -> None:
    """Add one `data.transforms` for each data set that is built for a held-out split by name or by path.

    Source that cannot be parsed adds nothing.
    """
    try:
        tree = ast.parse(text[:_LONGEST])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    composed = {
        target.id: names
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and (names := _composed(node.value))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call, names in _given(tree, composed):
        if split_named(" ".join(_strings(call))) == "held out":
            attrs = {"names": names[:_MOST], "for": "held out", "root": None, "split": None}
            out.add(kind="artifact", name="data.transforms", line=call.lineno, text=", ".join(names), attrs=attrs)


def _given(tree: ast.AST, composed: dict[str, list[str]]) -> Iterator[tuple[ast.Call, list[str]]]:
    """Yield the calls that are given a composition of transforms, by its name or in place."""
    for call in ast.walk(tree):
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            if keyword.arg in _KEYWORDS and isinstance(call, ast.Call):
                value = keyword.value
                names = composed.get(value.id) if isinstance(value, ast.Name) else _composed(value)
                if names:
                    yield call, names


def _composed(node: ast.AST) -> list[str] | None:
    """Return the names of the transforms that a call of `Compose` lists."""
    if not isinstance(node, ast.Call) or _called(node) not in _COMPOSES:
        return None
    inner = (item for item in ast.walk(node) if isinstance(item, ast.Call) and item is not node)
    return [name for item in inner if (name := _called(item))]


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _strings(call: ast.Call) -> Iterator[str]:
    """Yield the texts among the arguments of a call, those inside f-strings included; transforms are left out."""
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg not in _KEYWORDS)]
    for argument in given:
        for node in ast.walk(argument):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
