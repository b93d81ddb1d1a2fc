"""Where no cause explains a run: lines that stand out, what they resemble, what is missing, a rule to fill in."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Sign = Literal["exception", "error_word", "hint", "rare", "near"]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class ContextLine(_Model):
    """One line around an evidence line."""

    line: int
    text: str


class OddLine(_Model):
    """A line that stands out and that no rule knows."""

    id: str
    text: str
    source: str
    line: int | None = None
    rank: int | None = None
    ranks: tuple[int, ...] = ()
    """Ranks that said the like, when more than one did."""
    host: str | None = None
    step: int | None = None
    time: str | None = None
    """ISO 8601, UTC."""
    signs: tuple[Sign, ...] = ()
    """Shape of an exception, words of trouble, the same in a warning, rare, near the failure or the end."""
    count: int = 1
    """Lines of the same shape among those that were looked at."""
    template: str = ""
    """Its shape: `<num>`, `<path>`, ... for what varies."""
    context: tuple[ContextLine, ...] = ()


class Resemblance(_Model):
    """A known cause whose texts share rare words with an odd line; the similarity is no probability."""

    cause: str
    """Empty for a message that no cause asks for."""
    title: str
    similarity: float = Field(ge=0, le=1)
    """Cosine of the TF-IDF vectors."""
    shared: tuple[str, ...]
    """Words in common, most telling first."""
    signature: str = ""
    """Known message that is alike, where it is not the text of the cause."""
    line: str = ""
    """Id of the odd line."""


class Absent(_Model):
    """Something that a run should leave, that would decide, and that is not there."""

    id: str
    says: str
    record: str
    """Command or setting that gives it."""


class RuleDraft(_Model):
    """A new rule made from the most telling odd line, to be filled in."""

    line: str
    """Id of the odd line."""
    rule: str
    """Text of the cause file."""
    cases: str
    """Text of its cases file."""
    command: str
    """Writes both files; run it in the run directory."""


class Unexplained(_Model):
    """What is shown where no cause explains the run, or none well enough."""

    lines: tuple[OddLine, ...] = ()
    """Most telling first."""
    looked_at: int = 0
    """Lines that were looked at closely; longer logs are searched for words of trouble and sampled."""
    left_out: int = 0
    """Logs that were not looked at."""
    resembles: tuple[Resemblance, ...] = ()
    absent: tuple[Absent, ...] = ()
    draft: RuleDraft | None = None
