"""What only a browser can tell: the page with and without its script and styles, anchors, and the printed form."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rca.report.html import HtmlReport

from .page import Page
from .samples import lr_too_high

pytestmark = [pytest.mark.browser, pytest.mark.slow]

JENKINS = "sandbox; default-src 'none'; img-src 'self'; style-src 'self'"
"""What Jenkins sends with archived pages, by its documentation on content security policy."""


@pytest.fixture(scope="module")
def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("no Chromium on this machine")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(HtmlReport().render(lr_too_high()), encoding="utf-8")
    return file


def browse(chromium: str, profile: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --enable-logging=stderr --window-size=1280,2400"
    )
    command = [chromium, *flags.split(), f"--user-data-dir={profile}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


class _Jenkins(http.server.SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", JENKINS)
        super().end_headers()

    def log_message(self, *arguments: object) -> None:
        """Stay silent."""


@pytest.fixture(scope="module")
def jenkins(saved: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Jenkins, directory=str(saved.parent)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{saved.name}"
    server.shutdown()
    server.server_close()


def test_script_runs_under_the_page_policy(chromium: str, saved: Path, tmp_path: Path) -> None:
    result = browse(chromium, tmp_path, "--dump-dom", saved.as_uri())
    page = Page(result.stdout)
    assert "hidden" not in page.all("div", id="tools")[0].attributes
    assert page.all("input", type="search")
    assert "Content Security Policy" not in result.stderr


def test_link_to_evidence_opens_it(chromium: str, saved: Path, tmp_path: Path) -> None:
    def opened(address: str) -> int:
        page = Page(browse(chromium, tmp_path, "--dump-dom", address).stdout)
        return sum("open" in element.attributes for element in page.all("details"))

    assert opened(saved.as_uri() + "#ev-c90d3e") == opened(saved.as_uri()) + 1
    assert opened(saved.as_uri() + "#ev-f00d11") == opened(saved.as_uri()) + 2, "the candidate and its evidence"


def test_reads_where_scripts_and_styles_are_forbidden(chromium: str, jenkins: str, tmp_path: Path) -> None:
    page = Page(browse(chromium, tmp_path, "--dump-dom", jenkins).stdout)
    assert "hidden" in page.all("div", id="tools")[0].attributes
    assert page.text_of("h1") == lr_too_high().verdict.sentence
    assert len(page.all("svg", role="img")) == 4
    shot = tmp_path / "shot.png"
    browse(chromium, tmp_path, f"--screenshot={shot}", jenkins)
    assert shot.stat().st_size > 60_000, "the page is blank"


def test_printing_keeps_what_is_folded(chromium: str, saved: Path, tmp_path: Path) -> None:
    html = saved.read_text(encoding="utf-8")
    without = tmp_path / "without.html"
    without.write_text(re.sub(r"details::details-content \{[^}]*\}", "", html), encoding="utf-8")
    pages = []
    for file in (saved, without):
        pdf = tmp_path / f"{file.stem}.pdf"
        browse(chromium, tmp_path, f"--print-to-pdf={pdf}", "--no-pdf-header-footer", file.as_uri())
        pages.append(len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes())))
    assert pages[0] > pages[1] > 0
