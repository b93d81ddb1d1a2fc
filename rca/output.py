"""Files that the command line writes: reports, which may replace only what rca wrote, and the event table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rca.errors import UsageError

if TYPE_CHECKING:
    from rca.diagnosis import Diagnosis
    from rca.events import EventTable

_OUR_MARKS = (b'name="generator" content="rca', b'"rca_version"', b"<!-- rca report -->")
_HEAD = 16_384


def write_reports(diagnosis: Diagnosis, folder: Path, formats: Sequence[str], *, force: bool) -> list[Path]:
    """Write the diagnosis in every format, and the scripts that repeat its experiments; return the files.

    Raises UsageError where one cannot be written."""
    from rca.report.registry import renderer
    from rca.report.scripts import file_stem, scripts

    name = file_stem(diagnosis)
    written = []
    for form in dict.fromkeys(formats):
        made = renderer(form)
        file = folder / f"{name}{made.suffix}"
        write_text(file, made.render(diagnosis), force=force)
        written.append(file)
    for place, text in scripts(diagnosis).items():
        write_text(folder / place, text, force=force)
        written.append(folder / place)
    return written


def place_of_report(page: Path) -> str:
    """The line that tells where a report stands and how large it is, in the language in force."""
    from rca.report.words import say

    return say("text.report", page=page, size=f"{page.stat().st_size / 1000:.0f} kB")


def write_text(file: Path, text: str, *, force: bool) -> None:
    """Write one file; another one than ours is replaced only by `force`. Raises UsageError."""
    try:
        if file.exists() and not force and not _is_ours(file):
            raise UsageError(f"{file} was not written by rca; choose another --output or pass --force")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {_reason(error)}; choose another --output") from error


def save_events(events: EventTable, file: Path) -> None:
    """Write the event table as Parquet. Raises UsageError."""
    try:
        events.write_parquet(file)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {_reason(error)}; choose another file for --save-events") from error


def _reason(error: OSError) -> str:
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return "a file stands where a folder is needed"
    return error.strerror or str(error)


def _is_ours(file: Path) -> bool:
    """Whether a file carries a mark that only the reports of rca carry near their start."""
    with file.open("rb") as stream:
        head = stream.read(_HEAD)
    return any(mark in head for mark in (*_OUR_MARKS, *_our_words()))


def _our_words() -> list[bytes]:
    from rca.report.words import catalogue, languages

    return [catalogue(language)["text.made_by"].partition("{")[0].encode() for language in languages()]
