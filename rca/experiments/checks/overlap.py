"""How much two sets of samples share: the same bytes, the same words, or most of the same phrases."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rca.experiments.checks.files import MEDIA_SUFFIXES, LeftFile, is_sample_file, listing, opened, shown, side_of
from rca.experiments.checks.sample_formats import Samples
from rca.experiments.checks.sample_groups import SPLIT_COLUMNS, shared_groups
from rca.experiments.checks.samples import MAX_ALTOGETHER, read_samples

SHINGLE = 5
"""Words of a phrase; shorter ones are shared by texts that have nothing to do with each other."""
NEAR = 0.7
"""Jaccard similarity of phrases from which two texts are near duplicates."""
MOST_NEAR = 20_000
"""Samples of each side that are compared phrase by phrase."""
_COMMON = 50
"""A phrase that stands in more training texts than this (a template) identifies none of them."""
_SHORT = 20
"""Characters below which equal texts prove nothing."""
_LEFT_OUT = frozenset(
    {"split", "subset", "partition", "id", "idx", "index", "uid", "guid", "sample_id", "fold", "unnamed: 0"}
)
_HASHES = frozenset({"md5", "sha1", "sha256", "hash", "phash", "image_hash", "content_hash", "checksum"})
_PLACES = frozenset(
    {"path", "image_path", "file", "file_path", "filename", "file_name", "url", "uri", "audio_path", "wav"}
)
"""Columns that say where a sample lies; other places can hold the same sample."""
_PLAIN = re.compile(r"[^\w]+")
_MEDIA = (*MEDIA_SUFFIXES, ".dcm", ".mp4", ".txt")
_LEAST = 4


class Sample(NamedTuple):
    """One sample as it is compared."""

    place: str
    """File and row."""
    exact: bytes
    plain: bytes
    """Hash of its words without case, punctuation and spacing."""
    words: str
    """Text for phrases; empty where there is none."""
    telling: bool
    """Long enough that an equal one is no chance."""


def measure(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the held-out samples below `root` with those of the training."""
    root = Path(settings["root"])
    reading = read_samples(root, named=settings["named"])
    sides: dict[str, list[Sample]] = {"train": [], "held out": []}
    files: dict[str, Counter[str]] = {"train": Counter(), "held out": Counter()}
    whole = not reading.unread
    for table in reading.tables:
        for side, sample in _sided(table):
            sides[side].append(sample)
            files[side][table.file] += 1
        whole = whole and table.whole
    if not sides["train"] or not sides["held out"]:
        whole = _media(root, sides, files)
    train, held = sides["train"], sides["held out"]
    found: dict[str, Any] = {
        "files": {side: dict(counts.most_common(6)) for side, counts in files.items()},
        "train": len(train),
        "held_out": len(held),
        "whole": whole,
        "groups": [list(item) for item in shared_groups(reading.tables)],
        "places_only": any(
            {name.lower() for name in compared_columns(list(table.columns))} <= _PLACES for table in reading.tables
        ),
    }
    if len(train) < _LEAST or len(held) < _LEAST:
        return found
    return found | _compared(train, held)


def _sided(table: Samples) -> Iterator[tuple[str, Sample]]:
    splits = next((name for name in table.columns if name.lower() in SPLIT_COLUMNS), None)
    named = side_of(table.file)
    if splits is None and named is None:
        return
    kept = compared_columns(list(table.columns))
    for row in range(table.rows):
        side = named if splits is None else side_of(str(table.columns[splits][row]))
        if side is not None:
            yield side, _sample(f"{table.file}, row {table.number(row)}", [table.columns[name][row] for name in kept])


def compared_columns(names: Sequence[str]) -> list[str]:
    """Return the columns that make a sample: a hash of its content, else its content, else its place."""
    hashes = [name for name in names if name.lower() in _HASHES]
    rest = [name for name in names if name.lower() not in _LEFT_OUT]
    return hashes or [name for name in rest if name.lower() not in _PLACES] or rest


def _sample(place: str, values: Sequence[Any]) -> Sample:
    parts, words = [], []
    size = 0
    for value in values:
        if isinstance(value, np.ndarray):
            parts.append(value.tobytes())
            size += value.size
        elif isinstance(value, str):
            parts.append(value.encode("utf-8", "replace"))
            words.append(value)
        else:
            text = json.dumps(value, sort_keys=True, default=str)
            parts.append(text.encode())
            if isinstance(value, (list, dict)):
                words += _texts(value)
            size += len(value) if isinstance(value, (list, dict)) else 1
    joined = " ".join(words)
    plain = _PLAIN.sub(" ", joined.lower()).strip()
    exact = _hash(b"\x00".join(parts))
    return Sample(place, exact, _hash(plain.encode("utf-8", "replace")) if plain else exact, plain,
                  len(plain) >= _SHORT or (not plain and size >= 4))  # fmt: skip


