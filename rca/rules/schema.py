"""The shape of a knowledge file: signatures, causes, experiments and their cases, as validated values."""

from __future__ import annotations

from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Role = Literal["initiating", "cascade", "teardown", "benign"]
Severity = Literal["debug", "info", "warning", "error", "fatal"]
Maturity = Literal["experimental", "test", "stable"]
Operator = Literal["exists", "==", "!=", ">", ">=", "<", "<=", "in", "matches"]
Outcome = Literal["confirmed", "refuted", "inconclusive"]

SignatureId = Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)+$")]
CauseId = Annotated[str, Field(pattern=r"^([a-z0-9_]+\.[a-z0-9_]+|none|unknown)$")]


class RuleModel(BaseModel):
    """What every part of a rule file is: frozen, and no key that is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Capture(RuleModel):
    """One named group of a pattern: how its text becomes a number, and in which unit."""

    type: Literal["int", "float", "str", "bytes", "seconds"] = "str"
    """`bytes` reads `2.50 GiB`, `512 MB`, `81920 kB`; `seconds` reads `600000 ms`, `10 min`, `1:02:03`."""
    unit: str = ""


class Signature(RuleModel):
    """A message that software emits: what the software says, not yet what is wrong."""

    id: SignatureId
    emitter: str
    """The software that writes it: `pytorch`, `nccl`, `slurm`, `kernel`, ..."""
    pattern: str
    """RE2 syntax, searched in one line without its logger and rank prefix; named groups are captures."""
    captures: dict[str, Capture] = Field(default_factory=dict)
    role: Role = "initiating"
    severity: Severity = "error"
    phase: str | None = None
    """Phase of the job that this message proves, if any."""
    says: str = ""
    """What the message means, one sentence."""
    matches: tuple[str, ...] = Field(min_length=1)
    rejects: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    verified: str = ""
    """Where the wording was checked: a package and version, a source file, or "not checked"."""

    def __hash__(self) -> int:
        return hash((self.id, self.pattern))


class SignatureFile(RuleModel):
    """One file `knowledge/signatures/<emitter>.yaml`."""

    emitter: str
    signatures: tuple[Signature, ...]

    @model_validator(mode="before")
    @classmethod
    def _emitter_once(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("signatures"), list):
            emitter = data.get("emitter")
            rows = [{"emitter": emitter, **row} if isinstance(row, dict) else row for row in data["signatures"]]
            return {**data, "signatures": rows}
        return data


class Condition(RuleModel):
    """One question to the run with three outcomes: met, not met, no data. Exactly one kind is set.

    `signature`  a signature was seen (`where` compares its captures, `rank` narrows who said it)
    `log`        an inline RE2 pattern was seen in log text
    `exception`  an exception type was raised (`where: {message: "matches ..."}` narrows it)
    `fact`       a fact compared with `op` and `value`
    `config`     a configuration key compared with `op` and `value`
    `package`    an installed package compared with `op` and `value` (versions compare as versions)
    `order`      [a, b]: signature a was seen before signature b
    `all` `any` `not`  combinations
    """

    signature: str | None = None
    log: str | None = None
    exception: str | None = None
    fact: str | None = None
    config: str | None = None
    package: str | None = None
    order: tuple[str, str] | None = None
    all: tuple[Condition, ...] | None = None
    any: tuple[Condition, ...] | None = None
    not_: Condition | None = Field(default=None, alias="not")

    op: Operator | None = None
    """Comparison for `fact`, `config` and `package`; `exists` when left out without a value, `==` with one."""
    value: bool | int | float | str | tuple[bool | int | float | str, ...] | None = None
    where: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Captures of a signature: `{tried_bytes: ">= 1000000", op: "matches ^ALL"}`; a bare value means equality."""
    rank: Literal["only", "first", "all", "outlier"] | None = None
    """`only` exactly one rank said it, `first` the first failing rank, `all` every rank, `outlier` a minority."""

    @model_validator(mode="after")
    def _one_kind(self) -> Condition:
        kinds = [name for name in _KIND_NAMES & self.model_fields_set if getattr(self, name) is not None]
        if len(kinds) != 1:
            wanted = "signature, log, exception, fact, config, package, order, all, any, not"
            raise ValueError(f"a condition needs exactly one of {wanted}; found {', '.join(sorted(kinds)) or 'none'}")
        return self

    @cached_property
    def kind(self) -> str:
        """Name of the one kind that is set; kept, because conditions are put to every run many times."""
        return next(name for name in CONDITION_KINDS if getattr(self, name) is not None).rstrip("_")


CONDITION_KINDS = ("signature", "log", "exception", "fact", "config", "package", "order", "all", "any", "not_")
_KIND_NAMES = frozenset(CONDITION_KINDS)


