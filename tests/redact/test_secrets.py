from __future__ import annotations

import time

import pytest

from rca.redact import Redactor

from .corpus import HARMLESS, HEX, MIXED, secrets


@pytest.mark.parametrize(("secret", "line"), secrets())
def test_secret_is_replaced_and_the_rest_of_the_line_stays(secret: str, line: str) -> None:
    redactor = Redactor()
    shown = redactor.text(line)
    assert secret not in shown
    assert secret[6:-6] not in shown or len(secret) < 20
    assert "<secret>" in shown
    assert redactor.counts["secret"] == 1


@pytest.mark.parametrize("line", HARMLESS)
def test_ordinary_line_is_left_alone(line: str) -> None:
    assert Redactor().text(line) == line


def test_name_of_the_secret_stays_readable() -> None:
    assert (
        Redactor().text(f"WANDB_API_KEY={HEX[:40]} WANDB_MODE=offline") == "WANDB_API_KEY=<secret> WANDB_MODE=offline"
    )
    assert (
        Redactor().text(f"password=hunter2, lr=0.1, api_key={MIXED[:20]}")
        == "password=<secret>, lr=0.1, api_key=<secret>"
    )


def test_text_beyond_ascii_keeps_its_place() -> None:
    assert Redactor().text(f"größe 日本語 api_key={MIXED[:20]} — ende") == "größe 日本語 api_key=<secret> — ende"


def test_mode_none_changes_nothing() -> None:
    redactor = Redactor("none")
    assert all(redactor.text(line) == line for _, line in secrets())
    assert redactor.counts == {}


@pytest.mark.parametrize(
    "filler", ["eyJ", "sk-", "://a:", "password", "a@", "1.1.", "::", "/a", "token=", "-----BEGIN PRIVATE KEY-----"]
)
def test_hostile_lines_take_linear_time(filler: str) -> None:
    line = (filler * 4096)[:4096]
    start = time.perf_counter()
    Redactor("strict").text(line)
    once = time.perf_counter() - start
    start = time.perf_counter()
    Redactor("strict").text(line * 8)
    assert time.perf_counter() - start < max(1.0, 40 * once)
