"""A folder of labelled incidents to accuracy, calibration, confusion, and what happens without the right rule.

Every case is `<case>/run/` with `<case>/truth.json`: `{"cause": id, "also_ok": [ids]}`, and `<case>/baseline/` where
there is a healthy run of the job. Where the folder holds a `first_run.json`, the verdicts given before anybody saw the
cases are scored beside those of today.
"""

from __future__ import annotations

import datetime as dt
import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

import rca
from rca.errors import NothingReadable, UnusableBaseline, UsageError
from rca.hypotheses.decide import answer
from rca.hypotheses.score import NONE, UNKNOWN, Ranking, rank
from rca.observation import healthy_beside
from rca.pipeline import Analysis, Options, examine
from rca.rules.load import Knowledge
from rca.rules.schema import Calibration

BINS = 5
"""Bins of the reliability table."""
CONFIDENT = 0.8
"""A wrong cause above this probability would be believed."""
FIRST_RUN = "first_run.json"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Label(_Model):
    """What a labelled incident really was: its `truth.json`; further keys are for people."""

    cause: str
    also_ok: tuple[str, ...] = ()
    """Ids that are right as well."""


class Withheld(_Model):
    """What the rules say once every rule of the right cause is taken away: they should not know."""

    verdict: str
    probability: float


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
    without_baseline: str = ""
    """Why the healthy run that lies there was not compared with; empty where it was, or where there is none."""
    scores: dict[str, float] = {}
    """Log-odds by rules alone of every supported cause and of `unknown`, before calibration."""
    withheld: Withheld | None = None
    """None where no cause is the truth."""

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


class WithheldScore(_Model):
    """Leave-one-cause-out: how often the tool says that it does not know a cause that it does not know."""

    cases: int
    unknown: float
    """Share of verdicts `unknown`."""
    confidently_wrong: float
    """Share of verdicts that name another cause with a probability above 0.8."""


class FirstRun(_Model):
    """Verdicts given before any rule was changed for these cases: `first_run.json` in the folder of the cases."""

    date: str
    rca_version: str
    verdicts: dict[str, Annotated[tuple[str, ...], Field(min_length=1)]]
    """Case -> verdict, then the other causes by falling probability, at least to the third."""


class CalibratedScore(_Model):
    """A fitted calibration, with its error on what it was fitted on and on folds that it had not seen."""

    calibration: Calibration
    fitted_top1: float
    fitted_error: float
    held_out_top1: float
    held_out_error: float


class Score(_Model):
    """Accuracy and calibration over a folder of labelled incidents."""

    cases: int
    top1: float
    top3: float
    false_alarms: int
    """Healthy runs that were given a cause."""
    doubted: int
    """Healthy runs of which no more was said than `unknown`."""
    healthy: int
    abstained: int
    """Verdicts `unknown` although the truth names a cause."""
    calibration_error: float
    """Expected calibration error of the stated probabilities, 5 bins of equal width."""
    domains: tuple[DomainRow, ...]
    reliability: tuple[Bin, ...]
    confusion: tuple[tuple[str, str, int], ...]
    """(truth, verdict, count) of wrong verdicts, most frequent first."""
    withheld: WithheldScore | None
    first_run: tuple[str, float] | None = None
    """Date of the first run on these cases, before any rule was changed for them, and the share that was right."""
    calibrated: CalibratedScore | None = None
    outcomes: tuple[CaseOutcome, ...]


def evaluate(cases_dir: Path, knowledge: Knowledge, *, options: Options) -> Iterator[CaseOutcome]:
    """Judge every labelled incident below `cases_dir`. Raises UsageError when there is none."""
    truths = sorted(cases_dir.glob("*/truth.json"))
    if not truths:
        deeper = next(iter(sorted(cases_dir.glob("*/*/truth.json"))), None) if cases_dir.is_dir() else None
        hint = f"; did you mean {deeper.parents[1]}?" if deeper is not None else ""
        raise UsageError(f"no case found: {cases_dir} needs folders that hold run/ and truth.json{hint}")
    for truth in truths:
        yield _judged(truth, knowledge, options)


