from __future__ import annotations

from typing import Any

import pytest

ROWS = "  intent_em   {0}\n  tone        0.6120\n  refusals    0.0450\n"


@pytest.mark.parametrize(("second", "same"), [("0.3310", True), ("0.5920", False)])
def test_two_listings_of_results(facts_of: Any, second: str, same: bool) -> None:
    log = f"evaluating base\n{ROWS.format('0.3310')}evaluating base+adapter\n{ROWS.format(second)}done\n"
    assert facts_of({"eval.log": log})["quality.unchanged"] is same


def test_a_single_listing_compares_nothing(facts_of: Any) -> None:
    assert "quality.unchanged" not in facts_of({"eval.log": "evaluating a\n" + ROWS.format("0.3310")})


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("40/40 outputs identical between base and adapter", True),
        ("38/40 outputs identical between base and adapter", None),
        ("max |W_merged - W_base| = 0.0", True),
    ],
)
def test_a_comparison_that_says_so(reported: Any, line: str, same: bool | None) -> None:
    assert reported({"check.log": f"checking\n{line}\n"}).get("quality.unchanged") is same


def test_a_summary_repeats_the_results_of_one_model(facts_of: Any) -> None:
    log = f"results of step 900\n{ROWS.format('0.3310')}final summary\n{ROWS.format('0.3310')}"
    assert "quality.unchanged" not in facts_of({"eval.log": log})
