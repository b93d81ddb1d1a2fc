"""Hyperscan and its fallback find the same lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from rca.ingest.logs import scanner as module
from rca.ingest.logs.loosening import loosen
from rca.ingest.logs.pattern_database import bytewise, parts
from rca.ingest.logs.scanner import Tally, scanner_for

PATTERNS = (
    r"CUDA out of memory\. Tried to allocate (?P<tried>[\d.]+ \wiB)",
    r"^(?:Killed|Ok)$",
    r"a.{0,9}z.*",
    r"[é]tat",
    r"(?i)nan",
)


@pytest.fixture(params=["hyperscan", "re2"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if request.param == "re2":

        def missing(*_: object) -> None:
            raise ImportError("no hyperscan")

        monkeypatch.setattr(module, "_HyperscanScanner", missing)
    else:
        pytest.importorskip("hyperscan")
    return request.param


def lines(
    patterns: tuple[str, ...], text: bytes, counted: dict[int, Tally] | None = None
) -> list[tuple[bytes, set[int]]]:
    return [(text[hit.start : hit.end], set(hit.patterns)) for hit in scanner_for(patterns).hits(text, counted or {})]


def test_every_line_is_found_once_with_all_its_patterns(engine: str) -> None:
    said = (
        "x",
        "CUDA out of memory. Tried to allocate 2.50 GiB nan",
        "",
        "Killed\r",
        "a--z!!",
        "l'état",
        "last Killed",
    )
    text = "\n".join((*said, "last Killed", "[rank3]: Killed")).encode()
    assert lines(PATTERNS, text) == [
        (b"CUDA out of memory. Tried to allocate 2.50 GiB nan", {0, 4}),
        (b"Killed", {1}),
        (b"a--z!!", {2}),
        ("l'état".encode(), {3}),
        (b"[rank3]: Killed", {1}),
    ]


def test_states_of_a_rewritten_line_are_lines(engine: str) -> None:
    assert lines((r"\d+%",), b" 1%\r 2%\rdone\r\n 3%") == [(b" 1%", {0}), (b" 2%", {0}), (b" 3%", {0})]


def test_what_is_only_counted_is_not_yielded(engine: str) -> None:
    tallies = {0: Tally()}
    text = b"GET 200\nGET 200\nstep\nGET 200"
    assert lines((r"GET \d+", "step"), text, tallies) == [(b"step", {1})]
    assert tallies[0].count == 3
    assert tallies[0].last > text.rindex(b"\n")


def test_a_pattern_that_matches_nothing_at_all_is_left_out(engine: str) -> None:
    assert lines((r"^\s*$", "x"), b"a\n\nx\n") == [(b"x", {1})]


@pytest.mark.parametrize("block", [1, 64, 1 << 20])
@pytest.mark.parametrize("reports", [1, 10, 400_000])
def test_blocks_of_any_size_give_the_same_lines(
    engine: str, monkeypatch: pytest.MonkeyPatch, block: int, reports: int
) -> None:
    text = b"".join(b"step %d\r%d%% lost step\n" % (number, number) for number in range(300)) + b"step at the end"
    patterns = (r"step \d", "tep", "lost", "end")
    expected, whole = lines(patterns, text), Tally()
    lines(patterns, text, {2: whole})
    monkeypatch.setattr(module, "_BLOCK", block)
    monkeypatch.setattr(module, "_REPORTS", reports)
    counted = Tally()
    assert lines(patterns, text) == expected
    lines(patterns, text, {2: counted})
    assert counted.count == whole.count


def test_the_cache_is_used_checked_and_never_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("hyperscan")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    expected = lines(("step \\d",), b"step 1")
    (stored,) = (tmp_path / "rca").iterdir()
    assert lines(("step \\d",), b"step 1") == expected
    for broken in (b"", b"junk", stored.read_bytes()[:-3], b"\0" * 64):
        stored.write_bytes(broken)
        assert lines(("step \\d",), b"step 1") == expected
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").write_text("in the way")
    assert lines(("step \\d",), b"step 1") == expected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([b"Killed", b"a12z", b"NaN", b"", b"\xff\xfe", "é".encode(), b"x" * 50]), max_size=30),
    st.sampled_from([b"\n", b"\r", b"\r\n"]),
)
def test_both_scanners_agree(pieces: list[bytes], end: bytes) -> None:
    pytest.importorskip("hyperscan")
    text = end.join(pieces)
    fast = [(hit.start, hit.end, hit.above, hit.patterns) for hit in scanner_for(PATTERNS).hits(text, {})]
    loose = [loosen(pattern) for pattern in PATTERNS]
    slow = module._SetScanner(loose, [i for i, p in enumerate(loose) if re2.search(p, "") is None])
    assert fast == [(hit.start, hit.end, hit.above, hit.patterns) for hit in slow.hits(text, {})]
    for start, stop, above, _ in fast:
        assert not re.search(rb"[\r\n]", text[start:stop])
        assert above == text.count(b"\n", 0, start)


@pytest.mark.parametrize("count", [3, 45, 46, 200])
def test_a_pattern_of_many_words_is_searched_in_parts(count: int) -> None:
    words = [f"word{number}x?" for number in range(count)]
    pattern = rf"(?i)\b(?P<key>{'|'.join(words)})[:=] ?(?P<value>\d|-)"
    found = parts(pattern)
    assert len(found) == -(-count // 45)
    texts = [f"a {word[:-2]}={number % 10}" for number, word in enumerate(words)] + ["a word1+3", "key=3"]
    for text in texts:
        assert any(re.search(part, text) for part in found) == bool(re.search(pattern, text))


@pytest.mark.parametrize("pattern", ["a|b", "a" * 90, "(?:" + "|".join("a" * 90) + ")|b", "a(?:b|c){3}", ""])
def test_other_patterns_stay_whole(pattern: str) -> None:
    assert parts(pattern) == [pattern]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"[é]tat", "l'état"),
        (r"[\s|┃│║]*loss[\s|┃│║]+\d", "┃ loss ┃│ 3"),
        (r"━{3}x", "━━━x"),
        (r"µ+s", "3 µµs"),
        (r"[^é]=1", "ß=1"),
        (r"[а-я]{3}!", "мир!"),
    ],
)
def test_letters_beyond_ascii_are_found_as_bytes(pattern: str, text: str) -> None:
    import hyperscan

    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(expressions=[bytewise(pattern).encode()], ids=[0], flags=0)
    found: list[int] = []
    database.scan(text.encode(), match_event_handler=lambda number, *_: found.append(number))
    assert found
