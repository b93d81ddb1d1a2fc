"""What `tokenizer_round_trip` measures: a tokenizer built from its files, tried on text, and held against the model.

Only data is loaded: tokenizer.json, or a vocabulary with or without merges. Loads tokenizers.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rca.experiments.checks.files import LeftFile, folder_of, listing, opened, shown
from rca.experiments.checks.sample_scan import values_of
from rca.experiments.checks.samples import read_samples

MAX_FILE = 128 * 2**20
LINES = (
    "The quick brown fox jumps over the lazy dog.",
    "def f(x):\n    return x ** 2  # comment",
    "Größe, Straße, Übermut und weiße Mäuse",
    "L'été dernier, où étais-tu ? Ça va bien.",
    "El niño comió piñas en la montaña.",
    "Привет, как дела сегодня?",
    "今天天气很好，我们去公园吧。",
    "今日はとても良い天気です。",
    "오늘 날씨가 정말 좋네요.",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "Price: $1,234.56 (50%) on 2024-01-31 @ 10:15",
    "Emoji 🙂🚀 and maths ∑ ≤ ∞",
)
"""Text in many scripts; a tokenizer of the right kind gives most of it back."""
MOST_SAMPLES = 200
ROLES = ("bos", "eos", "pad")
_MARKER = re.compile(r"<\|[a-z0-9_]{2,40}\|>|<(?:start|end)_of_turn>|\[/?INST\]", re.I)
_TEXTS = ("text", "content", "prompt", "sentence", "document", "question", "instruction")


class _Folder(NamedTuple):
    """A tokenizer's folder."""

    root: Path
    name: str
    files: Mapping[str, LeftFile]
    """By bare name."""

    def text(self, name: str) -> str:
        """Return the content of a file, or nothing."""
        file = self.files.get(name)
        if file is None or file.size > MAX_FILE:
            return ""
        try:
            with opened(self.root, file.path) as stream:
                return stream.read(MAX_FILE).decode("utf-8", "replace")
        except OSError:
            return ""

    def settings(self, name: str) -> dict[str, Any]:
        """Return a JSON object, or nothing."""
        try:
            document = json.loads(self.text(name) or "{}")
        except (ValueError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}


