"""A folder of labelled incidents to accuracy, calibration and confusion.

Every case is `<case>/run/` with `<case>/truth.json`: `{"cause": id, "also_ok": [ids]}`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from rca.errors import UsageError
from rca.hypotheses.score import NONE, UNKNOWN
from rca.pipeline import Options, examine
from rca.rules.load import Knowledge

BINS = 5
"""Bins of the reliability table."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class CaseOutcome(_Model):
    """How one labelled incident was judged."""

    case: str
    truth: str
    accepted: tuple[str, ...]
    """Ids that count as right."""
    verdict: str
    probability: float
    ranked: tuple[str, ...]
    """Verdict first, then the other causes by falling probability."""
    experiments: tuple[str, ...] = ()
    """`id: verdict` of every experiment that ran."""
    seconds: float
    warnings: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """Whether the verdict counts as right."""
        return self.verdict in self.accepted

    @property
    def in_top_three(self) -> bool:
        """Whether a right cause is among the first three."""
        return any(cause in self.accepted for cause in self.ranked[:3])


class DomainRow(_Model):
    """Accuracy in one domain of causes."""

    domain: str
    cases: int
    top1: int
    top3: int


class Bin(_Model):
    """One row of the reliability table."""

    low: float
    high: float
    cases: int
    stated: float
    """Mean probability stated."""
    observed: float
    """Share that was right."""


class Score(_Model):
    """Accuracy and calibration over a folder of labelled incidents."""

    cases: int
    top1: float
    top3: float
    false_alarms: int
    """Healthy runs that were given a cause."""
    healthy: int
    abstained: int
    """Verdicts `unknown` although the truth names a cause."""
    calibration_error: float
    """Expected calibration error of the stated probabilities, 5 bins of equal width."""
    domains: tuple[DomainRow, ...]
    reliability: tuple[Bin, ...]
    confusion: tuple[tuple[str, str, int], ...]
    """(truth, verdict, count) of wrong verdicts, most frequent first."""
    outcomes: tuple[CaseOutcome, ...]


def evaluate(cases_dir: Path, knowledge: Knowledge, *, options: Options) -> Iterator[CaseOutcome]:
    """Judge every labelled incident below `cases_dir`. Raises UsageError when there is none."""
    truths = sorted(cases_dir.glob("*/truth.json"))
    if not truths:
        raise UsageError(f"no case found: {cases_dir} needs folders that hold run/ and truth.json")
    for truth in truths:
        yield _judged(truth, knowledge, options)


def _judged(truth: Path, knowledge: Knowledge, options: Options) -> CaseOutcome:
    label = json.loads(truth.read_text(encoding="utf-8"))
    diagnosis = examine(truth.parent / "run", knowledge, options=options).diagnosis
    chosen = diagnosis.verdict
    others = [item.cause for item in diagnosis.hypotheses if item.cause != chosen.cause]
    return CaseOutcome(
        case=truth.parent.name,
        truth=label["cause"],
        accepted=(label["cause"], *label.get("also_ok", [])),
        verdict=chosen.cause,
        probability=chosen.probability,
        ranked=(chosen.cause, *others),
        experiments=tuple(f"{item.id}: {item.verdict}" for item in diagnosis.experiments),
        seconds=sum(diagnosis.timings.values()),
        warnings=diagnosis.warnings,
    )


def score(outcomes: Sequence[CaseOutcome]) -> Score:
    """Sum up judged incidents."""
    count = len(outcomes)
    healthy = [item for item in outcomes if item.truth == NONE]
    wrong = Counter((item.truth, item.verdict) for item in outcomes if not item.right)
    reliability = _reliability(outcomes)
    return Score(
        cases=count,
        top1=sum(item.right for item in outcomes) / count,
        top3=sum(item.in_top_three for item in outcomes) / count,
        false_alarms=sum(not item.right for item in healthy),
        healthy=len(healthy),
        abstained=sum(item.verdict == UNKNOWN and UNKNOWN not in item.accepted for item in outcomes),
        calibration_error=sum(row.cases / count * abs(row.stated - row.observed) for row in reliability),
        domains=tuple(_domains(outcomes)),
        reliability=reliability,
        confusion=tuple((truth, verdict, number) for (truth, verdict), number in wrong.most_common()),
        outcomes=tuple(outcomes),
    )


def _domains(outcomes: Sequence[CaseOutcome]) -> Iterator[DomainRow]:
    for domain in sorted({item.truth.split(".")[0] for item in outcomes}):
        rows = [item for item in outcomes if item.truth.split(".")[0] == domain]
        yield DomainRow(
            domain=domain,
            cases=len(rows),
            top1=sum(item.right for item in rows),
            top3=sum(item.in_top_three for item in rows),
        )


def _reliability(outcomes: Sequence[CaseOutcome]) -> tuple[Bin, ...]:
    rows = []
    for number in range(BINS):
        low, high = number / BINS, (number + 1) / BINS
        inside = [item for item in outcomes if low <= item.probability < high or (high == 1 == item.probability)]
        if inside:
            rows.append(
                Bin(
                    low=low,
                    high=high,
                    cases=len(inside),
                    stated=sum(item.probability for item in inside) / len(inside),
                    observed=sum(item.right for item in inside) / len(inside),
                )
            )
    return tuple(rows)
