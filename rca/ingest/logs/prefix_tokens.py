"""The parts that prefixes are made of, and the times among them."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from rca.ingest.logs.timestamps import Stamp, clock, month_number

_TIME = r"(?P<{0}h>\d\d):(?P<{0}m>\d\d):(?P<{0}s>\d\d)(?:[.,:](?P<{0}f>\d{{1,9}}))?"
_ZONE = r"(?: ?(?P<{0}z>Z|UTC|[+-]\d\d:?\d\d))?"
_LEVEL_WORD = r"TRACE|DEBUG|VERBOSE|INFO|NOTICE|SUCCESS|WARN(?:ING)?|ERROR|CRITICAL|FATAL"
_FILE = r"[\w./<>+-]{1,120}\.(?:py|pyx|cc|cpp|cu|cuh|c|h|hpp|rs|go|js):\d{1,6}"
_UPPER, _LOWER, _DIGITS = string.ascii_uppercase, string.ascii_lowercase, string.digits
_LETTERS = _UPPER + _LOWER + "_"


class Token(NamedTuple):
    """One kind of part: what it looks like, what it can start with, and where in a prefix it may stand."""

    name: str
    pattern: str
    starts: str = ""
    """Characters it may start with."""
    bracketed: str = ""
    """Characters that may follow where it starts with `[`."""
    first: bool = True
    """May open a prefix; the others only continue one."""


_TOKENS = (
    Token("priority", r"<\d{1,3}>(?:1 (?=(?:19|20)\d\d-))?(?=\d|[A-Z][a-z]{2} |\[)", starts="<"),
    Token(
        "facility",
        r"(?:kern|user|daemon|auth|syslog|authpriv|local\d) {0,4}:"
        r"(?:emerg|alert|crit|err|warn|notice|info|debug) {0,3}: ",
        starts="kudasl",
    ),
    Token("tag", r"\[[A-Za-z_][\w.-]{0,30}\] ?(?=\[?(?:19|20)\d\d[-/])", bracketed=_LETTERS),
    Token(
        "rank",
        r"\[(?:rank|Rank |RANK[:= ]|global_rank[:= ]?|GLOBAL_RANK[:= ]?)(?P<rank>\d{1,6})\](?:: ?| |(?=\[))",
        bracketed="rRgG",
    ),
    Token("local", r"\[default(?P<local>\d{1,6})\]:", bracketed="d"),
    Token("rankword", r"(?:rank|Rank|RANK)[ =:_]{0,2}(?P<rankword>\d{1,6})(?:\]|:(?= )| ?\|| - )[ ]?", starts="rR"),
    Token("mpi", r"\[\d{1,6},(?P<mpi>\d{1,6})\]<std(?:out|err)>: ?", bracketed=_DIGITS),
    Token(
        "process",
        r"\((?P<who>[A-Za-z][\w.:-]{0,60}) (?P<about>(?:[a-z_]{1,20}=[^ ,)]{1,60}[, ]{0,2}){1,5})\) ?",
        starts="(",
    ),
    Token(
        "glog",
        r"\[?(?P<gl>[DIWEFVC])(?P<gd>\d{3,4}) "
        + _TIME.format("g")
        + r"(?: +\d{1,20})?(?: (?P<gfile>[^\s\]]{1,160}))?\] ?",
        starts="DIWEFVC",
        bracketed="DIWEFVC",
    ),
    Token("oldglog", r"\[(?P<ol>[IWEF]) [\w./-]{1,120}:\d{1,6}\] ?", bracketed="IWEF"),
    Token(
        "iso",
        r"[\[(]?(?P<iy>(?:19|20)\d\d)[-/.](?P<io>\d\d)[-/.](?P<id>\d\d)[T _]{1,2}"
        + _TIME.format("i")
        + _ZONE.format("i")
        + r"[\])]?"
        # What the journal and syslog put behind the time: the host, and the kernel or a program with its pid.
        + r"(?:(?<=Z|\d) (?P<jhost>[A-Za-z][\w.-]{1,60}) (?:kernel|[\w./@:-]{1,40}\[\d{1,8}\]): )?",
        starts="(12",
        bracketed="12",
    ),
    Token(
        "us",
        r"\[?(?P<uo>\d\d)/(?P<ud>\d\d)/(?P<uy>(?:19|20)\d\d),? " + _TIME.format("u") + r"(?: (?P<up>AM|PM))?\]?",
        starts="0123",
        bracketed="0123",
    ),
    Token("short", r"\[?(?P<so>\d\d)[-/](?P<sd>\d\d) " + _TIME.format("s") + r"\]?", starts="01", bracketed="01"),
    Token(
        "named",
        r"\[?(?:[A-Z][a-z]{2} )?(?P<no>[A-Z][a-z]{2}) {1,2}(?P<nd>\d{1,2}) "
        + _TIME.format("n")
        + r"(?: (?:[A-Z]{3,4} )?(?P<ny>(?:19|20)\d\d))?\]?"
        + r"(?: (?P<host>[A-Za-z][\w.-]{1,60}) [\w./-]{1,40}(?:\[\d{1,8}\])?: )?",
        starts="JFMASONDTW",
        bracketed="JFMASONDTW",
    ),
    Token("clock", r"[\[(]?" + _TIME.format("c") + r"[\])]?(?=[ \t|:\]-]|$)", starts="(012", bracketed="012"),
    Token("uptime", r"\[ {0,7}\d{1,10}\.\d{6}\] ", bracketed=" " + _DIGITS),
    Token("epoch", r"\[?(?P<es>1[0-9]{9})(?:\.(?P<ef>\d{1,9}))?\]?[ :|]", starts="1", bracketed="1"),
    Token("cri", r"(?:stdout|stderr) [FP] ", starts="s"),
    Token("hflevel", r"\[(?P<hl>" + _LEVEL_WORD + r")\|[^\]\n]{1,80}\] ?", bracketed=_UPPER),
    Token("onnx", r"\[(?P<xl>[VIWEF]):onnxruntime:[^\]]{0,160}\] ?", bracketed="VIWEF"),
    Token(
        "level",
        r"\[ {0,2}(?P<bl>(?:" + _LEVEL_WORD + r")|(?:debug|info|notice|warn|warning|error|fatal)) {0,4}\]:? ?",
        bracketed=" " + _LETTERS,
    ),
    Token("basic", r"(?P<al>" + _LEVEL_WORD + r"):[A-Za-z_][\w.]{0,80}:(?=\S)", starts="TDVINSWECF"),
    Token("word", r"(?P<wl>" + _LEVEL_WORD + r")(?=[ :|\t\]-]|$)[ \t]{0,6}:?[ ]?", starts="TDVINSWECF"),
    Token(
        "separator",
        r"(?:[ \t]{1,8}|[ \t]{0,4}(?:>>|::|[|:>]|-(?= ))[ \t]{1,4})",
        starts=" \t>:|-",
        first=False,
    ),
    Token(
        "pid",
        r"\[(?:PID:? ?|pid=?|[A-Z][a-z]{0,12}Process-?)\d{1,8}\](?=[ :\[])[ :]?|\[\d{1,8}\] (?=\[ {0,2}[A-Z])",
        bracketed=_DIGITS + "pP" + _UPPER,
        first=False,
    ),
    Token(
        "file",
        r"\[?" + _FILE + r"(?::[\w<>.]{1,60})?(?:\]| ?-|:| >>)[ ]?",
        starts=_LETTERS + _DIGITS + "./<",
        bracketed=_LETTERS + _DIGITS + "./<",
        first=False,
    ),
    Token("logger", r"\[[A-Za-z_][\w.]{1,60}(?::\d{1,6})?\] ?(?=\S)", bracketed=_LETTERS, first=False),
    Token(
        "name",
        r"(?P<logger>[A-Za-z_][\w.]{1,60})(?::[\w<>]{1,60}:\d{1,6})?(?: - | \| |: (?![\d\[-]))",
        starts=_LETTERS,
        first=False,
    ),
)
_PATTERNS = {token.name: re.compile(token.pattern) for token in _TOKENS}

LEVEL_GROUPS = {
    "glog": "gl",
    "oldglog": "ol",
    "hflevel": "hl",
    "onnx": "xl",
    "level": "bl",
    "word": "wl",
    "basic": "al",
}
RANK_GROUPS = {"rank": "rank", "local": "local", "rankword": "rankword", "mpi": "mpi"}
LABELS = {
    "task": re.compile(r" {0,5}(?P<label>\d{1,6}):(?: |$)"),
    "node": re.compile(r"(?P<host>[A-Za-z][\w.-]{0,60}): \[(?P<noderank>\d{1,6})\] "),
}
"""What every line of a source may start with: the task number of `srun --label`, a host and a rank."""


def token_at(text: str, position: int, *, first: bool) -> re.Match[str] | None:
    """Return the token at a position; its name is `lastgroup` without `t_`."""
    char = text[position : position + 1]
    pattern = _choices(text[position : position + 2] if char == "[" else char, first)
    return None if pattern is None else pattern.match(text, position)


def token_pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of one kind of token."""
    return _PATTERNS[name]


