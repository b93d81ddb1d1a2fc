"""Replaces what must not leave the machine by placeholders that stay the same throughout a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeVar

import re2 as re

from rca.baseline import Difference
from rca.diagnosis import Diagnosis, Redaction, Setting
from rca.redact.every_text import map_text
from rca.redact.places import host_spans, ip_spans, mail_spans, may_name_places, path_spans, user_spans
from rca.redact.secrets import secret_spans
from rca.redact.vocabulary import COMMON_FOLDERS, NO_HOSTS, SHARED_ACCOUNTS

Mode = Literal["default", "strict", "none"]
SECRET = "<secret>"
_Row = TypeVar("_Row", Setting, Difference)


class Redactor:
    """`default` replaces secrets, user names, mail and IP addresses and hosts; `strict` also folders; `none` nothing.

    `hosts` and `users` are names known from elsewhere; they are replaced wherever they stand as whole words. Names
    found in one line (a home directory) are also recognised in later ones. Not for several threads at once.
    """

    def __init__(self, mode: Mode = "default", *, hosts: Iterable[str] = (), users: Iterable[str] = ()) -> None:
        self.mode = mode
        self.counts: dict[str, int] = {}
        """Replacements by kind: secret, mail, ip, host, user, path."""
        self._numbers: dict[str, dict[str, int]] = {}
        self._hosts = _known(hosts, without=NO_HOSTS)
        self._machines = {name.partition(".")[0].lower() for name in self._hosts}
        self._users = _known(users, without=SHARED_ACCOUNTS)
        self._found_users: dict[str, None] = {}
        self._known_patterns: list[tuple[str, Any]] | None = None
        self._text = lru_cache(maxsize=4096)(self._redacted)

    def text(self, text: str, *, addresses: bool = True) -> str:
        """`text` with placeholders; `addresses=False` for versions, which look like IP addresses."""
        if self.mode == "none" or len(text) < 3:
            return text
        result, counts = self._text(text, addresses)
        for kind, amount in counts:
            self.counts[kind] = self.counts.get(kind, 0) + amount
        return result

    def learn(self, text: str) -> None:
        """Remember the user names in `text`, so that they are also replaced outside home directories."""
        if self.mode == "none":
            return
        for start, end in user_spans(text):
            name = text[start:end]
            telling = len(name) >= 4 or (len(name) == 3 and not name.isalpha())
            if telling and name not in self._found_users and name.lower() not in COMMON_FOLDERS:
                self._found_users[name] = None
                self._known_patterns = None
                self._text.cache_clear()

    def _redacted(self, text: str, addresses: bool) -> tuple[str, tuple[tuple[str, int], ...]]:
        self.learn(text)
        counts: list[tuple[str, int]] = []

        def replace(kind: str, spans: Iterable[tuple[int, int]]) -> None:
            nonlocal text
            text, amount = self._replaced(text, kind, sorted(spans))
            if amount:
                counts.append((kind, amount))

        replace("secret", secret_spans(text))
        if may_name_places(text):
            replace("mail", mail_spans(text))
            if addresses:
                replace("ip", ip_spans(text))
            replace("host", host_spans(text))
            replace("user", user_spans(text))
        for kind, pattern in self._known():
            replace(kind, _whole_words(pattern, text))
        if self.mode == "strict":
            replace("path", path_spans(text))
        return text, tuple(counts)

    def _replaced(self, text: str, kind: str, spans: Iterable[tuple[int, int]]) -> tuple[str, int]:
        parts: list[str] = []
        at = amount = 0
        for start, end in spans:
            if start < at or ("<" in text[start:end] and kind not in ("secret", "path")):
                continue
            parts += [text[at:start], SECRET if kind == "secret" else self._placeholder(kind, text[start:end])]
            at = end
            amount += 1
        return ("".join([*parts, text[at:]]), amount) if amount else (text, 0)

    def _placeholder(self, kind: str, value: str) -> str:
        numbers = self._numbers.setdefault(kind, {})
        key = value.lower() if kind in ("host", "mail") else value
        if kind == "host" and key.partition(".")[0] in self._machines:
            key = key.partition(".")[0]
        return f"<{kind}-{numbers.setdefault(key, len(numbers) + 1)}>"

    def _known(self) -> list[tuple[str, Any]]:
        if self._known_patterns is None:
            patterns: list[tuple[str, Any]] = []
            if self._hosts:
                patterns.append(("host", _words(self._hosts, before=r"[^A-Za-z0-9_\-]", after=r"[^A-Za-z0-9_\-]")))
            if self._users:
                patterns.append(("user", _words(self._users, before=r"[^A-Za-z0-9_\-]", after=r"[^A-Za-z0-9_\-]")))
            if self._found_users:
                before = r"(?i:/|\\|~|\b(?:user|username|logname|owner|login|uid)\b[\"']?[=: ]{1,2}[\"']?)"
                patterns.append(("user", _words(list(self._found_users), before=before, after=r"[^A-Za-z0-9_.\-]")))
            self._known_patterns = patterns
        return self._known_patterns


def _known(names: Iterable[str], *, without: frozenset[str]) -> list[str]:
    """Names long enough to be names, longest first, so that a full host name wins over its first part."""
    wanted = {name.strip() for name in names}
    short = {name.split(".")[0] for name in wanted if not name.replace(".", "").isdigit()}
    usable = {
        n for n in wanted | short if len(n) >= 3 and n.lower() not in without and not n.isdigit() and "<" not in n
    }
    return sorted(usable, key=lambda name: (-len(name), name))


def _words(names: list[str], *, before: str, after: str) -> Any:
    alternatives = "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
    start = before if before.startswith("(?i") else f"(?:^|{before})"
    return re.compile(f"{start}({alternatives})(?:$|{after})")


def _whole_words(pattern: Any, text: str) -> Iterator[tuple[int, int]]:
    """Every occurrence; the search goes on at the end of the name, as one separator may serve two names."""
    at = 0
    while match := pattern.search(text, at):
        yield match.span(1)
        at = match.end(1)


def redact_diagnosis(
    diagnosis: Diagnosis, *, mode: Mode = "default", hosts: Iterable[str] = (), users: Iterable[str] = ()
) -> Diagnosis:
    """The diagnosis with every text redacted and the counts of what was replaced.

    Hosts that the run names itself (`run.hosts`, the node of the failure) are replaced as well.
    """
    if mode == "none":
        return diagnosis.model_copy(update={"redaction": Redaction(mode=mode)})
    failed = [diagnosis.failure.host] if diagnosis.failure is not None and diagnosis.failure.host else []
    redactor = Redactor(mode, hosts=[*hosts, *diagnosis.run.hosts, *failed], users=users)
    map_text(diagnosis, _told_to(redactor))
    redacted = map_text(_without_packages(diagnosis), redactor.text)
    update: dict[str, Any] = {"settings": _with_packages(redacted.settings, diagnosis.settings, redactor)}
    if redacted.baseline is not None and diagnosis.baseline is not None:
        differences = _with_packages(redacted.baseline.differences, diagnosis.baseline.differences, redactor)
        update["baseline"] = redacted.baseline.model_copy(update={"differences": differences})
    counts = dict(sorted(redactor.counts.items()))
    return redacted.model_copy(update={**update, "redaction": Redaction(mode=mode, counts=counts)})


def _without_packages(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis without its lists of packages, whose versions look like IP addresses."""
    update: dict[str, Any] = {"settings": tuple(item for item in diagnosis.settings if item.group != "packages")}
    if diagnosis.baseline is not None:
        kept = tuple(item for item in diagnosis.baseline.differences if item.group != "packages")
        update["baseline"] = diagnosis.baseline.model_copy(update={"differences": kept})
    return diagnosis.model_copy(update=update)


def _with_packages(redacted: Sequence[_Row], original: Sequence[_Row], redactor: Redactor) -> tuple[_Row, ...]:
    """The redacted rows with those of packages back in their places."""
    others = iter(redacted)
    return tuple(_package(row, redactor) if row.group == "packages" else next(others) for row in original)


def _package(row: _Row, redactor: Redactor) -> _Row:
    fields = ((name, getattr(row, name)) for name in ("value", "baseline", "source"))
    return row.model_copy(update={name: redactor.text(text, addresses=False) for name, text in fields if text})


def _told_to(redactor: Redactor) -> Callable[[str], str]:
    def learn(text: str) -> str:
        redactor.learn(text)
        return text

    return learn
