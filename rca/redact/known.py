"""Names and secrets that are known, and where they stand again.

They are looked up word by word: an expression of thousands of hosts or secrets would be larger than the text.
"""

from __future__ import annotations

import re as bounded
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rca.redact import hosts as host_names
from rca.redact import people
from rca.redact.vocabulary import NO_HOSTS, SHARED_ACCOUNTS

_MOST_SECRETS = 5000
_HEAD = 8
"""Characters of a secret by which it is looked up, and that are enough to know it where a text was cut."""
_CUT_FROM = 190
_FEW = 64
"""Names that are faster looked for one by one than word by word."""
_LONG_WORD = bounded.compile(r"\S{8,}")
_WORD = bounded.compile(r"[A-Za-z0-9_\-]{3,}(?:\.[A-Za-z0-9_\-]+)*")
_BEFORE_USER = bounded.compile(
    r"(?i)(?:/|\\|~|(?:^|[^a-z0-9_])(?:user|username|logname|owner|login|uid)[\"']?[=: ]{1,2}[\"']?)$"
)
"""What stands before the name of a user who was found in a home directory."""


_GOES_ON = bounded.compile(r"\.[A-Za-z0-9_\-]")
_WITHIN_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class Span(NamedTuple):
    """A known name in a text."""

    start: int
    end: int
    kind: str


