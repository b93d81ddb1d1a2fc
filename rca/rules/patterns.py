"""Patterns of rules: RE2 syntax, which is searched in linear time whatever the pattern and the input."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from rca.rules.schema import Condition

_INSTEAD = (
    (("(?=", "(?!"), "look-ahead", "match the words around it, and tell lines apart with `where: {message: ...}`, "
     "`rejects:` or a `not:` condition"),
    (("(?<=", "(?<!"), "look-behind", "match the words before it as well; a named group marks the part that counts"),
    (("(?P=",), "a back-reference", "capture both parts under two names and compare them with `where:`"),
    (("(?>", "++", "*+", "?+"), "an atomic group or possessive repetition", "write it plainly: RE2 never backtracks"),
    (("(?(",), "a conditional group", "write two patterns under `any:`"),
)  # fmt: skip


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Any:
    """Return a compiled RE2 pattern. Raises re2.error, whose reason `refusal` puts into words."""
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def refusal(pattern: str) -> str | None:
    """Return why a pattern is refused and what to write instead, or None when RE2 takes it."""
    import re2

    try:
        compiled(pattern)
    except re2.error as error:
        return _reason(pattern, _text(error))
    return None


def says_nothing(pattern: str) -> str | None:
    """Return a sentence when a pattern matches the empty line: such a pattern is not searched."""
    if refusal(pattern) is not None or compiled(pattern).search("") is None:
        return None
    return f"the pattern {pattern!r} matches the empty line, so it tells nothing and is not searched"


def groups(pattern: str) -> frozenset[str]:
    """Return the names of the captures of a pattern, none for one that is refused."""
    return frozenset() if refusal(pattern) else frozenset(compiled(pattern).groupindex)


def patterns_of(condition: Condition) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of every pattern that stands in a condition itself, not in the ones inside it."""
    if condition.log is not None:
        yield "log", condition.log
    if condition.op == "matches":
        yield "value", str(condition.value)
    for test in condition.where.values():
        if isinstance(test, str) and test.startswith("matches"):
            yield "where", test.removeprefix("matches").strip()


def _reason(pattern: str, found: str) -> str:
    start = f"the pattern {pattern!r} is not RE2 syntax"
    part = "(?P=" if "(?P=" in pattern and found.endswith("(?P") else found
    for signs, name, instead in _INSTEAD:
        if any(sign in part for sign in signs):
            return f"{start}: {name} cannot be searched in linear time; {instead}"
    escape = found.removeprefix("invalid escape sequence: \\")
    if escape != found and escape.isdigit():
        instead = "capture both parts under two names and compare them with `where:`"
        return f"{start}: a back-reference (\\{escape}) cannot be searched in linear time; {instead}"
    if "repetition size" in found:
        return f"{start}: it repeats more than 1000 times; write + or *, or a smaller number"
    return f"{start}: {found}; see https://github.com/google/re2/wiki/Syntax"


def _text(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
