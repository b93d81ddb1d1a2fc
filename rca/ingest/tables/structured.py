"""Structured files read whole: bounded, decoded, parsed without executing or trusting anything in them."""

from __future__ import annotations

import configparser
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from rca.errors import UnreadableSource
from rca.ingest.interface import IngestContext, Source
from rca.ingest.places.content import open_content

MAX_STRUCTURED = 33 * 1024**2
"""Bytes of one JSON document after decompression: parsed, it takes seven to ten times as much memory, and the largest
document of a model, a vocabulary of 262,000 tokens with its merges, has 32."""
MAX_TABLE = 64 * 1024**2
"""Bytes of one table of metrics that are read: a million rows of six columns."""
MAX_SETTINGS_FILE = 4 * 1024**2
"""Bytes of one YAML, TOML or INI file: people write these, so a larger one is something else."""
MAX_YAML_NODES = 200_000
"""Nodes of one YAML document with every alias expanded; more is an alias bomb."""
MAX_DEPTH = 48
"""Levels of nesting that are flattened; deeper values are kept as one JSON text."""

MAX_TOML_PARTS = 200
"""Parts of one dotted TOML key: the parser keeps every prefix, so its memory grows with the square of them."""

_ESCAPED = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_KEY_ENDS = re.compile(r"([=\n,{\[\]])")
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


class Bounded(NamedTuple):
    """The bytes of one file, decompressed, and what was lost on the way."""

    data: bytes
    cut: bool
    """There was more than the limit."""
    warnings: tuple[str, ...]


def plain_name(path: str) -> str:
    """Return the lower-case file name without folder and compression suffix."""
    name = path.rsplit("/", 1)[-1].lower()
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    return name


def read_bounded(source: Source, context: IngestContext, limit: int = MAX_TABLE) -> Bounded:
    """Read at most `limit` bytes after decompression. Raises UnreadableSource with the reason."""
    most = min(limit, context.limits.source_bytes)
    with open_content(source, replace(context.limits, source_bytes=most)) as content:
        return Bounded(bytes(content.data), len(content.data) >= most, content.warnings)


def read_lines(source: Source, context: IngestContext) -> Bounded:
    """Read as `read_bounded`; a line that the limit cuts in two is left out, because half a number is a wrong one."""
    found = read_bounded(source, context)
    return found._replace(data=found.data[: found.data.rfind(b"\n") + 1]) if found.cut else found


def read_whole(source: Source, context: IngestContext, limit: int) -> Bounded:
    """Read a file that makes no sense in part. Raises UnreadableSource where it is larger than `limit`."""
    found = read_bounded(source, context, limit)
    if found.cut:
        raise UnreadableSource(
            f"{source.path} is larger than {len(found.data):,} bytes; no file of this kind should be."
        )
    return found


def decode(data: bytes) -> str:
    """Decode text of unknown encoding: byte order marks are honoured, invalid bytes are replaced."""
    if data.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return data.decode("utf-32", errors="replace")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    if data[1:2] == b"\0" and data[3:4] == b"\0":
        return data.decode("utf-16-le", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


class Repeated(dict[str, Any]):
    """A JSON object in which a key stood more than once; the last value counts."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    return plain if len(plain) == len(pairs) else Repeated(plain)


def without_halves(text: str) -> str:
    """Replace escaped surrogates that lack their other half in JSON text: no UTF-8 can hold them."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPED.sub(lambda found: "\\ufffd" if len(found[0]) == 6 else found[0], text)


def parse_json(text: str, *, what: str) -> Any:
    """Parse JSON with bare NaN and Infinity. Raises UnreadableSource naming the place of the first error."""
    try:
        return json.loads(without_halves(text), object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise UnreadableSource(
            f"{what} is not complete JSON (line {error.lineno}, column {error.colno}: {error.msg}); "
            "it was cut off or is another format."
        ) from error
    except (RecursionError, ValueError) as error:
        raise UnreadableSource(f"{what} is nested or numbered beyond what is read; no configuration is.") from error


def parse_yaml(text: str, *, what: str) -> list[Any]:
    """Parse every document of a YAML text into plain values; tags are ignored. Raises UnreadableSource."""
    import yaml

    try:
        if (nodes := _yaml_nodes(text)) > MAX_YAML_NODES:
            raise UnreadableSource(
                f"{what} expands to more than {nodes:,} values through its aliases; it is not read as configuration."
            )
        return [item for item in yaml.load_all(text, _plain_loader()) if item is not None]
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        place = getattr(error, "problem_mark", None)
        where = f" (line {place.line + 1})" if place is not None else ""
        raise UnreadableSource(f"{what} is not valid YAML{where}; fix the file or leave it out.") from error


def _yaml_nodes(text: str) -> int:
    """Count the nodes of a YAML stream as if every alias were written out; stops above the limit."""
    import yaml

    sizes: dict[str | None, int] = {}
    open_nodes: list[tuple[str | None, int]] = []
    total = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            total += sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.ScalarEvent):
            total += 1
            if event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, total))
            total += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor:
                sizes[anchor] = total - before
        if total > MAX_YAML_NODES:
            break
    return total


def _plain_loader() -> Any:
    """Return the YAML loader that turns every tag, known or not, into a plain value."""
    import yaml

    class PlainLoader(yaml.CSafeLoader):
        """libyaml's safe loader; a tag it does not know names no constructor."""

    def plain(loader: Any, _suffix: str, node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_scalar(node)

    PlainLoader.add_multi_constructor("", plain)
    return PlainLoader


def parse_toml(text: str, *, what: str) -> dict[str, Any]:
    """Parse TOML. Raises UnreadableSource."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    pieces = _KEY_ENDS.split(text)
    for key, end in zip(pieces[::2], pieces[1::2], strict=False):
        if end in "=]" and key.count(".") > MAX_TOML_PARTS and ".." not in key:
            raise UnreadableSource(f"{what} has a key of more than {MAX_TOML_PARTS} parts; no configuration does.")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a plain ValueError
        raise UnreadableSource(f"{what} is not valid TOML ({error}); fix the file or leave it out.") from error


def parse_ini(text: str, *, what: str) -> dict[str, Any]:
    """Parse INI sections without interpolation. Raises UnreadableSource."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise UnreadableSource(f"{what} is not valid INI ({error.message.splitlines()[0]}).") from error
    sections: dict[str, Any] = {name: dict(parser.items(name)) for name in parser.sections()}
    return {**dict(parser.defaults()), **sections}


def flatten(value: Any, *, limit: int, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield at most `limit` pairs (dotted key, leaf) of nested mappings; a list is a leaf unless it holds mappings."""
    waiting: list[tuple[str, Any, int]] = [(prefix, value, 0)]
    count = 0
    while waiting and count < limit:
        key, item, depth = waiting.pop()
        if isinstance(item, dict) and item and depth < MAX_DEPTH:
            head = f"{key}." if key else ""
            waiting.extend((f"{head}{name}", inner, depth + 1) for name, inner in reversed(item.items()))
        elif isinstance(item, list) and item and depth < MAX_DEPTH and all(isinstance(part, dict) for part in item):
            waiting.extend(
                (f"{key}[{index}]", item[index], depth + 1) for index in reversed(range(min(len(item), limit)))
            )
        elif key:
            count += 1
            yield key, item
