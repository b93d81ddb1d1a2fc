"""Drain: an online log parser with a parse tree of fixed depth.

P. He, J. Zhu, Z. Zheng and M. R. Lyu, "Drain: An Online Log Parsing Approach with Fixed Depth Tree", ICWS 2017.
A line goes down the tree by its number of words and its first words, and joins the most similar group of its leaf, or
founds a new one there. Written here instead of taken from a package after looking at what there is (2026-11): drain3
0.9.11 (2022) pins jsonpickle 1.5.1 and cachetools 4.2.1; its maintained fork drain3-improved 0.10.0 (2026-04) installs
the same import name and needs cachetools 7.0.6 or later, which excludes mlflow 2 and google-auth before 2.41 in the
environment that the job itself trains in; logparser3 1.0.4 pins regex 2022.3.2. None bounds the groups of a leaf, so
lines made to differ cost each a pass over all groups (2 ms a line with 300 groups); here a leaf holds `LEAF` of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

DEPTH = 3
"""First words that lead down the tree."""
SIMILAR = 0.5
"""Share of equal words from which a line joins a group; the paper uses 0.3 to 0.7 depending on the system."""
CHILDREN = 64
"""Branches of one node; further words share the branch of the wildcard."""
LEAF = 32
"""Groups of one leaf."""
GROUPS = 4000
"""Groups of one tree."""
ANY = "<*>"


@dataclass
class Group:
    """Lines that say the same."""

    number: int
    words: list[str]
    """Words that all lines share; `<*>` where they differ."""

    @property
    def text(self) -> str:
        """The template."""
        return " ".join(self.words)


@dataclass
class _Node:
    children: dict[str, _Node] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)


class Drain:
    """The parse tree; its size and the work on one line are bounded."""

    def __init__(self, *, similar: float = SIMILAR) -> None:
        self._similar = similar
        self._root: dict[int, _Node] = {}
        self.groups: list[Group] = []

    def add(self, text: str) -> Group | None:
        """Return the group that a masked line belongs to, or None when it is empty or there is no room for its own."""
        words = text.split()
        if not words:
            return None
        leaf = self._leaf(words)
        best, share = None, -1.0
        for group in leaf.groups:
            alike = _alike(group.words, words)
            if alike > share:
                best, share = group, alike
        if best is not None and share >= self._similar:
            best.words = [ours if ours == theirs else ANY for ours, theirs in zip(best.words, words, strict=True)]
            return best
        if len(leaf.groups) >= LEAF or len(self.groups) >= GROUPS:
            return None
        founded = Group(number=len(self.groups), words=words)
        self.groups.append(founded)
        leaf.groups.append(founded)
        return founded

    def _leaf(self, words: list[str]) -> _Node:
        node = self._root.setdefault(len(words), _Node())
        for word in words[:DEPTH]:
            child = node.children.get(word)
            if child is None:
                key = word if len(node.children) < CHILDREN else ANY
                child = node.children.setdefault(key, _Node())
            node = child
        return node


def _alike(template: list[str], words: list[str]) -> float:
    """Share of equal words; a wildcard of the template equals nothing, as in the paper."""
    return sum(ours == theirs for ours, theirs in zip(template, words, strict=True)) / len(words)
