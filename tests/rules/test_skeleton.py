"""The skeleton of a new rule: its pattern finds the line it was made from, and the like of it."""

from __future__ import annotations

import pytest
import re2
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from rca.errors import UsageError
from rca.rules.schema import CaseFile, Cause
from rca.rules.skeleton import UNFILLED, blank, pattern_of, skeleton

LINE = "2026-03-01 10:11:12,345 [ERROR] lease 'n17' (of /mnt/a) lost after 30.5 s [Errno 28]: 0x7f3a at 10.0.0.3:80"


def test_what_differs_between_runs_is_general_and_the_words_stay() -> None:
    pattern = pattern_of("lease n17 of /mnt/cache/a lost after 30.5 s at step 1200")
    assert re2.fullmatch(pattern, "lease n4 of /data/other/b lost after 7 s at step 3")
    assert not re2.search(pattern, "lease n4 of /data/other/b renewed after 7 s at step 3")


@pytest.mark.parametrize("code", ["Errno 28", "E4711", "A100", "HTTP 503", "Xid 79", "error code: 13"])
def test_a_number_that_says_what_happened_stays(code) -> None:
    assert code in pattern_of(f"the store refused us with {code} again")


def test_both_files_are_valid_and_hold_the_line() -> None:
    cause_text, cases_text = skeleton(LINE, cause="acme.lease_lost")
    cause = Cause.model_validate(yaml.safe_load(cause_text))
    cases = CaseFile.model_validate(yaml.safe_load(cases_text))
    assert re2.search(cause.evidence[0].log, LINE)
    assert cases.fires[0].log == LINE + "\n"
    assert UNFILLED in cause_text
    assert UNFILLED in cases_text


def test_a_known_message_gives_the_pattern_and_the_whole_line_the_case() -> None:
    cause_text, cases_text = skeleton(LINE, cause="acme.lease_lost", message="lease 'n17' lost")
    assert yaml.safe_load(cause_text)["evidence"][0]["log"] == r"lease 'n\d+' lost"
    assert "2026-03-01" in cases_text


def test_a_blank_skeleton_is_valid_too() -> None:
    cause_text, cases_text = blank("acme.lease_lost")
    Cause.model_validate(yaml.safe_load(cause_text))
    CaseFile.model_validate(yaml.safe_load(cases_text))


@pytest.mark.parametrize("line", ["", "12 34 56", "-----"])
def test_a_line_without_a_word_is_refused(line) -> None:
    with pytest.raises(UsageError, match="no word"):
        skeleton(line, cause="acme.lease_lost")


@pytest.mark.parametrize("cause", ["acme", "Acme.Lease", "a.b.c", "../x.y"])
def test_a_bad_id_is_refused(cause) -> None:
    with pytest.raises(UsageError, match="is not a cause id"):
        skeleton(LINE, cause=cause)


@example("lost \N{FULLWIDTH DIGIT SIX}")
@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n"), max_size=500).map(lambda s: "lost " + s))
def test_any_line_gives_files_that_load_and_a_pattern_that_finds_it(line) -> None:
    cause_text, cases_text = skeleton(line, cause="acme.lease_lost")
    pattern = Cause.model_validate(yaml.safe_load(cause_text)).evidence[0].log
    case = CaseFile.model_validate(yaml.safe_load(cases_text)).fires[0].log
    assert re2.search(pattern, case)
