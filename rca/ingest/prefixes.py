"""What loggers and launchers put in front of a message: ranks, times, levels, names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rca.ingest.document import Prefix
from rca.ingest.timestamps import Clock, Stamp, clock, month_number

ANSI = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Colours, cursor movements and titles of terminals."""

_LEVELS = {
    "trace": "debug",
    "debug": "debug",
    "verbose": "debug",
    "info": "info",
    "notice": "info",
    "success": "info",
    "warn": "warning",
    "warning": "warning",
    "error": "error",
    "err": "error",
    "critical": "fatal",
    "fatal": "fatal",
}
_GLOG = {"D": "debug", "V": "debug", "I": "info", "W": "warning", "E": "error", "F": "fatal", "C": "fatal"}

_TIME = r"(?P<{0}h>\d\d):(?P<{0}m>\d\d):(?P<{0}s>\d\d)(?:[.,:](?P<{0}f>\d{{1,9}}))?"
_ZONE = r"(?: ?(?P<{0}z>Z|UTC|[+-]\d\d:?\d\d))?"
_LEVEL_WORD = r"TRACE|DEBUG|VERBOSE|INFO|NOTICE|SUCCESS|WARN(?:ING)?|ERROR|CRITICAL|FATAL"
_FILE = r"[\w./<>+-]{1,120}\.(?:py|pyx|cc|cpp|cu|cuh|c|h|hpp|rs|go|js):\d{1,6}"

_TOKENS = (
    (
        "rank",
        r"\[(?:default|rank|Rank |RANK[:= ]|global_rank[:= ]?|GLOBAL_RANK[:= ]?)(?P<rank>\d{1,6})\](?:: ?| |(?=\[))",
    ),
    ("rankword", r"(?:rank|Rank|RANK)[ =:_]{0,2}(?P<rankword>\d{1,6})(?:\]|:(?= )| ?\|| - )[ ]?"),
    ("mpi", r"\[\d{1,6},(?P<mpi>\d{1,6})\]<std(?:out|err)>: ?"),
    ("process", r"\((?P<who>[A-Za-z][\w.:-]{0,60}) (?P<about>(?:[a-z_]{1,20}=[^ ,)]{1,60}[, ]{0,2}){1,5})\) ?"),
    (
        "glog",
        r"\[?(?P<gl>[DIWEFVC])(?P<gd>\d{3,4}) "
        + _TIME.format("g")
        + r"(?: +\d{1,20})?(?: (?P<gfile>[^\s\]]{1,160}))?\] ?",
    ),
    ("oldglog", r"\[(?P<ol>[IWEF]) [\w./-]{1,120}:\d{1,6}\] ?"),
    (
        "iso",
        r"[\[(]?(?P<iy>(?:19|20)\d\d)[-/.](?P<io>\d\d)[-/.](?P<id>\d\d)[T _]{1,2}"
        + _TIME.format("i")
        + _ZONE.format("i")
        + r"[\])]?",
    ),
    ("us", r"\[?(?P<uo>\d\d)/(?P<ud>\d\d)/(?P<uy>(?:19|20)\d\d),? " + _TIME.format("u") + r"(?: (?P<up>AM|PM))?\]?"),
    ("short", r"\[?(?P<so>\d\d)[-/](?P<sd>\d\d) " + _TIME.format("s") + r"\]?"),
    (
        "named",
        r"\[?(?:[A-Z][a-z]{2} )?(?P<no>[A-Z][a-z]{2}) {1,2}(?P<nd>\d{1,2}) "
        + _TIME.format("n")
        + r"(?: (?:[A-Z]{3,4} )?(?P<ny>(?:19|20)\d\d))?\]?"
        + r"(?: (?P<host>[A-Za-z][\w.-]{1,60}) [\w./-]{1,40}(?:\[\d{1,8}\])?: )?",
    ),
    ("clock", r"[\[(]?" + _TIME.format("c") + r"[\])]?(?=[ \t|:\]-]|$)"),
    ("uptime", r"\[ {0,7}\d{1,10}\.\d{6}\] "),
    ("epoch", r"\[?(?P<es>1[0-9]{9})(?:\.(?P<ef>\d{1,9}))?\]?[ :|]"),
    ("cri", r"(?:stdout|stderr) [FP] "),
    ("hflevel", r"\[(?P<hl>" + _LEVEL_WORD + r")\|[^\]\n]{1,80}\] ?"),
    ("onnx", r"\[(?P<xl>[VIWEF]):onnxruntime:[^\]]{0,160}\] ?"),
    ("level", r"\[ {0,2}(?P<bl>(?:" + _LEVEL_WORD + r")|(?:debug|info|notice|warn|warning|error|fatal)) {0,4}\]:? ?"),
    ("basic", r"(?P<al>" + _LEVEL_WORD + r"):[A-Za-z_][\w.]{0,80}:(?=\S)"),
    ("word", r"(?P<wl>" + _LEVEL_WORD + r")(?=[ :|\t\]-]|$)[ \t]{0,6}:?[ ]?"),
)
_AFTER = (
    ("separator", r"(?:[ \t]{1,8}|[ \t]{0,4}(?:>>|::|[|:>]|-(?= ))[ \t]{1,4})"),
    ("pid", r"\[(?:PID:? ?|pid=?|[A-Z][a-z]{0,12}Process-?)?\d{1,8}\](?=[ :\[])[ :]?"),
    ("file", r"\[?" + _FILE + r"(?::[\w<>.]{1,60})?(?:\]| ?-|:| >>)[ ]?"),
    ("logger", r"\[[A-Za-z_][\w.]{1,60}(?::\d{1,6})?\] ?(?=\S)"),
    ("name", r"(?P<logger>[A-Za-z_][\w.]{1,60})(?::[\w<>]{1,60}:\d{1,6})?(?: - | \| |: (?![\d\[-]))"),
)
_TAG = ("tag", r"\[[A-Za-z_][\w.-]{0,30}\] ?(?=\[?(?:19|20)\d\d[-/])")
_HOST_RANK = ("node", r"(?P<host>[A-Za-z][\w.-]{0,60}): \[(?P<noderank>\d{1,6})\] ")
_LABEL = ("label", r" {0,5}(?P<label>\d{1,6}): ?")