class EvidenceRule(Condition):
    """A condition that speaks for or against a cause."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    weight: Annotated[float, Field(gt=0, le=10)]
    """Nats added to (or, under `contradicts`, taken from) the log-odds of the cause when met."""
    says: str
    """What a reader learns when it is met; `{fact}` and `{capture}` names in braces are filled in."""
    group: str | None = None
    """Evidence of one group counts once, with its largest weight: rows that say the same thing share a group."""
    required: bool = False
    """The cause cannot be named without it: not met or no data means the cause is not considered."""


class Fix(RuleModel):
    """One thing to change."""

    action: str
    """Imperative, one line."""
    why: str = ""
    snippet: str = ""
    """Text to paste: a command, a line of code, a line of configuration.

    `<<lr.peak or config.learning_rate / 10 | LR / 10>>` puts in what the run tells, else what stands after the bar."""
    language: str = "python"
    risk: str = ""
    verify: str = ""
    """Command or observation that shows that it worked."""
    when: tuple[str, ...] = ()
    """Evidence ids of the cause that this fix is meant for: where one of them is met, it comes first."""


class Reference(RuleModel):
    """Where the knowledge comes from."""

    title: str
    url: str = ""


class Cause(RuleModel):
    """One way in which a job goes wrong."""

    id: CauseId
    title: str
    """Short noun phrase for headings."""
    sentence: str
    """The verdict as a sentence, past tense; may use `{fact}` names in braces."""
    summary: str
    """What goes wrong and why, two to five sentences."""
    prior: Annotated[float, Field(gt=0, lt=1)]
    """Share of failed jobs with this cause before anything is known."""
    evidence: tuple[EvidenceRule, ...] = ()
    contradicts: tuple[EvidenceRule, ...] = ()
    explains: tuple[str, ...] = ()
    """Causes and signatures that are only symptoms when this cause is at work; `nccl.*` covers a prefix."""
    experiments: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    falsepositives: tuple[str, ...] = ()
    decide: tuple[str, ...] = ()
    """The cheapest steps that would settle a suspicion, cheapest first."""
    maturity: Maturity = "experimental"
    references: tuple[Reference, ...] = ()
    field_guide: tuple[str, ...] = ()
    """Rows of the field guide that this cause covers, e.g. `C2`."""
    extends: str | None = None

    @property
    def domain(self) -> str:
        """First part of the id."""
        return self.id.split(".")[0]


class WrittenRun(RuleModel):
    """What a run left, written in a few lines."""

    log: str | dict[str, str] | None = None
    """Text of one log, or file name -> text."""
    series: dict[str, Any] | None = None
    """Synthetic metrics: `{step: 0..200, loss: decays 4 to 2 then nan at 120, learning_rate: constant 3e-4}`."""
    config: dict[str, Any] | None = None
    packages: dict[str, str] | None = None


class Case(WrittenRun):
    """One example that a cause must or must not fire on."""

    name: str = ""
    run: str | None = None
    """Folder beside the cases file."""
    baseline: WrittenRun | None = None
    """A healthy run of the same job to compare with, written like the case itself."""
    why: str = ""
    first: CauseId | None = None
    """Of a silent case: the cause that must come first there, the rival that this cause is mistaken for."""
    shows: tuple[str, ...] = ()
    """Ids of rules of the cause that must be met there: evidence under `fires`, what contradicts under `silent`."""

    @model_validator(mode="after")
    def _makes_a_run(self) -> Case:
        if not any(getattr(self, name) is not None for name in CASE_PARTS):
            raise ValueError(f"a case gives at least one of {', '.join(CASE_PARTS)}")
        for name in self.log if isinstance(self.log, dict) else ():
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise ValueError(f"the file name {name!r} under `log` leaves the run directory")
        return self


CASE_PARTS = ("log", "series", "config", "packages", "run")


class CaseFile(RuleModel):
    """`<cause>.cases.yaml`: the cause must come first on `fires`, and must not come first on `silent`."""

    fires: tuple[Case, ...] = Field(min_length=1)
    silent: tuple[Case, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _silent_says_why(self) -> CaseFile:
        for case in self.silent:
            if not case.why:
                raise ValueError("every case under `silent` needs `why:` (what makes it look like this cause)")
        if any(case.first for case in self.fires):
            raise ValueError("`first:` names the rival of a silent case; a case under `fires` has this cause first")
        return self


class Prediction(RuleModel):
    """Probability of each outcome of an experiment when a cause is at work; measured in the lab, not guessed."""

    confirmed: Annotated[float, Field(ge=0, le=1)]
    refuted: Annotated[float, Field(ge=0, le=1)]
    inconclusive: Annotated[float, Field(ge=0, le=1)]

    @model_validator(mode="after")
    def _sums_to_one(self) -> Prediction:
        total = self.confirmed + self.refuted + self.inconclusive
        if abs(total - 1) > 1e-6:
            raise ValueError(f"confirmed + refuted + inconclusive must be 1, found {total:g}")
        return self


class LoopRule(RuleModel):
    """How a `loop` experiment is carried out and decided; control and treatment differ by `change`."""

    runs: Literal["load", "pad", "step", "hold", "peak", "compile", "generate", "decode", "score", "align", "repeat"]
    """`load` reads batches beside a step, `pad` puts lengths into batches, `step` counts the operations of a training
    step, `hold` traces what steps leave behind at the run's sizes and `peak` what one needs, `compile` compiles for
    changing inputs, `generate` counts the arithmetic of an answer, `decode` writes text with a tiny trained decoder,
    `score` weighs right text with it, `align` pads its prompts, `repeat` gives one input repeatedly."""
    figure: str
    """The metric in words, as it follows "the": `time of a step`."""
    timed: bool = False
    """The metric is a time: arms alternate, the interval decides, and no time is repeated in a sentence."""
    requires: tuple[str, ...] = ()
    """Fields of the run's profile that must be known; what is missing is named and nothing is tested."""
    shows: dict[str, float] = Field(default_factory=dict)
    """Figure of the control arm -> value from which it shows the run's symptom."""
    agrees: dict[str, str] = Field(default_factory=dict)
    """Figure of the control arm -> field of the profile with what the run recorded, equal within `factor`."""
    factor: Annotated[float, Field(gt=1)] = 2.0
    compares: Literal["ratio", "difference"] = "ratio"
    """Control / treatment, or control - treatment."""
    at_least: float
    """Ratio or difference from which the experiment confirms."""
    below: float
    """Ratio or difference under which it refutes; between the two the change only mitigates."""

    @model_validator(mode="after")
    def _ordered(self) -> LoopRule:
        if self.below > self.at_least:
            raise ValueError("`below` must not be above `at_least`")
        return self