def read_tokenizers(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Read every tokenizer below `folder`, and try it on the samples below `samples` (with `named`)."""
    root = Path(settings["folder"])
    by_folder: dict[str, dict[str, LeftFile]] = {}
    for file in listing(root).files:
        by_folder.setdefault(folder_of(file.path), {})[file.path.rpartition("/")[2]] = file
    kept = [name for name, files in by_folder.items() if {"tokenizer.json", "vocab.json", "vocab.txt"} & set(files)]
    texts, pairs, highest = _samples(Path(settings["samples"]), named=settings["named"])
    found = []
    for name in kept[:3]:
        folder = _Folder(root, name, by_folder[name])
        found.append({"folder": shown(name) or ".", **_tokenizer(folder, texts, pairs, highest)})
    return {"tokenizers": found, "texts": len(texts)}


def _samples(root: Path, *, named: bool) -> tuple[list[str], list[tuple[str, list[int]]], int | None]:
    """Return texts, texts with their ids, and the highest id of the samples."""
    texts: list[str] = []
    pairs: list[tuple[str, list[int]]] = []
    highest: int | None = None
    for table in read_samples(root, named=named).tables:
        columns = table.columns
        text = next((columns[name] for name in _TEXTS if name in columns), None)
        ids = columns.get("input_ids")
        for row in range(table.rows):
            one = text[row] if text is not None and isinstance(text[row], str) else None
            if one and len(texts) < MOST_SAMPLES:
                texts.append(one[:4000])
            values = _whole(ids[row]) if ids is not None else []
            if values:
                highest = max(highest or 0, *values)
                if one and len(pairs) < MOST_SAMPLES:
                    pairs.append((one, values))
    return texts, pairs, highest


def _whole(items: Any) -> list[int]:
    """Return the ids of one sample; empty where it has none."""
    values = values_of(items)
    return [int(item) for item in values] if values is not None and values.dtype.kind in "iu" else []


def _tokenizer(
    folder: _Folder, texts: Sequence[str], pairs: Sequence[tuple[str, list[int]]], highest: int | None
) -> dict[str, Any]:
    made = _built(folder)
    vocabulary = dict(sorted(made.get_vocab(with_added_tokens=True).items(), key=lambda pair: pair[1]))
    top = max(vocabulary.values(), default=-1)
    rows, rows_from = _rows(folder)
    said = dict(_special(folder, made))
    trips = [_trip(made, line) for line in LINES]
    own = [_trip(made, text) for text in texts]
    return {
        "size": len(vocabulary),
        "highest": top,
        "rows": rows,
        "rows_from": rows_from,
        "outside": [token for token, number in vocabulary.items() if rows and number >= rows][:8],
        "samples_highest": highest,
        "lossless": sum(trip.same for trip in trips),
        "lines": len(trips),
        "unknown": sum(trip.unknown for trip in trips),
        "pieces": sum(trip.pieces for trip in trips),
        "lost": [line for line, trip in zip(LINES, trips, strict=True) if not trip.same][:4],
        "own_lossless": sum(trip.same for trip in own),
        "own_unknown": sum(trip.unknown for trip in own),
        "own_pieces": sum(trip.pieces for trip in own),
        "own": len(own),
        "pairs": len(pairs),
        "pairs_equal": sum(_agrees(made, text, ids, said) for text, ids in pairs),
        "special": {role: {file: sorted(ids) for file, ids in files.items()} for role, files in said.items()},
        "template": _template(folder, made),
    }


def _built(folder: _Folder) -> Any:
    from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer, Tokenizer

    if "tokenizer.json" in folder.files:
        return Tokenizer.from_str(folder.text("tokenizer.json"))
    if "vocab.txt" in folder.files:
        words = folder.text("vocab.txt").splitlines()
        lower = folder.settings("tokenizer_config.json").get("do_lower_case", True)
        return BertWordPieceTokenizer({word: place for place, word in enumerate(words)}, lowercase=bool(lower))
    lines = folder.text("merges.txt").splitlines()
    merges = [tuple(line.split(" ", 1)) for line in lines if " " in line and line[0] != "#"]
    return ByteLevelBPETokenizer(folder.settings("vocab.json"), merges)


class _Trip(NamedTuple):
    same: bool
    unknown: int
    pieces: int


def _trip(made: Any, text: str) -> _Trip:
    coded = made.encode(text, add_special_tokens=False)
    back = made.decode(coded.ids, skip_special_tokens=True)
    unknown = sum(token.lower() in {"<unk>", "[unk]", "unk"} for token in coded.tokens)
    return _Trip(_letters(back) == _letters(text), unknown, len(coded.ids))


def _letters(text: str) -> str:
    """Return what every lossless tokenizer keeps: the characters without case, accents and spacing."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(letter for letter in plain if not letter.isspace() and not unicodedata.combining(letter))


def _agrees(made: Any, text: str, ids: Sequence[int], said: Mapping[str, Mapping[str, set[int]]]) -> bool:
    """Whether the ids of a sample are this tokenizer's, apart from special tokens and the cut at the end."""
    extra = {number for files in said.values() for known in files.values() for number in known}
    own = [number for number in made.encode(text, add_special_tokens=False).ids if number not in extra]
    kept = [number for number in ids if number not in extra]
    size = min(len(own), len(kept))
    return size > 0 and own[:size] == kept[:size]


def _rows(folder: _Folder) -> tuple[int | None, str]:
    """Return the rows of the token embedding, and where they stand."""
    from rca.experiments.checks.tensor_files import read_header

    for name, file in folder.files.items():
        if name.endswith(".safetensors"):
            try:
                with opened(folder.root, file.path) as stream:
                    header = read_header(stream, file.size)
            except OSError:
                continue
            for entry in header.entries:
                if len(entry.shape) == 2 and entry.name.endswith(_EMBEDDINGS):
                    return entry.shape[0], f"{shown(file.path)}, {entry.name}"
    settings = folder.settings("config.json")
    inner = settings.get("text_config")
    rows = settings.get("vocab_size", inner.get("vocab_size") if isinstance(inner, dict) else None)
    return (rows, "config.json, vocab_size") if isinstance(rows, int) and rows > 0 else (None, "")


def _special(folder: _Folder, made: Any) -> Iterator[tuple[str, dict[str, set[int]]]]:
    """Yield, for each role, the ids that each file gives it."""
    for role in ROLES:
        files: dict[str, set[int]] = {}
        for name in ("config.json", "generation_config.json"):
            value = folder.settings(name).get(f"{role}_token_id")
            ids = {item for item in (value if isinstance(value, list) else [value]) if type(item) is int}
            if ids:
                files[name] = ids
        for name in ("tokenizer_config.json", "special_tokens_map.json"):
            token = folder.settings(name).get(f"{role}_token")
            content = token.get("content") if isinstance(token, dict) else token
            number = made.token_to_id(content) if isinstance(content, str) else None
            if number is not None:
                files[name] = {number}
            elif isinstance(content, str):
                files[name] = {-1}
        yield role, files


def _template(folder: _Folder, made: Any) -> dict[str, Any]:
    """Return whether there is a chat template, and its markers that the tokenizer breaks into pieces."""
    value = folder.text("chat_template.jinja") or folder.settings("tokenizer_config.json").get("chat_template")
    if isinstance(value, list):
        value = " ".join(str(item.get("template")) for item in value if isinstance(item, dict))
    if not isinstance(value, str) or not value:
        return {"present": False, "markers": [], "broken": []}
    markers = sorted(set(_MARKER.findall(value[:200_000])))[:40]
    # [INST] of Llama 2 is ordinary text by design.
    broken = [
        marker
        for marker in markers
        if not marker.startswith("[") and len(made.encode(marker, add_special_tokens=False).ids) != 1
    ]
    return {"present": True, "markers": markers, "broken": broken}


_EMBEDDINGS = (
    *("embed_tokens.weight", "word_embeddings.weight", "wte.weight", "tok_embeddings.weight", "embed_in.weight"),
    *("shared.weight", "token_embedding.weight"),
)