def _judged(truth: Path, knowledge: Knowledge, options: Options) -> CaseOutcome:
    label = _label(truth, knowledge)
    accepted = (label.cause, *label.also_ok)
    run = truth.parent / "run"
    lacking = ""
    try:
        try:
            analysis = examine(run, knowledge, options=replace(options, baseline=healthy_beside(run)))
        except UnusableBaseline as error:
            lacking = f"{error}; the case was judged without it"
            analysis = examine(run, knowledge, options=replace(options, baseline=None))
    except NothingReadable as error:
        return CaseOutcome(
            case=truth.parent.name,
            truth=label.cause,
            accepted=accepted,
            verdict=UNKNOWN,
            probability=1.0,
            ranked=(UNKNOWN,),
            seconds=0.0,
            warnings=(str(error),),
            without_baseline=lacking,
            scores={UNKNOWN: 0.0},
        )
    diagnosis, chosen = analysis.diagnosis, analysis.diagnosis.verdict
    others = [item.cause for item in diagnosis.hypotheses if item.cause != chosen.cause]
    return CaseOutcome(
        case=truth.parent.name,
        truth=label.cause,
        accepted=accepted,
        verdict=chosen.cause,
        probability=chosen.probability,
        ranked=(chosen.cause, *others),
        experiments=tuple(f"{item.id}: {item.verdict}" for item in diagnosis.experiments),
        seconds=sum(diagnosis.timings.values()),
        warnings=diagnosis.warnings,
        without_baseline=lacking,
        scores=scores(analysis.ranking),
        withheld=_withheld(analysis, knowledge, accepted),
    )


def _label(file: Path, knowledge: Knowledge) -> Label:
    try:
        label = Label.model_validate_json(_bytes(file))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f'{file}: {first["msg"]}; write {{"cause": "<id>", "also_ok": []}}') from error
    known = {*knowledge.causes, *knowledge.taxonomy, UNKNOWN}
    for name in (label.cause, *label.also_ok):
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise UsageError(f"{file}: no cause is called {name!r}{hint}")
    return label


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error


def scores(ranking: Ranking) -> dict[str, float]:
    """Return the log-odds of every supported cause and of `unknown`."""
    return {item.cause.id: item.score for item in ranking.candidates} | {UNKNOWN: ranking.unknown_score}


def _withheld(analysis: Analysis, knowledge: Knowledge, accepted: Sequence[str]) -> Withheld | None:
    if {NONE, UNKNOWN} & set(accepted):
        return None
    others = [cause for cause in knowledge.causes.values() if cause.id not in accepted]
    ranking = rank(others, analysis.view, signatures=knowledge.signatures, calibration=knowledge.calibration)
    verdict, probability = answer(ranking, knowledge.calibration)
    return Withheld(verdict=verdict, probability=probability)


def first_run(cases_dir: Path, outcomes: Sequence[CaseOutcome]) -> tuple[str, float] | None:
    """Return date and share of right verdicts of the recorded first run on these cases, if one was recorded."""
    file = cases_dir / FIRST_RUN
    if not file.is_file():
        return None
    try:
        recorded = FirstRun.model_validate_json(_bytes(file))
    except ValidationError as error:
        raise UsageError(f"{file} was not written by --first-run: {error.errors()[0]['msg']}; remove it") from error
    right = [recorded.verdicts[item.case][0] in item.accepted for item in outcomes if recorded.verdicts.get(item.case)]
    return (recorded.date, sum(right) / len(right)) if right else None


def record_first_run(cases_dir: Path, outcomes: Sequence[CaseOutcome]) -> Path:
    """Write down the verdicts as those of the first run. Raises UsageError where one was recorded already."""
    file = cases_dir / FIRST_RUN
    if file.exists():
        raise UsageError(f"{file} exists already: a first run happens once; move new cases to a folder of their own")
    recorded = FirstRun(
        date=dt.date.today().isoformat(),
        rca_version=rca.__version__,
        verdicts={item.case: item.ranked[:3] for item in outcomes},
    )
    file.write_text(recorded.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return file


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
        false_alarms=sum(not item.right and item.verdict != UNKNOWN for item in healthy),
        doubted=sum(not item.right and item.verdict == UNKNOWN for item in healthy),
        healthy=len(healthy),
        abstained=sum(
            item.verdict == UNKNOWN and item.truth != NONE and UNKNOWN not in item.accepted for item in outcomes
        ),
        calibration_error=sum(row.cases / count * abs(row.stated - row.observed) for row in reliability),
        domains=tuple(_domains(outcomes)),
        reliability=reliability,
        confusion=tuple((truth, verdict, number) for (truth, verdict), number in wrong.most_common()),
        withheld=_withheld_score([item.withheld for item in outcomes if item.withheld is not None]),
        outcomes=tuple(outcomes),
    )


def _withheld_score(withheld: Sequence[Withheld]) -> WithheldScore | None:
    if not withheld:
        return None
    count = len(withheld)
    sure = sum(item.verdict not in {UNKNOWN, NONE} and item.probability > CONFIDENT for item in withheld)
    return WithheldScore(
        cases=count, unknown=sum(item.verdict == UNKNOWN for item in withheld) / count, confidently_wrong=sure / count
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
