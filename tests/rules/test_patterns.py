"""Patterns outside RE2 are refused where they stand, with the reason and what to write instead."""

from __future__ import annotations

import time

import pytest

from rca.errors import KnowledgeError
from rca.rules.load import load
from rca.rules.patterns import compiled, groups, refusal

CAUSE = """\
id: acme.lease
title: T
sentence: S.
summary: S.
prior: 0.01
evidence:
  - id: message
    {condition}
    weight: 4
    says: S.
"""


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("lost(?! again)", "look-ahead cannot be searched in linear time; match the words around it"),
        ("(?<=lease )lost", "look-behind cannot be searched in linear time; match the words before it"),
        (r"(a)\1", r"a back-reference (\1) cannot be searched in linear time; capture both parts"),
        ("(?P<x>a)(?P=x)", "a back-reference cannot be searched in linear time"),
        ("a++", "an atomic group or possessive repetition cannot be searched in linear time"),
        ("(?>a)b", "an atomic group or possessive repetition"),
        ("a{2000}", "it repeats more than 1000 times; write + or *"),
        ("(lost", "missing ): (lost"),
    ],
)
def test_a_refused_pattern_says_why_and_what_instead(pattern, sentence) -> None:
    assert sentence in (refusal(pattern) or "")
    assert groups(pattern) == frozenset()


def test_a_pattern_of_re2_is_taken() -> None:
    assert refusal(r"(?i)lease (?P<node>\w+) lost") is None
    assert groups(r"(?i)lease (?P<node>\w+) lost") == {"node"}


@pytest.mark.parametrize(
    ("condition", "line"),
    [
        ("log: 'lost(?! again)'", 8),
        ("any: [{log: a}, {log: 'lost(?! again)'}]", 8),
        ("config: x\n    op: matches\n    value: '(?<=a)b'", 10),
        ("exception: KeyError\n    where: {message: 'matches (a)\\1'}", 9),
    ],
)
def test_a_team_rule_outside_re2_is_refused_before_anything_is_searched(tmp_path, condition, line) -> None:
    file = tmp_path / "lease.yaml"
    file.write_text(CAUSE.format(condition=condition))
    with pytest.raises(KnowledgeError, match="cannot be searched in linear time") as caught:
        load([tmp_path], builtin=False)
    assert (caught.value.file, caught.value.line) == (file, line)


def test_a_team_signature_outside_re2_is_refused(tmp_path) -> None:
    (tmp_path / "acme.yaml").write_text(
        "emitter: acme\nsignatures:\n  - {id: acme.x, pattern: '(?=x)', matches: [x]}\n"
    )
    with pytest.raises(KnowledgeError, match=r"acme\.yaml:3: .*look-ahead"):
        load([tmp_path], builtin=False)


def test_the_pattern_that_ruins_backtracking_engines_takes_linear_time() -> None:
    pattern = compiled("^(a+)+$|(x+x+)+y")
    times = []
    for length in (20_000, 200_000):
        text = "a" * length + "!" + "x" * length
        start = time.perf_counter()
        assert pattern.search(text) is None
        times.append(time.perf_counter() - start)
    assert times[1] < 100 * times[0] + 0.5
