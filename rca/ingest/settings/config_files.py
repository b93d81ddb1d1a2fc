"""Settings in YAML, TOML and INI: training configs, hydra, accelerate, hparams.yaml, Kubernetes manifests."""

from __future__ import annotations

from typing import Any

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.machine.containers import add_cluster_document, is_cluster_document
from rca.ingest.settings.config_roles import role_of
from rca.ingest.settings.config_rows import add_settings
from rca.ingest.settings.packages import add_environment, add_lock, is_environment, is_lock
from rca.ingest.settings.script_files import command_settings
from rca.ingest.tables.structured import (
    MAX_SETTINGS_FILE,
    decode,
    parse_ini,
    parse_toml,
    parse_yaml,
    plain_name,
    read_whole,
)

_YAML = (".yaml", ".yml")
_TOML = (".toml", "poetry.lock", "uv.lock")
_INI = (".ini", ".cfg")


class ConfigFileIngestor:
    """Reads settings files that people write into configuration events."""

    name = "settings"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take `*.yaml`, `*.yml`, `*.toml`, `*.ini`, `*.cfg` and lock files."""
        return (
            plain_name(source.path).endswith((*_YAML, *_TOML, *_INI))
            and b"\0" not in head[:64].lstrip(b"\xff\xfe")[2::2]
        )

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read every document of the file. Raises UnreadableSource where it is broken or empty."""
        data, _cut, notes = read_whole(source, context, MAX_SETTINGS_FILE)
        text = decode(data)
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        name = plain_name(source.path)
        for document in _documents(name, text, what=source.path):
            _add(out, name, document, text)
        if not len(out):
            raise UnreadableSource(f"{source.path} holds no setting.")
        return Ingested(out.build(), lines=text.count("\n") + 1, bytes=len(data), warnings=notes)


def _documents(name: str, text: str, *, what: str) -> list[Any]:
    if name.endswith(_YAML):
        return parse_yaml(text, what=what)
    return [parse_toml(text, what=what) if name.endswith(_TOML) else parse_ini(text, what=what)]


def _add(out: EventBuilder, name: str, document: Any, text: str) -> None:
    if is_cluster_document(document):
        add_cluster_document(out, document)
    elif is_environment(document):
        add_environment(out, document)
    elif is_lock(document):
        add_lock(out, document)
    elif isinstance(document, list):
        words = [item for item in document if isinstance(item, str) and "=" in item]
        add_settings(out, command_settings(" ".join(words)), role="command", text=text)
    elif isinstance(document, dict):
        keyed = {str(key): item for key, item in document.items()}
        add_settings(out, keyed, role=role_of(name, keyed), text=text)
