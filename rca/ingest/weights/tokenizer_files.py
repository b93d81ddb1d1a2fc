"""What tokenizer files say about ids: how many, how high, which are special. The texts themselves are not kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.tables.cells import whole
from rca.ingest.tables.structured import MAX_TABLE, plain_name, read_whole

_SPECIALS = 64
"""Special tokens kept with their ids."""
_CONTENT = 60
_AFTER_CONTENT = re2.compile(
    r"(?:content|message|text)['\"]?\]?\s*(?:\|\s*\w+\s*)?\)?\s*(?:\+\s*['\"]\s*|\}\}\s*)(<[^'\"<>{}\s]{1,30}>|\[/?\w{1,20}\])"
)
"""A token that a chat template writes behind the text of a message."""
_TURN_ENDS = re2.compile(r"<\|?(?:eot_id|im_end|end_of_turn|end_of_utterance|eom_id|end|turn_end|eot)\|?>")
_TEMPLATE_CHARS = 40_000
_ROLES = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")


class VocabularyIngestor:
    """Counts the words of a `vocab.txt` (WordPiece): one a line, the line number is the id."""

    name = "vocabulary"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take `vocab.txt` that is text."""
        return plain_name(source.path) == "vocab.txt" and b"\0" not in head

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Count the words."""
        data, _cut, notes = read_whole(source, context, MAX_TABLE)
        words = data.splitlines()
        out = EventBuilder(source.path)
        found = {"file": "vocab.txt", "size": len(words), "max_id": len(words) - 1, "model_type": "WordPiece"}
        out.add(kind="artifact", name="tokenizer.vocabulary", text="vocab.txt", attrs=found)
        return Ingested(out.build(), lines=len(words), bytes=len(data), warnings=notes)


def is_tokenizer(name: str, document: Any) -> bool:
    """Say whether a JSON document holds a vocabulary or describes tokens."""
    if not isinstance(document, dict) or not document:
        return False
    if isinstance(document.get("model"), dict) and ("vocab" in document["model"] or "added_tokens" in document):
        return True
    return name in {"vocab.json", "added_tokens.json"} and all(isinstance(item, int) for item in document.values())


def add_tokenizer(out: EventBuilder, name: str, document: Mapping[str, Any]) -> None:
    """Add one artifact event for a tokenizer.json, a vocab.json or an added_tokens.json."""
    if isinstance(document.get("model"), dict):
        out.add(kind="artifact", name="tokenizer.vocabulary", text=name, attrs=_fast_tokenizer(document))
        return
    ids = [int(item) for item in document.values()]
    found = {"file": name, "size": len(ids), "max_id": max(ids), "min_id": min(ids)}
    if name == "added_tokens.json":
        found["tokens"] = dict(sorted(document.items(), key=lambda pair: pair[1])[:_SPECIALS])
        out.add(kind="artifact", name="tokenizer.added_tokens", text=name, value=float(len(ids)), attrs=found)
    else:
        out.add(kind="artifact", name="tokenizer.vocabulary", text=name, attrs=found)


def _fast_tokenizer(document: Mapping[str, Any]) -> dict[str, Any]:
    model = document["model"]
    vocabulary = model.get("vocab")
    listed = document.get("added_tokens")
    added = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    added_ids = [item["id"] for item in added if isinstance(item.get("id"), int)]
    if isinstance(vocabulary, dict):
        ids = [item for item in vocabulary.values() if isinstance(item, int)]
        base, highest = len(ids), max(ids, default=-1)
    else:
        base = len(vocabulary) if isinstance(vocabulary, list) else 0
        ids, highest = [], base - 1
    known = set(ids) | set(added_ids) if ids else set(range(base)) | set(added_ids)
    special = {
        str(item.get("content"))[:_CONTENT]: item["id"] for item in added if item.get("special") and "id" in item
    }
    merges = model.get("merges")
    return {
        "file": "tokenizer.json",
        "version": document.get("version"),
        "model_type": model.get("type"),
        "size": len(known),
        "base_size": base,
        "max_id": max([highest, *added_ids]),
        "added": len(added_ids),
        "added_max_id": max(added_ids, default=None),
        "special_ids": dict(list(special.items())[:_SPECIALS]),
        "normalizer": _type(document.get("normalizer")),
        "pre_tokenizer": _type(document.get("pre_tokenizer")),
        "post_processor": _type(document.get("post_processor")),
        "decoder": _type(document.get("decoder")),
        "merges": len(merges) if isinstance(merges, list) else None,
        "merges_format": _merges_format(merges),
        "byte_fallback": model.get("byte_fallback"),
        "truncation": _whole(document.get("truncation"), "max_length"),
        "padding": document.get("padding") is not None,
    }


def _merges_format(merges: Any) -> str | None:
    """Return `pairs` (written since tokenizers 0.20) or `strings` (before), read off the first merge."""
    if not isinstance(merges, list) or not merges:
        return None
    return "pairs" if isinstance(merges[0], list) else "strings" if isinstance(merges[0], str) else None


def _type(part: Any) -> str | None:
    if not isinstance(part, dict):
        return None
    keys = ("pretokenizers", "normalizers", "processors")
    lists: list[list[Any]] = [part[key] for key in keys if isinstance(part.get(key), list)]
    names = [str(item.get("type")) for inner in lists[:1] for item in inner[:8] if isinstance(item, dict)]
    return str(part.get("type"))[:_CONTENT] + (f"({', '.join(names)})" if names else "")


def _whole(part: Any, key: str) -> int | None:
    value = part.get(key) if isinstance(part, dict) else None
    return value if isinstance(value, int) else None


def add_token_roles(out: EventBuilder, name: str, document: Mapping[str, Any]) -> None:
    """Add one artifact event with the special tokens that tokenizer_config.json or special_tokens_map.json names."""
    roles = {role: token for role in _ROLES if (token := _content(document.get(role))) is not None}
    decoder = document.get("added_tokens_decoder")
    ids: dict[str, int] = {}
    if isinstance(decoder, dict):
        for key, item in decoder.items():
            token = _content(item)
            if token is not None and (number := whole(str(key))) is not None:
                ids[token] = number
    out.add(
        kind="artifact",
        name="tokenizer.config",
        text=name,
        attrs={
            "file": name,
            "tokens": roles,
            "ids": dict(sorted(ids.items(), key=lambda pair: pair[1])[-_SPECIALS:]),
            "max_id": max(ids.values(), default=None),
            "class": document.get("tokenizer_class"),
            "padding_side": document.get("padding_side"),
            "chat_template": bool(document.get("chat_template")),
            "turn_end": turn_end(document.get("chat_template")),
            "model_max_length": document.get("model_max_length"),
        },
    )


def turn_end(template: Any) -> str | None:
    """Return the token with which a chat template closes a turn, the most frequent one, or None."""
    named: list[str] = []
    texts = template if isinstance(template, list) else [template]
    for item in texts[:8]:
        text = item.get("template") if isinstance(item, dict) else item
        if isinstance(text, str):
            part = text[:_TEMPLATE_CHARS]
            named += _AFTER_CONTENT.findall(part) or _TURN_ENDS.findall(part)
    return max(sorted(set(named)), key=named.count, default=None)


def _content(token: Any) -> str | None:
    text = token.get("content") if isinstance(token, dict) else token
    return text[:_CONTENT] if isinstance(text, str) else None
