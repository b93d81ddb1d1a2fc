"""The structure of a pattern in RE2 syntax: alternatives, sequences, repetitions, and what is written at each place."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

_ESCAPE = re.compile(r"\\(?:x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|[pP](?:\{\^?\w+\}|\w)|[0-7]{2,3}|Q.*?(?:\\E|$)|.)", re.S)
_CLASS = re.compile(r"\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]", re.S)
_COUNTED = re.compile(r"\{(\d+)(,?)(\d*)\}")
_GROUP = re.compile(r"\((?:\?(?:P?<\w+>|(?P<flags>[a-zA-Z-]*)(?P<end>[:)])))?")
_ANCHORS = frozenset({r"\A", r"\z", r"\Z", r"\b", r"\B", "^", "$"})
_LETTERS = {r"\t": "\t"}


class Atom(NamedTuple):
    """One letter, class, dot, anchor or setting of flags, as it is written."""

    text: str
    letter: str = ""
    """The letter that it stands for; of either case where `caseless`. Empty for all else."""
    caseless: bool = False

    @property
    def empty(self) -> bool:
        """Whether it takes no letter: an anchor or flags."""
        return self.text in _ANCHORS or self.text.startswith("(?")


class Group(NamedTuple):
    """Alternatives in parentheses, or those of the whole pattern."""

    opening: str
    alternatives: tuple[tuple[Node, ...], ...]


class Repeat(NamedTuple):
    """Something as often as is written behind it."""

    item: Node
    low: int
    high: int | None


Node = Atom | Group | Repeat


def parse(pattern: str) -> Group:
    """Return the structure of a pattern that RE2 accepts."""
    tree, _ = _alternatives(pattern, 0, opening="", caseless=False)
    return tree


def written(node: Node, atom: Callable[[Atom], str] = lambda item: item.text) -> str:
    """Return a structure as a pattern; `atom` writes the single letters, classes and anchors."""
    if isinstance(node, Atom):
        return atom(node)
    if isinstance(node, Repeat):
        inner = written(node.item, atom)
        if isinstance(node.item, Repeat) or (isinstance(node.item, Atom) and inner != node.item.text):
            inner = f"(?:{inner})"
        return inner + _times(node.low, node.high)
    body = "|".join("".join(written(item, atom) for item in items) for items in node.alternatives)
    return f"{node.opening}{body})" if node.opening else body


def _times(low: int, high: int | None) -> str:
    short = {(0, None): "*", (1, None): "+", (0, 1): "?", (1, 1): ""}.get((low, high))
    if short is not None:
        return short
    return f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"


def _alternatives(text: str, at: int, *, opening: str, caseless: bool) -> tuple[Group, int]:
    done: list[tuple[Node, ...]] = []
    items: list[Node] = []
    while at < len(text) and text[at] != ")":
        char = text[at]
        if char == "|":
            done.append(tuple(items))
            items, at = [], at + 1
            continue
        if char == "(":
            found = _GROUP.match(text, at)
            flags = (found["flags"] or "") if found else ""
            inside = ("i" in flags.split("-")[0]) or (caseless and "i" not in flags.partition("-")[2])
            end = found.end() if found else at + 1
            if found and found["end"] == ")":
                items.append(Atom(found[0]))
                caseless, at = inside, end
                continue
            group, at = _alternatives(text, end, opening=text[at:end], caseless=inside)
            items.append(group)
            at += 1
        elif char in "*+?{" and items and (times := _repeat(text, at)) is not None:
            low, high, at = times
            items.append(Repeat(items.pop(), low, high))
        else:
            item, at = _atom(text, at, caseless=caseless)
            items.append(item)
    return Group(opening, (*done, tuple(items))), at


def _repeat(text: str, at: int) -> tuple[int, int | None, int] | None:
    if text[at] == "{":
        found = _COUNTED.match(text, at)
        if found is None:
            return None
        low, end = int(found[1]), found.end()
        high = low if not found[2] else int(found[3]) if found[3] else None
    else:
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[text[at]]
        end = at + 1
    return low, high, end + (text[end : end + 1] == "?")


def _atom(text: str, at: int, *, caseless: bool) -> tuple[Atom, int]:
    char = text[at]
    if char == "\\":
        found = _ESCAPE.match(text, at)
        whole = found[0] if found else text[at:]
        plain = len(whole) == 2 and not whole[1].isalnum()
        letter = whole[1] if plain else _LETTERS.get(whole, "")
        return Atom(whole, letter, caseless), at + len(whole)
    if char == "[":
        found = _CLASS.match(text, at)
        whole = found[0] if found else text[at:]
        return _class(whole, caseless=caseless), at + len(whole)
    return Atom(char, "" if char in ".^$" else char, caseless), at + 1


def _class(text: str, *, caseless: bool) -> Atom:
    """A class of one letter, or of both cases of one, stands for that letter."""
    inner = text[1:-1]
    if len(inner) == 1 and inner != "^":
        return Atom(text, inner, caseless)
    if len(inner) == 2 and inner[0] != inner[1] and inner[0].lower() == inner[1].lower():
        return Atom(text, inner[0], caseless=True)
    return Atom(text)