def _compile(*tokens: tuple[str, str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<t_{name}>{pattern})" for name, pattern in tokens))


_START = _compile(_TAG, *_TOKENS)
_NEXT = _compile(*_TOKENS, *_AFTER)
_LABELLED = _compile(_LABEL)
_NODE = _compile(_HOST_RANK)
_WORKER = re.compile(r"(?:_TP|_DP|_PP|_EP|rank=|_rank)(\d{1,6})")
_INNER_RANK = re.compile(r"\[[^\]\n]{0,60}\b(?:Rank|RANK|rank)[ =:](\d{1,6})\]|^[Rr]ank[ =](\d{1,6})[: ]")
_NO_LOGGER = ("Error", "Exception", "Warning", "Interrupt", "Exit", "Killed")


class PrefixParser:
    """Takes the prefixes of one source apart.

    `labelled` says that every line starts with the number of its task (`srun --label`), which single lines cannot show.
    """

    def __init__(self, clock_: Clock, *, labelled: bool = False) -> None:
        self._clock = clock_
        self._labelled = labelled

    def parse(self, text: str, line: int) -> Prefix:
        """Return the message of one line without colours, and what stood in front of it."""
        position = 0
        rank: int | None = None
        host: str | None = None
        time: int | None = None
        level: str | None = None
        if self._labelled:
            found = _LABELLED.match(text)
            if found:
                rank, position = int(found["label"]), found.end()
        found = _NODE.match(text, position)
        if found:
            host, rank, position = found["host"], int(found["noderank"]), found.end()
        pattern = _START
        names = 0
        blank = was_rank = False
        before = position
        for _ in range(14):
            found = pattern.match(text, position)
            if found is None or found.end() == position:
                break
            kind = (found.lastgroup or "")[2:]
            if kind == "name":
                if (level is None and time is None) or names or found["logger"].endswith(_NO_LOGGER):
                    break
                names += 1
            blank = kind == "separator" and found[0].isspace()
            if blank:
                before = position + (0 if was_rank or text[position - 1 : position] in {"", " "} else 1)
            was_rank = kind in _RANKS
            position = found.end()
            pattern = _NEXT
            if was_rank:
                if rank is None or kind == "rank":
                    rank = int(found[_RANKS[kind]])
            elif kind == "process":
                inner = _WORKER.search(found[0])
                rank = rank if inner is None else int(inner[1])
            elif kind in _LEVEL_GROUPS:
                level = level or _level(found[_LEVEL_GROUPS[kind]])
            if kind == "named":
                host = host or found["host"]
            if kind in _STAMPS and time is None:
                stamp = _STAMPS[kind](found)
                time = None if stamp is None else self._clock.resolve(stamp, line)
        # Blanks between two parts of a prefix belong to it; blanks in front of the message are its indentation.
        message = text[before if blank else position :] if position else text
        if rank is None:
            inner = _INNER_RANK.search(message, 0, 80)
            rank = None if inner is None else int(inner[1] or inner[2])
        return Prefix(message=message, rank=rank, host=host, time=time, level=level)


def strip_colours(text: str) -> str:
    """Return the text without colours, cursor movements and other orders to a terminal."""
    return ANSI.sub("", text) if "\x1b" in text else text


def labelled(lines: Sequence[str]) -> bool:
    """Say whether the lines start with task numbers (`0: `), as `srun --label` writes them."""
    filled = [line for line in lines if line.strip()]
    if len(filled) < 3:
        return False
    return sum(_LABELLED.match(line) is not None for line in filled) >= 0.9 * len(filled)


def _level(word: str) -> str | None:
    return _GLOG.get(word) if len(word) == 1 else _LEVELS.get(word.lower())


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


_STAMPS = {
    "iso": _iso,
    "us": _us,
    "short": _short,
    "named": _named,
    "glog": _glog,
    "clock": _of_day,
    "epoch": _epoch,
}
_RANKS = {"rank": "rank", "rankword": "rankword", "mpi": "mpi"}
_LEVEL_GROUPS = {
    "glog": "gl",
    "oldglog": "ol",
    "hflevel": "hl",
    "onnx": "xl",
    "level": "bl",
    "word": "wl",
    "basic": "al",
}
