"""What a diagnosis says about the comparison with a healthy run of the same job."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Difference(_Model):
    """One setting, package or property of the system that is not as in the healthy run."""

    group: Literal["configuration", "packages", "system"]
    name: str
    """Common name of the setting, package, or property."""
    value: str | None = None
    """In this run; None where it is not set."""
    baseline: str | None = None
    """In the healthy run; None where it is not set."""
    ratio: float | None = None
    """Value over that of the healthy run, where it is not negative and that one positive."""
    source: str = ""
    line: int | None = None
    """Where this run says it."""


class CurveDifference(_Model):
    """One curve beside that of the healthy run, at the same steps."""

    name: str
    label: str
    unit: str = ""
    points: int
    """Steps that were compared."""
    value: float
    baseline: float
    """Medians over the last tenth of the steps compared (at least five points)."""
    ratio: float | None = None
    """Of the two medians, where both are positive."""
    parts_at: float | None = None
    """Step from which the curves stay further apart than they scatter; None where they do not part."""
    says: str
    x_name: str = "step"
    healthy: tuple[tuple[float, float], ...] = ()
    """The curve of the healthy run as (step, value), for the chart."""


class MessageDifference(_Model):
    """A message that only one of the two runs said, or both."""

    kind: Literal["signature", "template"]
    """A known signature or exception, or the template of a log line."""
    status: Literal["new", "missing", "both"]
    """`new`: only this run says it, `missing`: only the healthy run."""
    name: str
    """Signature id, exception type, or the template."""
    severity: str = "info"
    count: int = 0
    baseline_count: int = 0
    text: str = ""
    """The first line that says it."""
    source: str = ""
    line: int | None = None


class Baseline(_Model):
    """The comparison with a healthy run of the same job."""

    name: str
    path: str
    files: int = 0
    steps: int | None = None
    """Largest step that the healthy run reported."""
    used: bool
    """Whether the differences count as evidence."""
    notes: tuple[str, ...] = ()
    """What is wrong with the comparison, one sentence each: the baseline failed itself, or is another job."""
    alike: float | None = None
    """Share of settings or of messages that both have, of the run that has fewer; None where there are too few."""
    differences: tuple[Difference, ...] = ()
    unchanged: int = 0
    """Settings, packages and properties that are the same in both."""
    same: tuple[str, ...] = ()
    """Names of the settings among them."""
    curves: tuple[CurveDifference, ...] = ()
    messages: tuple[MessageDifference, ...] = ()