class ExperimentRule(RuleModel):
    """A control arm, a treatment arm with exactly one change, and what each cause predicts."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    title: str
    question: str
    kind: Literal["twin", "loop", "probe", "memory"] = "twin"
    """`twin` trains a tiny model; `loop` loads, steps or generates in a small loop; `probe` runs a named check
    (`probe:`); `memory` does measured arithmetic."""
    probe: str | None = None
    change: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Twin field -> new value, a factor such as `x0.1`, or a quantile of the control's gradient norms such as `q0.9`;
    exactly one entry for a treatment."""
    metric: str = "lost_gap"
    """What is compared between control and treatment."""
    loop: LoopRule | None = None
    """Of a `loop` experiment: which loop runs and how it is decided; `change` and `reproduces` name its settings."""
    symptoms: tuple[str, ...] = ()
    """Symptoms of the run that it can speak about (words of `rca.experiments.symptoms`); empty: any."""
    reproduces: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Twin (or loop) fields that plant the fault in the control arm where the run's own settings do not show it."""
    ladder: Annotated[int, Field(ge=1, le=4)] = 1
    """How often the change may be applied on top of itself when once only mitigates: `x0.1` twice is `x0.01`."""
    treatment: str = ""
    """The change in words, as they follow "with": `one tenth of the learning rate`."""
    planted: str = ""
    """The planted fault in words, for the scope of the result."""
    when_healthy: Literal["refuted", "not_reproduced"] = "not_reproduced"
    """Verdict when the control trains well and the treatment makes it worse: `refuted` only where the whole
    mechanism is on the twin (a learning rate is, a batch of the run's data is not)."""
    excludes: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Properties of the run under which it says nothing, e.g. `pretrained: true`, `accumulates: false`: fields and
    properties of `rca.experiments.interface.RunProfile`."""
    needs: tuple[Literal["weights", "tokenizer", "model", "samples", "splits"], ...] = ()
    """What the run must have left for it (by file names): weight files, a tokenizer, a model's config.json, samples,
    samples of training and held-out split. It is not offered without."""
    confirms: tuple[CauseId, ...]
    """Causes that a recovery under this change confirms."""
    says: str
    """What the outcome would mean, written before the run: the prediction shown in the report."""
    predicts: dict[str, Prediction]
    """Cause id, or `other` for every cause that is not listed."""
    cost: Annotated[float, Field(gt=0)]
    """CPU seconds with default settings, measured."""
    measured: str = ""
    """How the probabilities and the cost were measured."""


class Taxonomy(RuleModel):
    """Cause id -> one line of meaning, by domain."""

    causes: dict[str, str]
    untestable: dict[str, str] = Field(default_factory=dict)
    """Domain or cause id -> why a tiny training cannot show it, one sentence. An experiment of kind `twin` must not
    confirm such a cause, and the log says so where one leads that no experiment can confirm."""


class Calibration(RuleModel):
    """How scores become probabilities, fitted on labelled incidents by `rca eval CASES_DIR --fit FILE`."""

    temperature: Annotated[float, Field(ge=0.1, le=10)] = 1.0
    """Every log-odds is divided by it: above 1 the rules were too sure of themselves."""
    unknown: Annotated[float, Field(ge=-10, le=10)] = 0.0
    """Nats added to the head start of `unknown`."""
    unlisted: Annotated[float, Field(ge=0, le=1)] = 0.25
    """Share of the incidents that no cause explains whose cause nobody listed; the others have a known cause that left
    no sign. A quarter of the incidents of a large service had a new cause (RCACopilot, EuroSys'24)."""
    incidents: int = 0
    """How many labelled incidents it was fitted on."""
