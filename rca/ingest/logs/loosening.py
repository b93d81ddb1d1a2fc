"""Patterns of messages made into patterns of whole lines, which report as seldom as they can.

A message begins behind the prefix of its line, so `^` becomes "where a line starts or a prefix may end". What may stand
behind the last thing that a pattern must have is dropped: it would only be reported again for every further letter. So
is what may stand in front of the first, with the anchor before it: an engine that tries it begins anew at every letter.
"""

from __future__ import annotations

from rca.ingest.logs.pattern_tree import Atom, Group, Node, Repeat, parse, written

_FEW = 4
"""Counted repetitions up to this many are cheap to compile."""
_WORD = 3
"""Letters that engines look for at no cost; fewer are everywhere."""
_KEPT = 2
"""Classes that must be left of a start for those before it to go."""
STARTS = r"(?:(?:^|\r|[\])>|:-])[ \t]*|(?:[.,:]\d+|\b20\d\d|1\d{9}|\dZ|[A-Z]{2}| [FP]|\t)[ \t]+)"
"""What stands in front of a message (see `prefix_tokens`): nothing, a bracket or sign, a time, a level."""
ENDS = r"(?:$|\r)"
_BLANKS = frozenset({" ", r"\s", r"[ \t]", r"\t"})
_STARTS, _ENDS = frozenset({"^", r"\A"}), frozenset({"$", r"\z", r"\Z"})


def loosen(pattern: str) -> str:
    """Return the pattern that finds every line whose message `pattern` matches, and perhaps some more.

    Its `^` and `$` mean the ends of lines.
    """
    kept = (_trimmed(_placed(_begun(_cut(_begun(items))), first=True)) for items in parse(pattern).alternatives)
    return written(Group("", tuple(tuple(map(_inline, items)) for items in kept)))


def _begun(items: tuple[Node, ...]) -> tuple[Node, ...]:
    """Drop what may be missing at the start, with what anchors it; blanks at a start are part of the anchor.

    So goes an anchor in front of letters enough, and a word of few letters in front of more: no engine finds a line
    faster than by its letters.
    """
    if items and isinstance(items[0], Atom) and items[0].text.startswith("(?"):
        return (items[0], *_begun(items[1:]))
    if items and isinstance(group := items[0], Group):
        items = (Group(group.opening, tuple(map(_begun, group.alternatives))), *items[1:])
    short = next((place for place, item in enumerate(items) if not (isinstance(item, Atom) and item.empty)), 0)
    behind = items[short + 1 :]
    if short and isinstance(items[short], Group) and _letters(items[short : short + 1]) < _WORD <= _letters(behind) / 2:
        return _begun(behind)
    if len(items) > 1 and isinstance(items[0], Atom) and items[0].text in _STARTS and _telling(items[1:]):
        return items[1:]
    first = 0
    while first < len(items) and _anchors(items[first]):
        first += 1
    last = first
    while last < len(items) and isinstance(found := items[last], Repeat) and found.low == 0:
        last += 1
    dropped = items[first:last]
    if last == len(items) or not dropped:
        return items
    if all(isinstance(item, Repeat) and isinstance(item.item, Atom) and item.item.text in _BLANKS for item in dropped):
        return _begun(items[:first] + items[last:])
    return _begun(items[last:])


def _cut(items: tuple[Node, ...]) -> tuple[Node, ...]:
    """Cut a start of any length, `[A-Z]\\w{2,}=`, to its shortest, which stands in all others; classes before it go.

    They stay where little more than they would be left.
    """
    flags = items[:1] if items and isinstance(items[0], Atom) and items[0].text.startswith("(?") else ()
    first = len(flags)
    while first < len(items) and isinstance(item := items[first], Atom) and not item.letter and not item.empty:
        first += 1
    if first + 1 >= len(items) or not isinstance(start := items[first], Repeat) or start.high == start.low:
        return items
    if not isinstance(start.item, Atom) or start.item.letter or (first > len(flags) and start.low < _KEPT):
        return items
    shortest = (Repeat(start.item, start.low, start.low),) if start.low else ()
    return (*flags, *shortest, *items[first + 1 :])


def _letters(items: tuple[Node, ...], *, leading: bool = False) -> int:
    """Return how many letters a sequence surely holds, or surely starts with."""
    count = 0
    for item in items:
        if isinstance(item, Group):
            whole = min(_letters(alternative, leading=leading) for alternative in item.alternatives)
        elif isinstance(item, Repeat):
            whole = item.low * _letters((item.item,), leading=leading)
        else:
            whole = len(item.letter)
        count += whole
        if leading and not (isinstance(item, Atom) and item.letter):
            break
    return count


def _telling(items: tuple[Node, ...]) -> bool:
    """Whether a sequence is found by its letters alone: it starts with some, or is nothing else."""
    return _letters(items, leading=True) >= _WORD or all(isinstance(item, Atom) and item.letter for item in items)


def _anchors(node: Node) -> bool:
    """Whether a node is where something starts: an anchor, flags, or alternatives of which one is an anchor alone."""
    if isinstance(node, Group):
        return any(len(items) > 0 and all(map(_anchors, items)) for items in node.alternatives)
    return isinstance(node, Atom) and node.empty and not node.text.startswith("(?")


def _inline(node: Node) -> Node:
    """Keep a pattern within its line: what takes a blank or "all but" takes no line end."""
    if isinstance(node, Group):
        return Group(node.opening, tuple(tuple(map(_inline, items)) for items in node.alternatives))
    if isinstance(node, Repeat):
        return node._replace(item=_inline(node.item))
    if node.text == r"\s":
        return Atom(r"[ \t\f\v\r]")
    return Atom(node.text[:-1] + r"\n]") if node.text.startswith("[^") and r"\n" not in node.text else node


def _placed(items: tuple[Node, ...], *, first: bool) -> tuple[Node, ...]:
    """Write anchors as they hold for lines; one that letters stand in front of is dropped, few engines know such."""
    placed: list[Node] = []
    for item in items:
        if isinstance(item, Group):
            inner = (_placed(alternative, first=first) for alternative in item.alternatives)
            placed.append(Group(item.opening, tuple(inner)))
        elif isinstance(item, Repeat):
            placed.append(item._replace(item=_placed((item.item,), first=False)[0]))
        elif item.text in _STARTS:
            placed.append(Atom(STARTS if first else "(?:)"))
        else:
            placed.append(Atom(ENDS) if item.text in _ENDS else item)
        first = first and isinstance(item, Atom) and item.empty
    return tuple(placed)


def _trimmed(items: tuple[Node, ...]) -> tuple[Node, ...]:
    """Drop what may be missing at the end, and make long counts open."""
    kept = list(items)
    while kept:
        last = kept.pop()
        if isinstance(last, Repeat):
            if last.low == 0:
                continue
            if last.low == 1:
                kept.append(last.item)
                continue
            last = Repeat(last.item, last.low, last.low)
        elif isinstance(last, Group):
            inner = tuple(_trimmed(alternative) for alternative in last.alternatives)
            if not all(inner):
                continue
            last = Group(last.opening, inner)
        kept.append(last)
        break
    return tuple(_opened(item) for item in kept)


def _opened(node: Node) -> Node:
    """A long counted repetition is dear to compile and a line is short: any length will do here."""
    if isinstance(node, Group):
        return Group(node.opening, tuple(tuple(map(_opened, items)) for items in node.alternatives))
    if isinstance(node, Repeat):
        long = node.high is not None and node.high > _FEW and node.high > node.low
        return Repeat(_opened(node.item), node.low, None if long else node.high)
    return node
