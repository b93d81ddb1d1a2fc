"""Known causes whose texts share rare words with a line: a hint where to read, never a probability."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from rca import cache
from rca.rules.load import Knowledge, conditions, walk
from rca.rules.schema import Cause, Signature

LEAST = 0.12
"""Cosine below which a text is not named: two ordinary words in common give about as much."""
MOST = 5
"""Causes named."""
PER_SIGNATURE = 2
"""Causes named because of one signature; many ask for the common ones."""
TERMS = 6
"""Shared words named of each, the rarest first."""
ORDINARY = 0.15
"""Share of the texts from which a word says nothing about any of them."""
_MADE = 2
"""Number of the way in which the index is made; a new one leaves stored ones aside."""
_WORD = re.compile(r"[^\W\d_][\w]{2,60}")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_OUTCOMES = frozenset({"none", "unknown"})
_PLACEHOLDER = re.compile(r"\{[a-zA-Z0-9_.]{1,80}\}")


class Document(NamedTuple):
    """What is written about one cause, or about one signature."""

    cause: str
    """Empty for a signature that no cause asks for."""
    signature: str
    """Empty for the text of a cause."""
    text: str


class Index(msgspec.Struct, frozen=True):
    """TF-IDF of all documents, by term."""

    rarity: dict[str, float]
    """Inverse document frequency."""
    weights: list[dict[str, float]]
    """One document each, of length 1."""


class Likeness(NamedTuple):
    """One known cause or signature that a line resembles."""

    cause: str
    signature: str
    similarity: float
    """Cosine, 0 to 1."""
    shared: tuple[str, ...]
    """Words of the line that it shares, most telling first."""
    line: int
    """Index of the line."""


def documents(knowledge: Knowledge) -> list[Document]:
    """Return a text for every cause and every signature."""
    found = [Document(cause.id, "", _of_cause(cause)) for cause in _causes(knowledge)]
    owners: dict[str, list[str]] = {}
    for cause in _causes(knowledge):
        asked = (condition.signature for rule in cause.evidence for condition in walk(rule))
        for name in dict.fromkeys(name for name in asked if name is not None):
            owners.setdefault(name, []).append(cause.id)
    for signature in knowledge.signatures.values():
        text = _of_signature(signature)
        found += [Document(owner, signature.id, text) for owner in owners.get(signature.id, [""])]
    return found


def index_of(documents: Sequence[Document]) -> Index:
    """Return the index, from the cache of the user where it was made before: scikit-learn takes seconds to start."""
    made_of = repr((_MADE, [document.text for document in documents]))
    name = f"resembles-{hashlib.sha256(made_of.encode()).hexdigest()[:32]}.msgpack"
    stored = cache.read(name)
    if stored is not None:
        try:
            return msgspec.msgpack.decode(stored, type=Index)
        except msgspec.DecodeError:
            pass
    index = _made(documents)
    cache.write(name, msgspec.msgpack.encode(index))
    return index


def resembling(lines: Sequence[str], documents: Sequence[Document], index: Index) -> tuple[Likeness, ...]:
    """Return the causes that the lines resemble, the most similar first, each with the line and the words it shares."""
    best: dict[str, Likeness] = {}
    own: dict[str, float] = {}
    for number, line in enumerate(lines):
        vector, surface = _vector(line, index)
        for document, weights in zip(documents, index.weights, strict=True):
            parts = {term: weight * weights[term] for term, weight in vector.items() if term in weights}
            similarity = sum(parts.values())
            if not document.signature:
                own[document.cause] = max(similarity, own.get(document.cause, 0.0))
            key = document.cause or document.signature
            if similarity < LEAST or len(parts) < 2 or (key in best and best[key].similarity >= similarity):
                continue
            telling = sorted(parts, key=lambda term: (-parts[term], term))[:TERMS]
            shared = tuple(dict.fromkeys(surface[term] for term in telling))
            best[key] = Likeness(document.cause, document.signature, round(similarity, 3), shared, number)
    # Of causes that ask for the same signature, the one whose own text is nearer comes first.
    ranked = sorted(best.values(), key=lambda item: (-item.similarity, -own.get(item.cause, 0.0), item.cause))
    return tuple(_varied(ranked))[:MOST]


def _varied(ranked: Iterable[Likeness]) -> Iterator[Likeness]:
    named: dict[str, int] = {}
    for item in ranked:
        named[item.signature] = named.get(item.signature, 0) + 1
        if not item.signature or named[item.signature] <= PER_SIGNATURE:
            yield item


def _made(documents: Sequence[Document]) -> Index:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

    def analyzed(text: str) -> list[str]:
        return [stem for stem, word in terms(text) if word not in ENGLISH_STOP_WORDS]

    if not any(analyzed(document.text) for document in documents):
        return Index(rarity={}, weights=[{} for _ in documents])
    vectorizer = TfidfVectorizer(analyzer=analyzed, sublinear_tf=True, max_df=ORDINARY if len(documents) >= 20 else 1.0)
    matrix = vectorizer.fit_transform([document.text for document in documents]).tocsr()
    names = [str(name) for name in vectorizer.get_feature_names_out()]
    weights = []
    for row in range(matrix.shape[0]):
        span = slice(matrix.indptr[row], matrix.indptr[row + 1])
        pairs = zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True)
        weights.append({names[column]: value for column, value in pairs})
    return Index(rarity=dict(zip(names, vectorizer.idf_.tolist(), strict=True)), weights=weights)


def _vector(text: str, index: Index) -> tuple[Mapping[str, float], Mapping[str, str]]:
    """Return the line as the index would hold it, and the word behind each term.

    Words that no document has weigh half as much as the rarest: a line of which little is known resembles nothing much.
    """
    counts: dict[str, int] = {}
    surface: dict[str, str] = {}
    for stem, word in terms(text):
        counts[stem] = counts.get(stem, 0) + 1
        surface.setdefault(stem, word)
    unheard = max(index.rarity.values(), default=1.0) / 2
    raw = {term: (1 + math.log(count)) * index.rarity.get(term, unheard) for term, count in counts.items()}
    length = math.sqrt(sum(weight * weight for weight in raw.values())) or 1.0
    return {term: weight / length for term, weight in raw.items() if term in index.rarity}, surface


def terms(text: str) -> Iterator[tuple[str, str]]:
    """Yield (stem, word) of every word; names made of several words are split as well."""
    for found in _WORD.findall(text[:100_000]):
        parts = [part for piece in found.split("_") for part in _PART.findall(piece)] or [found]
        if len(parts) > 1:
            yield found.lower(), found.lower()
        for part in parts:
            word = part.lower()
            if len(word) > 2:
                yield _stem(word), word


def _stem(word: str) -> str:
    """Cut the endings that tell one form of an English word from another."""
    for ending in ("ations", "ation", "ings", "ing", "ies", "ied", "ers", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def _causes(knowledge: Knowledge) -> Iterable[Cause]:
    return (cause for cause in knowledge.causes.values() if cause.id not in _OUTCOMES)


def _of_cause(cause: Cause) -> str:
    parts = [cause.id.replace(".", " "), cause.title, cause.title, cause.sentence, cause.summary]
    parts += [rule.says for rule in cause.evidence]
    parts += [condition.exception or "" for condition in conditions(cause)]
    return _PLACEHOLDER.sub(" ", " ".join(parts))


def _of_signature(signature: Signature) -> str:
    named = signature.id.replace(".", " ").replace("_", " ")
    return _PLACEHOLDER.sub(" ", " ".join([named, signature.says, *signature.matches]))
