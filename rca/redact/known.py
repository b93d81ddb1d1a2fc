"""Names and secrets that are known, and the expressions that find them again."""

from __future__ import annotations

import re as bounded
from collections.abc import Iterable, Iterator
from typing import Any

import re2 as re

from rca.redact import hosts as host_names
from rca.redact import people
from rca.redact.vocabulary import NO_HOSTS, SHARED_ACCOUNTS

_MOST_SECRETS = 2000
_HEAD = 8
"""Characters of a secret that are enough to know it again where a text was cut."""
_CUT_FROM = 190
_LAST_WORD = re.compile(r"\S+$")
_A_WORD = bounded.compile(r"[^A-Za-z0-9_\-]$")
_A_PATH = bounded.compile(r"[\s\"'`(=:^]$")
_A_USER = bounded.compile(
    r"(?i)(?:/|\\|~|(?:^|[^a-z0-9_])(?:user|username|logname|owner|login|uid)[\"']?[=: ]{1,2}[\"']?)$"
)
"""What stands before a name; `^` for the beginning of the text."""


class Known:
    """What to replace wherever it stands; `anywhere`: users and hosts without anything beside them that says so."""

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
        self._hosts = dict.fromkeys(_usable(hosts, without=NO_HOSTS, short=True))
        self._given_users = _usable(users, without=SHARED_ACCOUNTS)
        self._users: dict[str, None] = {}
        self._secrets: dict[str, None] = {}
        self._names = [name for name in names if len(name) >= 4]
        self._folders = [folder for folder in folders if len(folder) >= 2]
        self._machines: dict[str, str] = {}
        self._patterns: dict[str, tuple[Any, Any]] = {}
        self._secret_pattern: Any = None
        for name in self._hosts:
            self._join(name)

    def machine(self, name: str) -> str:
        """One name for a machine that has a short and a full one, where no other machine shares the short one."""
        short = name.partition(".")[0]
        return short if self._machines.get(short) else name

    def add_secrets(self, found: Iterable[str]) -> bool:
        """Whether one of them was new and so particular that it can be replaced everywhere."""
        new = [word for word in found if word not in self._secrets and _is_telling(word)]
        self._secrets.update(dict.fromkeys(new[: max(0, _MOST_SECRETS - len(self._secrets))]))
        if new:
            self._secret_pattern = None
        return bool(new)

    def add_users(self, found: Iterable[str]) -> bool:
        """Whether one of them was new."""
        new = [name for name in found if name not in self._users and people.is_telling(name) and "<" not in name]
        self._users.update(dict.fromkeys(new))
        return self._changed(bool(new))

    def add_hosts(self, found: Iterable[str]) -> bool:
        """Whether one of them was new."""
        new = [name for name in found if "<" not in name and name not in self._hosts]
        for name in new:
            short = name.partition(".")[0]
            for word in (name, short):
                if host_names.is_telling(word):
                    self._hosts[word] = None
            self._join(name)
        return self._changed(bool(new))

    def secret_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where known secrets stand, also without their end where a text was cut."""
        if not self._secrets:
            return
        if self._secret_pattern is None:
            long, short = ([w for w in self._secrets if (len(w) >= 12) is wanted] for wanted in (True, False))
            parts = [_any(long)] if long else []
            parts += [rf"\b(?:{_any(short)})\b"] if short else []
            self._secret_pattern = re.compile("|".join(parts))
        for match in self._secret_pattern.finditer(text):
            yield match.span()
        last = _LAST_WORD.search(text[-300:]) if len(text) >= _CUT_FROM else None
        if last is not None:
            for word in self._secrets:
                at = last.group().rfind(word[:_HEAD])
                if at >= 0 and word.startswith(last.group()[at:]):
                    yield len(text) - len(last.group()) + at, len(text)

    def spans(self, text: str, kind: str) -> Iterator[tuple[int, int]]:
        """Where known names of a kind stand as whole words; users, unless `anywhere`, where a user may be meant."""
        pattern, before = self._pattern(kind)
        if pattern is not None:
            for match in pattern.finditer(text):
                start = match.start(1)
                if before.search(text[max(0, start - 16) : start] or "^"):
                    yield match.span(1)

    def _pattern(self, kind: str) -> tuple[Any, Any]:
        if kind not in self._patterns:
            words = {
                "host": self._hosts,
                "user": [*self._given_users, *(self._users if self._anywhere else ())],
                "found user": () if self._anywhere else self._users,
                "name": self._names,
                "path": self._folders,
            }[kind]
            after = {"found user": r"[^A-Za-z0-9_.\-]", "path": r"[/\s\"'`):]"}.get(kind, r"[^A-Za-z0-9_\-]")
            pattern = re.compile(f"({_any(words)})(?:$|{after})") if words else None
            self._patterns[kind] = pattern, {"found user": _A_USER, "path": _A_PATH}.get(kind, _A_WORD)
        return self._patterns[kind]

    def _join(self, name: str) -> None:
        """Note under which full name a short one was seen; under two, it is no name for either."""
        short, _, domain = name.lower().partition(".")
        if domain and not short.isdigit():
            before = self._machines.setdefault(short, name.lower())
            if before != name.lower():
                self._machines[short] = ""

    def _changed(self, new: bool) -> bool:
        if new:
            self._patterns.clear()
        return new


def _usable(names: Iterable[str], *, without: frozenset[str], short: bool = False) -> list[str]:
    """Names long enough to be names; of a full host name its first part as well."""
    wanted = {name.strip() for name in names}
    if short:
        wanted |= {name.split(".")[0] for name in wanted if not name.replace(".", "").isdigit()}
    return sorted(n for n in wanted if len(n) >= 3 and n.lower() not in without and not n.isdigit() and "<" not in n)


def _is_telling(word: str) -> bool:
    """Whether a secret is no ordinary word, so that it can be replaced wherever it stands."""
    if len(word) < 8 or len(word) > 2000 or "<" in word or word.startswith(("/", ".")):
        return False
    digits = sum(c.isdigit() for c in word)
    return not word.isdigit() and (digits >= 2 or (len(word) >= 16 and not word.isalpha()))


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))
