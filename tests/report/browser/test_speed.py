"""A long page opens at once: two thousand lines, in less than a second of computing more than an empty page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rca.diagnosis import Diagnosis, TimelineEntry
from rca.report.html import HtmlReport
from rca.report.trim import GOAL

from ..samples import oom_on_many_ranks

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LINES = 2_000
MOST_S = 3.0
"""1.0 s was measured on two busy cores (median of five), 0.6 s of time; three times that is another page: where all
rows were laid out at once it was 3.9 s."""


def long() -> Diagnosis:
    """Eight ranks whose timeline has as many lines as a page may hold, as long as those of real logs."""
    entries = tuple(
        TimelineEntry(
            id=f"e{n}",
            kind="log",
            name="train.step",
            source=f"logs/rank_{n % 8}.log",
            line=n,
            time=f"2026-05-02T03:{n // 60:02d}:{n % 60:02d}Z",
            relative_s=n - LINES + 1.0,
            step=n,
            rank=n % 8,
            severity="error" if n % 50 == 0 else "warning",
            text=f"step {n} | loss 2.{n:04d} | grad_norm 1.{n:04d} | lr 3.0e-4 | 12,345 tokens/s | skipped 3 of 64",
        )
        for n in range(LINES)
    )
    return oom_on_many_ranks().model_copy(update={"timeline": entries})


def computing(browser: Browser, address: str) -> float:
    """Seconds of computing, in all processes of the browser, until the page is loaded, laid out and painted."""
    processes = browser.new_browser_cdp_session()

    def spent() -> dict[int, float]:
        told = processes.send("SystemInfo.getProcessInfo")["processInfo"]
        return {process["id"]: process["cpuTime"] for process in told}

    context = browser.new_context()
    page = context.new_page()
    page.goto("about:blank")
    before = spent()
    page.goto(address)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    after = spent()
    context.close()
    return sum(seconds - before.get(process, 0.0) for process, seconds in after.items())


def test_two_thousand_lines_open_at_once(browser: Browser, tmp_path: Path) -> None:
    html = HtmlReport().render(long())
    assert html.count('<tr id="tl-') >= LINES
    assert len(html.encode()) <= GOAL
    full, empty = tmp_path / "full.html", tmp_path / "empty.html"
    full.write_text(html, encoding="utf-8")
    empty.write_text("<!doctype html><title>Nothing</title>", encoding="utf-8")
    assert computing(browser, full.as_uri()) - computing(browser, empty.as_uri()) < MOST_S
