from __future__ import annotations

import pytest

from rca.rules.snippets import fitted, names, plain

RUN: dict[str, float | str] = {"lr.peak": 1.0, "config.batch_size": 5, "config.model_type": "acme/m", "odd": "a b; rm"}


@pytest.mark.parametrize(
    ("snippet", "shown"),
    [
        ("lr=<<lr.peak / 10 | LR / 10>>", "lr=0.1"),
        ("lr=<<lr.last or lr.peak / 3 | LR / 3>>", "lr=0.333"),
        ("lr=<<lr.last / 10 | LR / 10>>", "lr=LR / 10"),
        ("batch=<<config.batch_size // 2 | B // 2>>", "batch=2"),
        ("batch=<<config.batch_size // 8 | B // 8>>", "batch=1"),
        ("batch=<<config.batch_size * 2 | B * 2>>", "batch=10"),
        ("serve <<config.model_type | MODEL>>", "serve acme/m"),
        ("serve <<config.model_type * 2 | MODEL>>", "serve MODEL"),
        ("serve <<odd | MODEL>>", "serve MODEL"),
        ("cat <<EOF | sh", "cat <<EOF | sh"),
    ],
)
def test_gaps_take_what_the_run_tells(snippet: str, shown: str) -> None:
    assert fitted(snippet, RUN.get) == shown


def test_without_a_run_a_gap_says_what_to_put() -> None:
    snippet = "lr=<<lr.peak or config.learning_rate / 10 | LR / 10>>"
    assert plain(snippet) == "lr=LR / 10"
    assert names(snippet) == ("lr.peak", "config.learning_rate")
