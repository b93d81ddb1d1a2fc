"""Replaces what must not leave the machine by placeholders that stay the same throughout a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal

import re2 as re

from rca.diagnosis import Diagnosis, Redaction, map_text
from rca.redact.places import host_spans, ip_spans, mail_spans, may_name_places, path_spans, user_spans
from rca.redact.secrets import secret_spans
from rca.redact.vocabulary import COMMON_FOLDERS, NO_HOSTS, SHARED_ACCOUNTS

Mode = Literal["default", "strict", "none"]
SECRET = "<secret>"


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

    Hosts that the run names itself (`run.hosts`) are replaced as well.
    """
    if mode == "none":
        return diagnosis.model_copy(update={"redaction": Redaction(mode=mode)})
    redactor = Redactor(mode, hosts=[*hosts, *diagnosis.run.hosts], users=users)
    map_text(diagnosis, _told_to(redactor))
    packages = [n for n, setting in enumerate(diagnosis.settings) if setting.group == "packages"]
    without = diagnosis.model_copy(update={"settings": tuple(s for s in diagnosis.settings if s.group != "packages")})
    redacted = map_text(without, redactor.text)
    settings = list(redacted.settings)
    for position in packages:
        package = diagnosis.settings[position]
        changed = {field: redactor.text(getattr(package, field), addresses=False) for field in ("value", "source")}
        settings.insert(position, package.model_copy(update=changed))
    counts = dict(sorted(redactor.counts.items()))
    return redacted.model_copy(update={"settings": tuple(settings), "redaction": Redaction(mode=mode, counts=counts)})


def _told_to(redactor: Redactor) -> Callable[[str], str]:
    def learn(text: str) -> str:
        redactor.learn(text)
        return text

    return learn
