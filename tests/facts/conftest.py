"""The facts of a run directory made of a few files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rca.events import EventTable
from rca.facts.registry import CATALOGUE, extract
from rca.ingest.interface import IngestContext
from rca.ingest.places.discover import discover
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS
from rca.rules.load import load


@pytest.fixture
def facts_of(tmp_path: Path) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Write the files, read the directory, return every fact's value; names must be in the catalogue."""
    return partial(_facts, tmp_path, IngestContext())


@pytest.fixture
def reported(tmp_path: Path) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The same with the signatures of the knowledge base, for facts that rest on what programs say."""
    return partial(_facts, tmp_path, IngestContext(signatures=load().patterns))


def _facts(tmp_path: Path, context: IngestContext, files: Mapping[str, Any]) -> dict[str, Any]:
    for path, content in files.items():
        file = tmp_path / "run" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(content) if isinstance(content, (dict, list)) else content
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    sources, _skipped = discover(tmp_path / "run")
    read = [read_source(source, INGESTORS, context)[1] for source in sources]
    table = EventTable.from_parts([item.events for item in read if item is not None])
    facts = extract(table)
    assert set(facts) <= set(CATALOGUE)
    for fact in facts.values():
        assert fact.says.endswith((".", ")", "?")), fact
        assert all(0 <= event < len(table) for event in fact.events)
    return {name: fact.value for name, fact in facts.items()}
