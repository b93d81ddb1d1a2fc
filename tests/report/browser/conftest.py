"""One Chromium and one tab for all these tests; a test that needs other settings gets a context of its own."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import pytest

from rca.report.html import HtmlReport
from rca.report.words import ENGLISH, speaking
from rca.rules.languages import translations

from .kinds import KINDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

HERE = Path(__file__).parent
JENKINS = "sandbox; default-src 'none'; img-src 'self'; style-src 'self'"
"""What Jenkins sends with archived pages, by its documentation on content security policy."""


class Tab(NamedTuple):
    """An open page with what it said and asked for."""

    page: Page
    console: list[str]
    """Errors and warnings of the console, and what scripts threw."""
    requests: list[str]


OpenPage = Callable[..., Tab]


def absent(what: str, command: str) -> NoReturn:
    """Skip on a developer's machine, fail in CI: a check that never runs is none."""
    reason = f"{what} is not here; install it with: {command}"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. Not longer than this folder's tests: others start event loops of their own."""
    found = [path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))]
    if not found:
        absent("Chromium", "apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found[0], args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core: from the folder in RCA_TEST_NODE_MODULES, or installed beside this file."""
    folder = Path(os.environ.get("RCA_TEST_NODE_MODULES") or HERE / "node_modules")
    file = folder / "axe-core" / "axe.min.js"
    if not file.is_file():
        where = HERE.relative_to(HERE.parents[2])
        absent("axe-core", f"npm install --no-package-lock --prefix {where}")
    return file.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file with the page of a kind (`healthy`, or `healthy.zh` in Chinese), rendered when it is first asked for."""
    folder = tmp_path_factory.mktemp("saved")

    def page_of(kind: str) -> Path:
        file = folder / f"{kind}.html"
        if not file.exists():
            name, _, language = kind.partition(".")
            with speaking(language or ENGLISH, translations(language) if language else None):
                file.write_text(HtmlReport().render(KINDS[name]()), encoding="utf-8")
        return file

    return page_of


def watched(context: BrowserContext) -> Tab:
    """A new page of a context that keeps what it says and asks for."""
    page = context.new_page()
    tab = Tab(page, [], [])
    page.on("console", lambda said: tab.console.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: tab.console.append(str(error)))
    context.on("request", lambda request: tab.requests.append(request.url))
    return tab


@pytest.fixture(scope="package")
def common(browser: Browser) -> Tab:
    """The tab that most tests use one after the other: a new one costs a process."""
    return watched(browser.new_context(color_scheme="light"))


@pytest.fixture
def open_page(browser: Browser, common: Tab, saved: Callable[[str], Path]) -> Iterator[OpenPage]:
    """Open the page of a kind, or an address: `open_page(kind, width=390)`; options are those of a context."""
    contexts = []

    def opened(kind: str, *, address: str = "", width: int = 1280, height: int = 900, **options: Any) -> Tab:
        tab = common
        if options:
            contexts.append(browser.new_context(**options))
            tab = watched(contexts[-1])
        tab.page.set_viewport_size({"width": width, "height": height})
        tab.page.goto("about:blank")
        tab.console.clear()
        tab.requests.clear()
        tab.page.goto(address or saved(kind).as_uri())
        return tab

    yield opened
    for context in contexts:
        context.close()
    common.page.emulate_media(color_scheme="light", media="null")
    if common.page.url.startswith("file:"):
        common.page.evaluate("localStorage.clear()")


class _Jenkins(http.server.SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", JENKINS)
        super().end_headers()

    def log_message(self, *arguments: object) -> None:
        """Stay silent."""


@pytest.fixture(scope="package")
def jenkins(saved: Callable[[str], Path]) -> Iterator[Callable[[str], str]]:
    """The address of the page of a kind on a server that forbids what Jenkins forbids."""
    folder = saved("healthy").parent
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Jenkins, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield lambda kind: f"http://127.0.0.1:{server.server_port}/{saved(kind).name}"
    server.shutdown()
    server.server_close()
