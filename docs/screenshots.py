"""The sample report in reports/sample and screenshots of real reports for docs/screenshots.md: `make screenshots`.

Four runs are analysed, one a kind of page, and their reports are photographed in Debian's Chromium: light, dark, on a
telephone, and as the terminal shows them. Needs the packages of the `test` extra and Chromium.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

DOCS = Path(__file__).resolve().parent
SAMPLES = DOCS.parent / "sample_logs"
SAMPLE_REPORT = Path("reports/sample")
"""From the folder of the checkout, so that the README can show what was printed."""
COLOURS = 96
"""Of a picture's palette: text and charts need few, and the picture is a quarter of the size."""
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1200, "height": 1000}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1200, "height": 1000}, "color_scheme": "dark"},
    "narrow": {"viewport": {"width": 390, "height": 1000}, "color_scheme": "light", "device_scale_factor": 1.5},
}
KINDS = {
    "confirmed": "A cause that an experiment confirmed",
    "suspected": "A cause that is only suspected: one rank failed first, the others followed",
    "unknown": "Nothing that is known explains the run",
    "healthy": "A run that did what it should",
}
STRANGE = """\
2026-05-02 03:13:21,877 WARNING broker: lease 8812 was not renewed, holder quill-7 stopped answering
2026-05-02 03:13:24,012 CRITICAL trainer: giving up on shard 41, the ledger is ahead of us
"""
"""How the run ends that no rule knows."""


def strange_run(folder: Path) -> Path:
    """A run of two hundred steps that ends in words of a system of its own."""
    folder.mkdir()
    steps = [
        f"2026-05-02 03:{10 + n // 60:02d}:{n % 60:02d},101 INFO trainer: step {n} loss {2.9 - n * 0.004:.4f} lr 3e-4"
        for n in range(200)
    ]
    (folder / "train.log").write_text("\n".join(steps) + "\n" + STRANGE, encoding="utf-8")
    return folder


def analysed(run: Path, into: Path, *, experiments: str) -> tuple[Path, str]:
    """The page of a run, and what the terminal shows of it, with its colours."""
    command = [sys.executable, "-m", "rca", "analyze", str(run), "--experiments", experiments, "--budget", "10m"]
    subprocess.run([*command, "-o", str(into), "-f", "html", "-q"], check=True, stdout=subprocess.DEVNULL)
    (page,) = into.glob("*.html")
    show = [sys.executable, "-m", "rca", "report", page.name, "--color", "always"]
    shown = subprocess.run(show, check=True, capture_output=True, text=True, encoding="utf-8", cwd=into)
    return page, shown.stdout


def terminal(shown: str, file: Path) -> Path:
    """What a terminal of 80 columns shows, as a page."""
    console = Console(record=True, width=82, file=io.StringIO())
    console.print(Text.from_ansi(shown), soft_wrap=True)
    file.write_text(console.export_html(theme=MONOKAI, inline_styles=True), encoding="utf-8")
    return file


def photograph(browser: Browser, page: Path, picture: Path, *, whole: bool = False, **look: Any) -> None:
    """What is in the window, or the whole page, as a small PNG."""
    context = browser.new_context(**look)
    tab = context.new_page()
    tab.goto(page.as_uri())
    raw = tab.screenshot(full_page=whole)
    context.close()
    image = Image.open(io.BytesIO(raw)).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)


def sample_report(browser: Browser) -> None:
    """Make the committed report again, print the summary for the README, and photograph the page."""
    shutil.rmtree(SAMPLE_REPORT, ignore_errors=True)
    run = "sample_logs/fp16_overflow/run"
    subprocess.run([sys.executable, "-m", "rca", "analyze", run, "-o", str(SAMPLE_REPORT)], check=True)
    (page,) = SAMPLE_REPORT.resolve().glob("*.html")
    look: dict[str, Any] = {"viewport": {"width": 1280, "height": 1500}, "color_scheme": "light"}
    photograph(browser, page, SAMPLE_REPORT / "report.png", **look)


def main() -> None:
    """Make all pictures and the page that shows them."""
    pictures = DOCS / "screenshots"
    shutil.rmtree(pictures, ignore_errors=True)
    pictures.mkdir()
    text = ["# Screenshots", "", "Made from real reports by `make screenshots`.", ""]
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        room = Path(scratch)
        runs = {
            "confirmed": (SAMPLES / "fp16_overflow" / "run", "auto"),
            "suspected": (SAMPLES / "rank_crash" / "run", "none"),
            "unknown": (strange_run(room / "strange"), "none"),
            "healthy": (SAMPLES / "healthy" / "run", "none"),
        }
        chromium = next(
            path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))
        )
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        sample_report(browser)
        for kind, title in KINDS.items():
            run, experiments = runs[kind]
            page, shown = analysed(run, room / kind, experiments=experiments)
            status = {"healthy": "none"}.get(kind, kind)
            if f'data-status="{status}"' not in page.read_text(encoding="utf-8"):
                sys.exit(f"The report of {run} is not of the kind {kind}: choose another run for it.")
            for name, look in LOOKS.items():
                photograph(browser, page, pictures / f"{kind}-{name}.png", **look)
            console = terminal(shown, room / f"{kind}-terminal.html")
            photograph(
                browser,
                console,
                pictures / f"{kind}-terminal.png",
                whole=True,
                viewport={"width": 820, "height": 300},
            )
            text += [f"## {title}", ""]
            text += [f"![{title}: {name}](screenshots/{kind}-{name}.png)" for name in (*LOOKS, "terminal")] + [""]
        browser.close()
    (DOCS / "screenshots.md").write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