def _texts(value: Any, depth: int = 0) -> list[str]:
    if isinstance(value, str):
        return [value]
    if depth < 6 and isinstance(value, (list, dict)):
        parts = value.values() if isinstance(value, dict) else value
        return [text for part in parts for text in _texts(part, depth + 1)]
    return []


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _media(root: Path, sides: dict[str, list[Sample]], files: dict[str, Counter[str]]) -> bool:
    """Add files (images, sound, texts) that lie in folders named after a split; return whether all were read."""
    budget = MAX_ALTOGETHER
    whole = True
    for file in listing(root).files:
        folder = file.path.rpartition("/")[0]
        side = side_of(folder)
        if (
            side is None
            or not file.path.lower().endswith(_MEDIA)
            or is_sample_file(file.path, named=True)
            or not file.size
        ):
            continue
        if file.size > budget:
            whole = False
            continue
        budget -= file.size
        digest = _file_hash(root, file)
        if digest:
            sides[side].append(Sample(shown(file.path), digest, digest, "", True))
            files[side][shown(folder)] += 1
    return whole


def _file_hash(root: Path, file: LeftFile) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    try:
        with opened(root, file.path) as stream:
            while piece := stream.read(1 << 20):
                digest.update(piece)
    except OSError:
        return b""
    return digest.digest()


def _compared(train: Sequence[Sample], held: Sequence[Sample]) -> dict[str, Any]:
    by_exact: dict[bytes, Sample] = {}
    by_plain: dict[bytes, Sample] = {}
    for sample in train:
        by_exact.setdefault(sample.exact, sample)
        by_plain.setdefault(sample.plain, sample)
    telling = [sample for sample in held if sample.telling]
    exact = [(sample, by_exact[sample.exact]) for sample in telling if sample.exact in by_exact]
    plain = [
        (sample, by_plain[sample.plain])
        for sample in telling
        if sample.exact not in by_exact and sample.plain in by_plain
    ]
    same = {id(sample) for sample, _other in [*exact, *plain]}
    rest = [sample for sample in telling if id(sample) not in same and sample.words]
    near = _near(train, rest)
    known = min(sum(bool(sample.words) for sample in train), MOST_NEAR)
    repeats = Counter(sample.plain for sample in train if sample.telling)
    count = sum(repeats.values())
    return {
        "telling": len(telling),
        "exact": len(exact),
        "plain": len(plain),
        "near": len(near),
        "pairs": [[one.place, other.place] for one, other in [*exact, *plain][:6]],
        "near_pairs": [[one.place, other.place, round(score, 2)] for one, other, score in near[:6]],
        "train_repeats": sum(number - 1 for number in repeats.values()) / count if count else 0.0,
        "compared_near": min(len(rest), MOST_NEAR) if known else 0,
        "known_near": known,
    }


def _near(train: Sequence[Sample], rest: Sequence[Sample]) -> list[tuple[Sample, Sample, float]]:
    """Return held-out samples with a training sample that has most of their phrases; exact Jaccard, no sketch."""
    texts = [sample for sample in train if sample.words][:MOST_NEAR]
    asked = list(rest[:MOST_NEAR])
    if not texts or not asked:
        return []
    from sklearn.feature_extraction.text import HashingVectorizer

    phrases = HashingVectorizer(
        ngram_range=(SHINGLE, SHINGLE),
        token_pattern=r"\S+",
        n_features=2**22,
        binary=True,
        norm=None,
        alternate_sign=False,
        lowercase=False,
        dtype=np.float32,
    )
    known = phrases.transform([sample.words[:20_000] for sample in texts]).tocsc()
    wanted = phrases.transform([sample.words[:20_000] for sample in asked]).tocsc()
    common = np.diff(known.indptr) > _COMMON
    for matrix in (known, wanted):
        matrix.data[np.repeat(common, np.diff(matrix.indptr))] = 0
        matrix.eliminate_zeros()
    wanted = wanted.tocsr()
    sizes = np.asarray(known.sum(axis=1)).ravel()
    shared = (wanted @ known.T.tocsc()).tocsr()
    found = []
    for place, sample in enumerate(asked):
        row = shared.getrow(place)
        if row.nnz:
            own = wanted.indptr[place + 1] - wanted.indptr[place]
            scores = row.data / (own + sizes[row.indices] - row.data)
            best = int(np.argmax(scores))
            if scores[best] >= NEAR:
                found.append((sample, texts[row.indices[best]], float(scores[best])))
    return found
