"""Which lines tell of trouble by their words alone, whatever software wrote them and in whatever language."""

from __future__ import annotations

from typing import Literal

import re2

Mark = Literal["exception", "error_word", "hint", ""]
"""How loud a line is: it has the shape of an exception, it says error, it says so as a warning or less, or nothing."""

LOUDNESS: dict[Mark, int] = {"": 0, "hint": 1, "error_word": 2, "exception": 3}

_WORDS = (
    r"\b(?:errors?|errored|fatal|fail(?:s|ed|ing|ures?)?|abort(?:s|ed|ing)?|panic(?:ked)?|exceptions?|crash(?:ed|es)?|"
    r"denied|refused|rejected|unable|cannot|can't|could not|couldn't|did not|won't|no such|not (?:found|allowed|"
    r"permitted|available|supported|enough|responding)|missing|invalid|illegal|unexpected(?:ly)?|mismatch(?:ed)?|"
    r"corrupt(?:ed|ion)?|broken|bad|lost|dead|died|killed|terminated|evicted|revoked|expired|exhausted|exceed(?:s|ed)|"
    r"overflow(?:ed)?|stuck|hung|stalled|timed? ?-?out|unreachable|unhandled|uncaught|critical|emergency|"
    r"terminate called|fehler|fehlgeschlagen|erreur|errore|fallo|falha|hata)\b"
)
_OTHER_LETTERS = (
    "échec|échoué|falló|błąd|Ошибк|ошибк|Сбой|сбой|错误|錯誤|失败|异常|无法|超时|中止|拒绝|"
    "エラー|失敗|例外|異常|오류|실패"
)
"""The same where the edge of a word is none to RE2, which knows those of ASCII."""
_NAMED = r"\b[A-Za-z][A-Za-z0-9_]*(?:Error|Exception|Failure|Fault|Interrupt)\b"
_SIGNALS = r"\bSIG(?:SEGV|ABRT|BUS|KILL|TERM|ILL|FPE|INT|PIPE)\b"

_LETTERS_AS_BYTES = "".join(
    char if char.isascii() else "".join(f"\\x{byte:02x}" for byte in char.encode()) for char in _OTHER_LETTERS
)
TROUBLE = f"(?i:{_WORDS})|{_LETTERS_AS_BYTES}|{_NAMED}|{_SIGNALS}"
"""Pattern of every word above for the bytes of UTF-8 text."""

_TROUBLE = re2.compile(f"(?i:{_WORDS})|{_OTHER_LETTERS}|{_NAMED}|{_SIGNALS}")
_EXCEPTION = re2.compile(
    r"(?:^|[\s\]|>])(?:[A-Za-z_][A-Za-z0-9_]*(?:\.|::))*[A-Z][A-Za-z0-9_]*(?:Error|Exception|Failure|Fault|Interrupt)"
    r"(?::\s|\s*$)|\b(?:FATAL|PANIC|CRITICAL|EMERG(?:ENCY)?)\b|\b(?:fatal|panic)(?: error)?: |terminate called"
    rf"|[Aa]ssertion .{{0,200}}failed|{_SIGNALS}"
)
_QUIET = re2.compile(r"\b(?:WARN(?:ING)?|INFO|DEBUG|NOTICE|TRACE|[Ww]arn(?:ing)?:|\w*Warning:)|^[IWD]\d{4} ")
_HARMLESS = re2.compile(
    r"(?i:\b(?:no|0|zero|without(?: any)?) (?:errors?|failures?|failed)\b"
    r"|\b(?:mean|root|squared?|absolute|relative|training|train|test|validation|val|prediction|reconstruction|word|"
    r"character|top-?[15]|standard)[ _-](?:mean[ _-])?(?:squared?[ _-]|absolute[ _-])?errors?\b"
    r"|\berrors?[ _-](?:rate|bars?|correct(?:ion|ing)|handl(?:er|ing)|budget|toleran(?:ce|t)|file|log|level)\b"
    r"|\b(?:errors?|fail(?:ed|ures?)|missing|invalid|lost|dead|rejected|mismatch(?:ed)?)[\"']?\s{0,3}[=:]\s{0,3}"
    r"[\"']?(?:-?[\d.]+(?:\s*$|\s*[,;|)\]}]|\s+[\w/]+\s?[=:])|none|false|null|\[\])"
    r"|\b(?:on|if|in case of|ignore|skip)[ _](?:errors?|failures?)\b)"
)
"""Phrases in which such a word means nothing bad: measures, settings, counts of zero."""


def mark(text: str) -> Mark:
    """Return how loud a line is."""
    if _TROUBLE.search(text) is None:
        return ""
    if _EXCEPTION.search(text) is not None:
        return "exception"
    if _TROUBLE.search(_HARMLESS.sub(" ", text)) is None:
        return ""
    return "hint" if _QUIET.search(text[:200]) is not None else "error_word"


_FRAME = re2.compile(
    r"Traceback \(most recent call last\)|^.{0,120}\bFile \"[^\"]{1,400}\", line \d+|^\s*[\^~]+\s*$"
    r"|^.{0,80}(?:frame )?#\d+:? .{0,200}(?: in |0x[0-9a-f]|\(\)|\+0x)|^\s+at [\w$.<>]+\("
)
_CODE_BELOW = re2.compile(r"\bFile \"[^\"]{1,400}\", line \d+")


def is_frame(text: str, before: str) -> bool:
    """Say whether a line is a place in a stack, or the source code below one: no message of its own."""
    return _FRAME.search(text) is not None or (_CODE_BELOW.search(before) is not None and bool(text[:1].isspace()))
