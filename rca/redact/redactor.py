"""Replaces what must not leave the machine by placeholders that stay the same throughout a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from rca.redact.addresses import ip_spans, mail_spans
from rca.redact.assignments import is_secret
from rca.redact.folders import path_spans, relative_span
from rca.redact.hints import may_name_places
from rca.redact.hosts import host_spans
from rca.redact.keys import spans_over_lines
from rca.redact.known import Known
from rca.redact.people import user_spans
from rca.redact.secrets import continued_spans, merged, secret_spans

Mode = Literal["default", "strict", "none"]
SECRET = "<secret>"
Span = tuple[int, int]


class _Learned(NamedTuple):
    """What stands in a text by its shape."""

    secrets: Sequence[Span] = ()
    hosts: Sequence[Span] = ()
    users: Sequence[Span] = ()


_NOTHING = _Learned()


class Redactor:
    """`default` replaces secrets, user names, mail and IP addresses and hosts; `strict` also folders; `none` nothing.

    `hosts` and `users` are names known from elsewhere; they are replaced wherever they stand as whole words, and so
    are, when `strict`, `names` (of runs) and `folders`. What is found in one line (a secret, a home directory, a node)
    is also recognised in later ones. Not for several threads at once.
    """

    def __init__(
        self,
        mode: Mode = "default",
        *,
        hosts: Iterable[str] = (),
        users: Iterable[str] = (),
        names: Iterable[str] = (),
        folders: Iterable[str] = (),
    ) -> None:
        self.mode = mode
        self.counts: dict[str, int] = {}
        """Replacements by kind: secret, mail, ip, host, user, name, path."""
        self._numbers: dict[str, dict[str, int]] = {}
        strict = mode == "strict"
        self._known = Known(
            hosts, users, names=names if strict else (), folders=folders if strict else (), anywhere=strict
        )
        self._learned: dict[str, _Learned] = {}
        self._text = lru_cache(maxsize=4096)(self._redacted)

    def text(self, text: str, *, addresses: bool = True) -> str:
        """`text` with placeholders; `addresses=False` for versions, which look like IP addresses."""
        if self.mode == "none" or len(text) < 3:
            return text
        return self._counted(text, (), addresses)

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Lines that follow one another: a key, or a command, may go on from one to the next."""
        if self.mode == "none":
            return list(lines)
        over: dict[int, tuple[Span, ...]] = {n: (span,) for n, span in spans_over_lines(lines).items()}
        for number, span in continued_spans(lines):
            over[number] = (*over.get(number, ()), span)
        return [self._counted(line, over.get(number, ()), True) for number, line in enumerate(lines)]

    def value(self, name: str, value: str) -> str:
        """The value of the setting of that name: it is a secret where the name says so."""
        if self.mode == "none" or not value:
            return value
        if is_secret(name, value):
            self._count((("secret", 1),))
            return SECRET
        return self.text(value)

    def place(self, path: str) -> str:
        """The path of a source, relative to the run."""
        span = relative_span(path) if self.mode == "strict" and "<" not in path else None
        if span is None:
            return self.text(path)
        self._count((("path", 1),))
        return self._placeholder("path", path[span[0] : span[1]]) + self.text(path[span[1] :])

    def learn(self, text: str) -> None:
        """Remember secrets, users and hosts in `text`, so that they are also replaced where nothing betrays them."""
        if self.mode == "none" or len(text) < 3 or text in self._learned:
            return
        secrets = secret_spans(text)
        hosts: tuple[Span, ...] = ()
        users: tuple[Span, ...] = ()
        if may_name_places(text):
            hosts, users = tuple(sorted(self._host_spans(text))), tuple(sorted(user_spans(text)))
        self._learned[text] = found = _Learned(secrets, hosts, users) if secrets or hosts or users else _NOTHING
        new = self._known.add_secrets(text[start:end] for start, end in found.secrets)
        new |= self._known.add_users(text[start:end] for start, end in found.users)
        new |= self._known.add_hosts(text[start:end] for start, end in found.hosts)
        if new:
            self._text.cache_clear()

    def learn_value(self, name: str, value: str) -> None:
        """Remember a secret that only the name of its setting betrays."""
        if self.mode != "none" and is_secret(name, value) and self._known.add_secrets([value]):
            self._text.cache_clear()
        self.learn(value)

    def _counted(self, text: str, spans: tuple[Span, ...], addresses: bool) -> str:
        result, counts = self._text(text, spans, addresses)
        self._count(counts)
        return result

    def _count(self, counts: Iterable[tuple[str, int]]) -> None:
        for kind, amount in counts:
            self.counts[kind] = self.counts.get(kind, 0) + amount

    def _redacted(self, text: str, known: tuple[Span, ...], addresses: bool) -> tuple[str, tuple[tuple[str, int], ...]]:
        self.learn(text)
        learned = self._learned.get(text, _NOTHING)
        original = text
        counts: list[tuple[str, int]] = []

        def replace(kind: str, spans: Iterable[Span]) -> None:
            nonlocal text
            text, amount = self._replaced(text, kind, sorted(spans))
            if amount:
                counts.append((kind, amount))

        if self.mode == "strict":
            replace("name", self._known.phrases(text, "name"))
        secrets = [*learned.secrets, *known] if text is original else secret_spans(text)
        replace("secret", merged([*secrets, *self._known.secret_spans(text)]))
        if may_name_places(text):
            replace("mail", mail_spans(text))
            if addresses:
                replace("ip", ip_spans(text))
            replace("host", learned.hosts if text is original else self._host_spans(text))
            replace("user", learned.users if text is original else user_spans(text))
        known_names = self._known.spans(text)
        before = len(counts)
        for kind in sorted({span.kind for span in known_names}):
            names = known_names if len(counts) == before else self._known.spans(text)
            replace(kind, [(span.start, span.end) for span in names if span.kind == kind])
        if self.mode == "strict":
            replace("path", path_spans(text))
        return text, tuple(counts)

    def _host_spans(self, text: str) -> Iterator[Span]:
        return host_spans(text, everywhere=self.mode == "strict")

    def _replaced(self, text: str, kind: str, spans: Iterable[Span]) -> tuple[str, int]:
        parts: list[str] = []
        at = amount = 0
        for start, end in spans:
            if start < at or text[start:end] == SECRET or ("<" in text[start:end] and kind not in ("secret", "path")):
                continue
            parts += [text[at:start], SECRET if kind == "secret" else self._placeholder(kind, text[start:end])]
            at = end
            amount += 1
        return ("".join([*parts, text[at:]]), amount) if amount else (text, 0)

    def _placeholder(self, kind: str, value: str) -> str:
        numbers = self._numbers.setdefault(kind, {})
        key = value.lower() if kind in ("host", "mail") else value
        if kind == "host":
            key = self._known.machine(key)
        return f"<{kind}-{numbers.setdefault(key, len(numbers) + 1)}>"
