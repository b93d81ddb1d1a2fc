"""The result of an analysis. Everything shown to anyone is a view of a `Diagnosis`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from rca.baseline import Baseline
from rca.leads import ContextLine, Unexplained

SCHEMA_VERSION = "1.1"
"""A new version has a step in rca/report/migrations.py and a saved report of the one before it among its tests."""

Status = Literal["confirmed", "suspected", "explained", "refuted", "unlikely"]
ExperimentVerdict = Literal[
    "confirmed", "mitigates", "refuted", "inconclusive", "not_reproduced", "not_testable", "no_op", "invalid", "error"
]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Evidence(_Model):
    """One thing that speaks for or against a cause, with the place where it stands."""

    id: str
    """Stable id made of source, place and rule; also the anchor in the report."""
    says: str
    weight: float
    """Nats: positive for the cause, negative against it, 0 when there was no data."""
    kind: str = ""
    """Kind of condition: signature, fact, config, ..."""
    source: str = ""
    line: int | None = None
    rank: int | None = None
    host: str | None = None
    step: int | None = None
    time: str | None = None
    """ISO 8601, UTC."""
    text: str = ""
    """The line itself, or the numbers behind a fact."""
    context: tuple[ContextLine, ...] = ()
    """Up to five lines before and after."""
    count: int = 1
    """How often the same was said."""
    ranks: tuple[int, ...] = ()
    """Ranks that said it, when more than one did."""
    decides: str = ""
    """For `no_data`: what would have to be recorded to decide it."""


class Fix(_Model):
    """One thing to change."""

    action: str
    why: str = ""
    snippet: str = ""
    language: str = "python"
    risk: str = ""
    verify: str = ""


class Hypothesis(_Model):
    """A cause with everything that speaks for and against it."""

    cause: str
    title: str
    sentence: str = ""
    summary: str = ""
    domain: str = ""
    probability: float = Field(ge=0, le=1)
    prior: float = 0.0
    score: float = 0.0
    """Log-odds before normalisation, in nats."""
    status: Status = "suspected"
    evidence_for: tuple[Evidence, ...] = ()
    evidence_against: tuple[Evidence, ...] = ()
    no_data: tuple[Evidence, ...] = ()
    explained_by: str | None = None
    """Cause that makes this one a symptom."""
    experiments: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    decide: tuple[str, ...] = ()
    """The cheapest steps that would settle it."""
    falsepositives: tuple[str, ...] = ()
    references: tuple[tuple[str, str], ...] = ()


class Series(_Model):
    """One curve for the charts, down-sampled so that spikes survive."""

    name: str
    label: str
    unit: str = ""
    source: str = ""
    rank: int | None = None
    x_name: str = "step"
    points: tuple[tuple[float, float], ...] = ()
    """(step, value); NaN and infinities are values."""
    log_scale: bool = False
    phase: str = "train"


class Arm(_Model):
    """One arm of an experiment over its seeds."""

    name: str
    """`reference`, `control` or `treatment`."""
    settings: dict[str, Any] = {}
    seeds: tuple[int, ...] = ()
    values: tuple[float, ...] = ()
    """The metric, one value a seed."""
    curve: tuple[tuple[float, float], ...] = ()
    """(step, mean loss over seeds)."""


class Effect(_Model):
    """Difference between control and treatment."""

    metric: str
    meaning: str = ""
    value: float
    low: float
    high: float
    """95 % interval."""
    recovered: float | None = None
    """Share of the symptom that the treatment takes away."""


class Table(_Model):
    """Figures that belong to an experiment, to be shown as a table."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = ()
    marked: int | None = None
    """Index of the row to choose, if one stands out."""
    paste: str = ""
    """Lines to paste for the marked row."""
    note: str = ""
    """What the table does not cover, one sentence."""


class Experiment(_Model):
    """An experiment that was carried out, or the reason why it was not."""

    id: str
    title: str
    question: str
    tests: tuple[str, ...] = ()
    """Causes that it can confirm."""
    prediction: str
    """Written before the run."""
    change: str = ""
    """The one difference between the arms, in words."""
    control: Arm | None = None
    treatment: Arm | None = None
    reference: Arm | None = None
    effect: Effect | None = None
    verdict: ExperimentVerdict
    reason: str = ""
    """Why this verdict, one or two sentences with the numbers."""
    rules_out: tuple[str, ...] = ()
    planted: bool = False
    """The fault was planted in the control: it can make the symptom, which does not show that the run has it."""
    scope: str = ""
    """What it was shown on ("a tiny twin, 0.13 M parameters, ..."), never more."""
    not_carried_over: tuple[str, ...] = ()
    """Properties of the run that the twin does not have."""
    details: tuple[tuple[str, str], ...] = ()
    """Further figures as (label, value), e.g. the rows of a memory table."""
    seconds: float = 0.0
    device: str = "cpu"
    table: Table | None = None
    """What-if figures, e.g. predicted peak memory under each remedy."""
    repro: str = ""
    """Command that repeats it."""
    script: str = ""
    """Self-contained program that shows control and treatment; empty where none can."""


