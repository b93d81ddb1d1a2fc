"""Patterns of messages as patterns of lines: no match is lost, and what may be missing is not waited for."""

from __future__ import annotations

import re

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from rca.ingest.logs.loosening import ENDS, STARTS, loosen
from rca.ingest.logs.prefixes import PrefixParser
from rca.ingest.logs.timestamps import Clock
from rca.ingest.registry import AFTER_METRICS, BLOCKS
from rca.ingest.training_metrics import TRIGGERS
from rca.rules.load import load

PREFIXES = (
    "",
    "0: ",
    "node7: [5] ",
    "[rank3]: ",
    "[rank12]:[2026-03-01 10:00:00,123] ",
    "[default3]:",
    "Rank 3 | ",
    "[1,3]<stderr>: ",
    "(EngineCore_DP0 pid=77) ",
    "I0301 10:00:00.123456 1234 file.cpp:12] ",
    "[W301 10:00:00.123456 socket.cpp:12] ",
    "[I socket.cpp:12] ",
    "2026-03-01T10:00:00.123Z ",
    "2026-03-01 10:00:00 UTC ",
    "2026-03-01 10:00:00,123 - train.loop - INFO - ",
    "[2026-03-01 10:00:00,123] [INFO] [logging.py:96:log_dist] ",
    "03/01/2026 10:00:00 AM ",
    "03/01/2026 10:00:00 - INFO - __main__ - ",
    "INFO 03-01 10:00:00 metrics.py:455] ",
    "INFO 03-01 10:00:00 [metrics.py:455] ",
    "Mar  1 10:00:00 node7 app[12]: ",
    "Sun Mar  1 10:00:00 2026 ",
    "Mar  1 10:00:00 2026 ",
    "10:00:00 ",
    "[10:00:00] ",
    "[   12.123456] ",
    "1772359200.123 ",
    "1772359200: ",
    "2026-03-01T10:00:00.123456789+00:00 stdout F ",
    "[INFO|trainer.py:12] 2026-03-01 10:00:00,123 >> ",
    "[ info ]: ",
    "[WARN] ",
    "INFO:root:",
    "WARNING: ",
    "ERROR    ",
    "DEBUG\t",
    "2026-03-01 10:00:00 | INFO     | app.train:main:12 - ",
)


_PIECES = st.sampled_from(
    [
        "a",
        "loss",
        "step",
        r"\d",
        r"\w*",
        "[ab]",
        "^",
        r"\b",
        "$",
        " ",
        r"\s*",
        "x?",
        "[^|]*",
        r"\W{1,3}",
        "nan",
        "no",
        "=",
        "(?:)",
    ]
)


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Sequences, alternatives and repetitions of patterns."""
    alternatives = st.lists(inner, min_size=1, max_size=3).map(lambda items: f"(?:{'|'.join(items)})")
    repeated = st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,3}"])).map(
        lambda item: f"(?:{item[0]}){item[1]}"
    )
    return st.one_of(st.lists(inner, min_size=1, max_size=4).map("".join), alternatives, repeated)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("message", ["Killed", "  lr = 0.1", "loss: 3.1"])
def test_a_message_is_found_behind_any_prefix(prefix: str, message: str) -> None:
    found = PrefixParser(Clock(0)).parse(prefix + message, 1).message
    assert found
    for text in (found, found.strip()):
        exact = loosen(f"^(?:{re2.escape(text)}|-)$")
        if text == found:
            assert re2.search(exact, prefix + message)
    assert not re2.search(loosen("^(?:own|-)$"), "its own")


@pytest.mark.parametrize(
    ("pattern", "loose"),
    [
        ("^Killed$", f"Killed{ENDS}"),
        ("^[a-z]: 3$", f"{STARTS}[a-z]: 3{ENDS}"),
        ("^(?:an|own) end$", f"{STARTS}(?:an|own) end{ENDS}"),
        (r"^\^C", r"\^C"),
        (r"(?i)^\s*(?:\[\w+\] )?config: x", r"(?i)config: x"),
        (r"\b(?:x|inputs?)\w*[ _.]?(?:nan|std)\W(?:inf|nan)\b", r"(?:nan|std)\W(?:inf|nan)\b"),
        (r"^(?:an|own)endings", "endings"),
        (r"\b(?:x|inputs?)nan=inf", "nan=inf"),
        (r"\b(?:x|inputs?) (?:nan|std)", r"\b(?:x|inputs?) (?:nan|std)"),
        (r"a\^b[^$]c$", r"a\^b[^$\n]c" + ENDS),
        (r"[]^]x", r"[]^]x"),
        (r"^\s*foo", "foo"),
        (r"^(?:Error: )?(?:\d+)?Rank", "Rank"),
        (r"(?:(?:^|, )(?:\W|\w+ - )*the end|^done)", "(?:the end|done)"),
        (r"\Afoo(?P<rest>.*)", "foo"),
        (r"foo.*", "foo"),
        (r"foo\.*", r"foo"),
        (r"foo \d{2,6}", r"foo \d{2}"),
        (r"foo (?:a+|b\d{3}c?)", r"foo (?:a|b\d{3})"),
        (r"a.{2,60}b", r"a.{2,}b"),
        (r"(?:^|\s)x", rf"(?:{STARTS}|[ \t\f\v\r])x"),
        (r"a(?:^|\s)x", r"a(?:(?:)|[ \t\f\v\r])x"),
        (r"(?i)é{2}\x{41}[[:alpha:]\]]|\Qa", r"(?i)é{2}\x{41}[[:alpha:]\]]|\Qa"),
        (r"\\$", r"\\" + ENDS),
        (r"a{b|x{1", "a{b|x{1"),
    ],
)
def test_what_is_kept(pattern: str, loose: str) -> None:
    assert loosen(pattern) == loose


def test_every_example_of_the_knowledge_is_found() -> None:
    loose = {signature.id: re2.compile(loosen(signature.pattern)) for signature in load().patterns}
    for signature in load().patterns:
        for text in signature.matches:
            if re2.search(signature.pattern, text):
                assert loose[signature.id].search(text), (signature.id, text)


def test_every_pattern_stays_a_pattern() -> None:
    triggers = [trigger for block in (*BLOCKS, *AFTER_METRICS) for trigger in block.triggers]
    for pattern in (*TRIGGERS, *triggers):
        re2.compile(loosen(pattern))


@given(st.data())
def test_nothing_that_a_pattern_matches_is_lost(data: st.DataObject) -> None:
    pattern = data.draw(st.recursive(_PIECES, _joined, max_leaves=12))
    text = data.draw(st.from_regex(re.compile(pattern), fullmatch=True))
    if "\n" not in text and "\r" not in text and re2.search(pattern, text):
        assert re2.search(f"(?m){loosen(pattern)}", text), (pattern, loosen(pattern), text)
