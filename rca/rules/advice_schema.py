"""What a report asks for where no cause can be named, and what it offers where memory is short."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rca.rules.schema import Condition, RuleModel


class Record(RuleModel):
    """Something that a run should leave, asked for where no cause can be named and it is not there."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    wanted: Condition | None = None
    """When it would help; always when left out."""
    present: Condition | None = None
    """Met when the run has it."""
    files: tuple[str, ...] = ()
    """Patterns of file names (`*dmesg*`) that hold it."""
    emitters: tuple[str, ...] = ()
    """Software (`kernel`) any known message of which shows that it was read."""
    says: str
    """What is missing and why it would decide, one sentence; `{fact}` names in braces are filled in."""
    tells: str = ""
    """Fact whose own sentence is added, e.g. `run.ranks_missing`."""
    record: str
    """Command or setting that gives it next time."""


class RecordFile(RuleModel):
    """`records.yaml`: what to ask for, the most telling first."""

    records: tuple[Record, ...]


class Remedy(RuleModel):
    """A change that lets a step take less device memory, and what it costs the user."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    title: str
    """The change in a few words, as a row of the table; `{batch}` and other sizes in braces are filled in."""
    tasks: tuple[Literal["train", "evaluate", "generate", "serve"], ...] = ("train",)
    """In which steps it can be made."""
    change: dict[str, str | int | float | bool]
    """Setting of the step -> new value or a factor such as `x0.5`."""
    when: dict[str, tuple[str | int | float | bool | None, ...]] = Field(default_factory=dict)
    """Setting of the run -> values with which the change makes sense, `>1` and `<1` for more and less; always when left
    out."""
    repeat: Annotated[int, Field(ge=1, le=8)] = 1
    """How often it may be made on top of itself: half the batch, a quarter, an eighth."""
    price: Annotated[float, Field(gt=0, le=100)]
    """How much it asks of the user, on the scale of the file's `scale`; every repetition adds one, and the prices of a
    combination add up. The cheapest that fits is the one to name."""
    costs: str
    """The price in words."""
    paste: str
    """The line to paste, sizes in braces filled in."""


class RemedyFile(RuleModel):
    """`remedies.yaml`: what can be done about a step that does not fit, cheapest first."""

    scale: dict[int, str]
    """What a price means, in words."""
    remedies: tuple[Remedy, ...]
