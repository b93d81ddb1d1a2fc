"""Every error that `rca` raises on purpose.

RcaError                       exit code 4 unless a subclass says otherwise
├── UsageError                 2  an option, a path or a configuration file is wrong
│   ├── UnusableBaseline       2  the healthy run to compare with cannot be read
│   └── KnowledgeError         2  a signature, cause or experiment file is wrong (file, line, what to do)
├── NothingReadable            3  the run directory holds nothing that could be read
├── UnreadableSource              one file could not be read: becomes a skipped source, never ends the analysis
├── ExperimentError               an experiment could not be carried out: becomes its verdict, never ends the analysis
└── TicketError                5  a ticket could not be written; nothing that was there is lost
"""

from __future__ import annotations

from pathlib import Path


class RcaError(Exception):
    """Base of all expected errors; the message says what, where and what to do next."""

    exit_code = 4


class UsageError(RcaError):
    """An option, a path or a configuration file is wrong."""

    exit_code = 2


class UnusableBaseline(UsageError):
    """The healthy run to compare with cannot be read."""


class KnowledgeError(UsageError):
    """A knowledge file is wrong; carries the file and the 1-based line where it is."""

    def __init__(self, message: str, *, file: Path | str | None = None, line: int | None = None) -> None:
        self.file = file
        self.line = line
        place = "" if file is None else f"{file}:{line}: " if line is not None else f"{file}: "
        super().__init__(place + message)


class NothingReadable(RcaError):
    """The run directory holds nothing that could be read."""

    exit_code = 3


class UnreadableSource(RcaError):
    """One source could not be read; the reason is shown in the report as a skipped source."""


class ExperimentError(RcaError):
    """An experiment could not be carried out; the reason is shown as its verdict."""


class TicketError(RcaError):
    """A report could not be attached to a ticket; the report itself is untouched."""

    exit_code = 5
