"""The parse tree: what joins, what stays apart, and that its size is bounded."""

import random

from hypothesis import given
from hypothesis import strategies as st

from rca.templates.drain import GROUPS, LEAF, Drain


def test_lines_that_differ_in_a_word_share_a_template() -> None:
    tree = Drain()
    first = tree.add("worker alpha has joined the group")
    second = tree.add("worker alpha has left the group")
    assert first is second
    assert first is not None
    assert first.text == "worker alpha has <*> the group"


def test_lines_of_another_length_or_beginning_stay_apart() -> None:
    tree = Drain()
    numbers = {group.number for line in ("a b c d", "a b c", "x b c d") if (group := tree.add(line))}
    assert numbers == {0, 1, 2}


def test_an_empty_line_has_no_template() -> None:
    assert Drain().add("   ") is None


def test_lines_made_to_differ_fill_a_leaf_and_no_more() -> None:
    tree = Drain()
    chosen = random.Random(0)
    for _ in range(500):
        tree.add("error in module " + " ".join(chosen.choice("abcdefghijklmnopqrstuvwxyz") * 3 for _ in range(9)))
    assert len(tree.groups) == LEAF


def test_the_tree_holds_no_more_groups_than_it_may() -> None:
    tree = Drain()
    for number in range(3 * GROUPS):
        tree.add(f"w{number % 97} v{number % 89} u{number} {'z ' * (number % 11)}")
    assert len(tree.groups) <= GROUPS


@given(st.lists(st.text(), max_size=30))
def test_a_line_fits_the_template_of_its_group(lines: list[str]) -> None:
    tree = Drain()
    for line in lines:
        group = tree.add(line)
        if group is not None:
            words = line.split()
            assert len(words) == len(group.words)
            assert all(ours in ("<*>", theirs) for ours, theirs in zip(group.words, words, strict=True))