class Round(_Model):
    """One round of the agent."""

    number: int
    considered: tuple[tuple[str, float, float], ...] = ()
    """(experiment, expected information in bits, expected seconds)."""
    chosen: str = ""
    why: str = ""
    prediction: str = ""
    expected: tuple[tuple[str, float, float, float], ...] = ()
    """(cause, probability that it is confirmed, refuted, open) for the candidates and `other`, before the run."""
    result: str = ""
    ruled_out: tuple[str, ...] = ()
    before: tuple[tuple[str, float], ...] = ()
    after: tuple[tuple[str, float], ...] = ()
    """Leading causes and their probabilities before and after."""
    seconds: float = 0.0


class TimelineEntry(_Model):
    """One line of the timeline."""

    id: str
    time: str | None = None
    relative_s: float | None = None
    """Seconds before (negative) or after the first failure."""
    step: int | None = None
    rank: int | None = None
    host: str | None = None
    kind: str
    name: str
    severity: str = "info"
    role: str | None = None
    source: str
    line: int | None = None
    text: str
    count: int = 1


class SourceRecord(_Model):
    """One file of the run directory and what became of it."""

    path: str
    kind: str = ""
    status: Literal["read", "skipped"] = "read"
    why: str = ""
    lines: int = 0
    bytes: int = 0
    events: int = 0
    first_time: str | None = None
    last_time: str | None = None
    warnings: tuple[str, ...] = ()


class Setting(_Model):
    """One configuration value, package or system property of the run."""

    group: Literal["configuration", "packages", "system"]
    name: str
    value: str
    source: str = ""
    baseline: str | None = None
    """Value in the healthy run, when one was given and it differs."""


class Breakdown(_Model):
    """Where the step time went."""

    source: str
    rank: int | None = None
    step_us: float
    shares: tuple[tuple[str, float], ...]
    """(category, share of the step)."""
    top: tuple[tuple[str, float, int], ...] = ()
    """Kernels or operators: (name, total microseconds, calls)."""
    notes: tuple[str, ...] = ()


class Run(_Model):
    """What was analysed."""

    name: str
    path: str
    files: int = 0
    bytes: int = 0
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()
    started: str | None = None
    ended: str | None = None
    duration_s: float | None = None
    first_step: int | None = None
    last_step: int | None = None


class Failure(_Model):
    """The observed failure: a fact, not a cause."""

    what: str
    """The message or symptom as observed."""
    rank: int | None = None
    host: str | None = None
    step: int | None = None
    time: str | None = None
    phase: str | None = None
    source: str = ""
    line: int | None = None
    evidence: str = ""
    """Id of an evidence or timeline entry."""


class Verdict(_Model):
    """The answer."""

    cause: str
    """A cause id, `unknown` or `none`."""
    title: str
    sentence: str
    probability: float = Field(ge=0, le=1)
    words: str
    """The probability in words."""
    status: Literal["confirmed", "suspected", "unknown", "none"]
    domain: str = ""
    next_step: str = ""
    """The cheapest step that would settle it."""
    reasons: tuple[Evidence, ...] = ()
    """For `none`: what shows that nothing failed."""


class Redaction(_Model):
    """How much of which kind was replaced before the diagnosis was made."""

    mode: Literal["default", "strict", "none"] = "default"
    counts: dict[str, int] = {}


class Diagnosis(_Model):
    """The one result object of an analysis."""

    schema_version: str = SCHEMA_VERSION
    rca_version: str
    generated: str
    """ISO 8601, UTC; with `timings` the only part that differs between two equal analyses."""
    run: Run
    verdict: Verdict
    failure: Failure | None = None
    hypotheses: tuple[Hypothesis, ...] = ()
    experiments: tuple[Experiment, ...] = ()
    log: tuple[Round, ...] = ()
    series: tuple[Series, ...] = ()
    breakdowns: tuple[Breakdown, ...] = ()
    timeline: tuple[TimelineEntry, ...] = ()
    settings: tuple[Setting, ...] = ()
    baseline: Baseline | None = None
    """Comparison with a healthy run, where one was given."""
    environment_findings: tuple[str, ...] = ()
    """Things wrong with the environment that are not the cause."""
    sources: tuple[SourceRecord, ...] = ()
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Files or log lines that would have decided the case, and how to record them."""
    unexplained: Unexplained | None = None
    """Only where the verdict is `unknown` or its cause is less likely than not."""
    redaction: Redaction = Redaction()
    timings: dict[str, float] = {}
    """Stage -> seconds."""