class Known:
    """What to replace wherever it stands; `anywhere`: users without anything beside them that says so."""

    def __init__(
        self,
        hosts: Iterable[str],
        users: Iterable[str],
        *,
        names: Iterable[str],
        folders: Iterable[str],
        anywhere: bool,
    ) -> None:
        self._anywhere = anywhere
        self._words: dict[str, dict[str, str]] = {}
        """First part of a name -> name -> kind."""
        self._secrets: dict[str, list[str]] = {}
        """Head -> secrets, the longest first."""
        self._amount = 0
        self._phrases = {name: "name" for name in names if len(name) >= 4}
        self._phrases |= {folder: "path" for folder in folders if len(folder) >= 2}
        self._secret_phrases: list[str] = []
        self._machines: dict[str, str] = {}
        given = _usable(hosts, without=NO_HOSTS, short=True)
        for name in given:
            self._add(name, "host")
            self._join(name)
        for name in _usable(users, without=SHARED_ACCOUNTS):
            self._add(name, "user")

    def machine(self, name: str) -> str:
        """One name for a machine that has a short and a full one, where no other machine shares the short one."""
        short = name.partition(".")[0]
        return short if self._machines.get(short) else name

    def add_secrets(self, found: Iterable[str]) -> bool:
        """Whether one of them was new and so particular that it can be replaced everywhere."""
        new = False
        for word in found:
            if self._amount >= _MOST_SECRETS or not _is_telling(word):
                continue
            places = self._secret_phrases if _has_space(word) else self._secrets.setdefault(word[:_HEAD], [])
            if word not in places:
                places.append(word)
                places.sort(key=len, reverse=True)
                self._amount += 1
                new = True
        return new

    def add_users(self, found: Iterable[str]) -> bool:
        """Whether one of them was new."""
        kind = "user" if self._anywhere else "found user"
        telling = [name for name in found if people.is_telling(name) and "<" not in name]
        return sum(self._add(name, kind) for name in telling) > 0

    def add_hosts(self, found: Iterable[str]) -> bool:
        """Whether one of them was new."""
        new = False
        for name in found:
            if "<" not in name:
                short = name.partition(".")[0]
                telling = [word for word in (name, short) if host_names.is_telling(word)]
                new = sum(self._add(word, "host") for word in telling) > 0 or new
                self._join(name)
        return new

    def secret_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where known secrets stand, also without their end where a text was cut."""
        for phrase in self._secret_phrases:
            at = text.find(phrase)
            while at >= 0:
                yield at, at + len(phrase)
                at = text.find(phrase, at + len(phrase))
        if not self._secrets or (len(self._secrets) <= _FEW and not self._may_hold(text)):
            return
        for match in _LONG_WORD.finditer(text):
            word, start = match.group(), match.start()
            cut = match.end() == len(text) >= _CUT_FROM
            for at in range(len(word) - _HEAD + 1):
                for secret in self._secrets.get(word[at : at + _HEAD], ()):
                    if word.startswith(secret, at) or (cut and secret.startswith(word[at:])):
                        yield start + at, min(match.end(), start + at + len(secret))
                        break

    def _may_hold(self, text: str) -> bool:
        return len(text) >= _CUT_FROM or any(head in text for head in self._secrets)

    def phrases(self, text: str, kind: str) -> list[tuple[int, int]]:
        """Where names of runs (`name`) or folders (`path`) stand, which may hold any letters."""
        known = [phrase for phrase, what in self._phrases.items() if what == kind]
        return [(at, at + len(phrase)) for phrase in known for at in _all(text, phrase)]

    def spans(self, text: str) -> list[Span]:
        """Where known names stand as whole words; users of home directories where a user may be meant."""
        found = [Span(start, end, "path") for start, end in self.phrases(text, "path")]
        if len(self._words) <= _FEW:
            places = ((part, at) for part in self._words for at in _beginnings(text, part))
        else:
            places = (
                (part, match.start() + at)
                for match in _WORD.finditer(text)
                for part, at in _parts(match.group())
                if part in self._words
            )
        for part, at in places:
            found += self._named(text, part, at)
        return found

    def _named(self, text: str, part: str, at: int) -> Iterator[Span]:
        """The longest name that begins with a part and stands there as whole words."""
        for name, kind in self._words[part].items():
            end = at + len(name)
            if not text.startswith(name, at) or text[end : end + 1] in _WITHIN_WORD:
                continue
            if kind != "found user":
                yield Span(at, end, kind)
                return
            if not _GOES_ON.match(text, end) and _BEFORE_USER.search(text[max(0, at - 16) : at]):
                yield Span(at, end, "user")
                return

    def _add(self, name: str, kind: str) -> bool:
        part = name.partition(".")[0]
        if not part:  # .venv is a folder; an empty part would stand everywhere
            return False
        names = self._words.setdefault(part, {})
        if name in names and not (names[name] == "found user" and kind != "found user"):
            return False
        names[name] = kind
        ordered = sorted(names.items(), key=lambda item: -len(item[0]))
        names.clear()
        names.update(ordered)
        return True

    def _join(self, name: str) -> None:
        """Note under which full name a short one was seen; under two, it is no name for either."""
        short, _, domain = name.lower().partition(".")
        if domain and not short.isdigit():
            before = self._machines.setdefault(short, name.lower())
            if before != name.lower():
                self._machines[short] = ""


def _usable(names: Iterable[str], *, without: frozenset[str], short: bool = False) -> list[str]:
    """Names long enough to be names; of a full host name its first part as well."""
    wanted = {name.strip() for name in names}
    if short:
        wanted |= {name.split(".")[0] for name in wanted if not name.replace(".", "").isdigit()}
    return sorted(n for n in wanted if len(n) >= 3 and n.lower() not in without and not n.isdigit() and "<" not in n)


def _is_telling(word: str) -> bool:
    """Whether a secret is no ordinary word, so that it can be replaced wherever it stands."""
    if len(word) < _HEAD or len(word) > 4096 or "<" in word or word.startswith(("/", ".")):
        return False
    digits = sum(c.isdigit() for c in word)
    return not word.isdigit() and (digits >= 2 or (len(word) >= 16 and not word.isalpha()))


def _has_space(word: str) -> bool:
    return any(c.isspace() for c in word)


def _all(text: str, phrase: str) -> Iterator[int]:
    """Where a phrase stands apart from other words."""
    at = text.find(phrase)
    while at >= 0:
        end = at + len(phrase)
        around = (text[at - 1 : at] or " ") + (text[end : end + 1] or " ")
        if not any(c.isalnum() or c in "_-" for c in around):
            yield at
        at = text.find(phrase, end)


def _beginnings(text: str, part: str) -> Iterator[int]:
    """Where a word begins with a part of a name."""
    at = text.find(part)
    while at >= 0:
        if at == 0 or text[at - 1] not in _WITHIN_WORD:
            yield at
        at = text.find(part, at + len(part))


def _parts(word: str) -> Iterator[tuple[str, int]]:
    at = 0
    for part in word.split("."):
        yield part, at
        at += len(part) + 1