@lru_cache(maxsize=1024)
def _choices(start: str, first: bool) -> re.Pattern[str] | None:
    if start[:1] == "[":
        fitting = [token for token in _TOKENS if start[1:] and start[1:] in token.bracketed]
    else:
        fitting = [token for token in _TOKENS if start and start in token.starts]
    kept = [token for token in fitting if token.first or not first]
    return re.compile("|".join(f"(?P<t_{token.name}>{token.pattern})" for token in kept)) if kept else None


def _stamp(year: str | None, month: int | None, day: int | None, micros: int | None) -> Stamp | None:
    return None if micros is None else Stamp(int(year) if year else None, month, day, micros)


def _iso(found: re.Match[str]) -> Stamp | None:
    return _stamp(found["iy"], int(found["io"]), int(found["id"]), clock(*found.group("ih", "im", "is", "if", "iz")))


def _us(found: re.Match[str]) -> Stamp | None:
    micros = clock(*found.group("uh", "um", "us", "uf"))
    if micros is not None and found["up"]:
        noon = 12 * 3_600_000_000
        micros = micros % noon + (noon if found["up"] == "PM" else 0)
    return _stamp(found["uy"], int(found["uo"]), int(found["ud"]), micros)


def _short(found: re.Match[str]) -> Stamp | None:
    return _stamp(None, int(found["so"]), int(found["sd"]), clock(*found.group("sh", "sm", "ss", "sf")))


def _named(found: re.Match[str]) -> Stamp | None:
    month = month_number(found["no"])
    micros = clock(*found.group("nh", "nm", "ns", "nf"))
    return None if month is None else _stamp(found["ny"], month, int(found["nd"]), micros)


def _glog(found: re.Match[str]) -> Stamp | None:
    digits = found["gd"]
    return _stamp(None, int(digits[:-2]), int(digits[-2:]), clock(*found.group("gh", "gm", "gs", "gf")))


def _of_day(found: re.Match[str]) -> Stamp | None:
    return _stamp(None, None, None, clock(*found.group("ch", "cm", "cs", "cf")))


def _epoch(found: re.Match[str]) -> Stamp | None:
    return Stamp(1970, 1, 1, int(found["es"]) * 1_000_000 + int((found["ef"] or "0")[:6].ljust(6, "0")))


STAMPS: dict[str, Callable[[re.Match[str]], Stamp | None]] = {
    "iso": _iso,
    "us": _us,
    "short": _short,
    "named": _named,
    "glog": _glog,
    "clock": _of_day,
    "epoch": _epoch,
}
"""How the tokens that are times are read."""
