"""What a small loop does, as values: the run's settings carried over, one of them changed in the treatment.

Nothing here runs anything. What the run did not record takes the default of the common libraries (transformers,
torch), which is what a run that says nothing uses.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rca.errors import ExperimentError
from rca.experiments.interface import RunProfile
from rca.experiments.memory.question import MemoryQuestion, question_of
from rca.experiments.twin.config import DECODERS, DENSE, TwinConfig, reference_of, twin_of
from rca.rules.schema import LoopRule

STEP_MS = 20.0
"""Length of a step of the loading loop; the run's own proportions are kept."""
MOST_WORKERS = 8
LITTLE_WAITING = 0.05
"""Share of waiting below which worker processes keep up: the step then does not last as long as their reading."""
MOST_TOKENS = 24
"""Tokens of an answer; what a token costs grows as it does over a long one."""
NEW_TOKENS = 24
TRAINED_STEPS = 80
"""Training of the decoder that writes: 65 % of the loss of chance are gone then, of 76 % that the language allows."""


class LoopConfig(BaseModel):
    """Everything that determines one arm; two arms of an experiment differ in exactly one field."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    loop: Literal["load", "pad", "step", "hold", "peak", "compile", "generate", "decode", "score", "align", "repeat"]

    source: Literal["storage", "memory"] = "storage"
    """`memory` hands out one batch that was read before."""
    num_workers: int = Field(default=0, ge=0, le=16)
    prefetch: int = Field(default=0, ge=0, le=16)
    """Batches read ahead beside the step without worker processes."""
    read_ms: float = Field(default=0.0, ge=0, le=1000)
    """Time to read one batch."""
    compute_ms: float = Field(default=STEP_MS, ge=0, le=1000)

    batch: int = Field(default=8, ge=1, le=4096)
    padding: Literal["longest", "max_length"] = "longest"
    grouping: Literal["random", "length"] = "random"
    """`length` puts samples of similar length into one batch."""

    reads: int = Field(default=0, ge=0, le=5000)
    """Values that the host reads from the device in each step."""
    scaler: bool = False
    optimizer: Literal["for_loop", "foreach", "fused"] = "foreach"
    graphs: bool = False
    """The whole step is recorded once and launched as one graph."""

    mode: Literal["train", "eval"] = "train"
    grad: bool = True
    keeps: Literal["graph", "outputs", "number"] = "number"
    """What outlives each step on the device."""
    checkpointing: bool = False
    attention: Literal["eager", "sdpa"] = "sdpa"

    dynamic: Literal["off", "auto", "on"] = "auto"
    """`dynamic=` of torch.compile."""
    varies: Literal["nothing", "size", "value"] = "size"
    """What changes from step to step: the length of the input, or a Python number."""

    use_cache: bool = True
    beams: int = Field(default=1, ge=1, le=16)
    new_tokens: int = Field(default=MOST_TOKENS, ge=4, le=256)

    sampling: bool = False
    temperature: float = Field(default=1.0, gt=0, lt=100)
    repetition_penalty: float = Field(default=1.0, gt=0, lt=100)
    bits: int = Field(default=32, ge=2, le=32)
    """Bits of the weights; 16 and more are not rounded."""
    padding_side: Literal["left", "right"] = "left"

    seed: int = 0


class Setting(NamedTuple):
    """What both arms share: the model, the sizes and the data of the run."""

    twin: TwinConfig | None = None
    """The tiny model."""
    question: MemoryQuestion | None = None
    """A step at the run's real sizes, for tracing without data."""
    lengths: tuple[int, ...] = ()
    maximum: int = 0
    """Length to which `max_length` pads."""
    depth: int = 2
    """Layers of the run: counts of two small depths are continued to it."""
    dropout: float | None = None
    """None takes the default of the model class."""
    launches: float = 0.0
    """Kernel launches of a step of the run; 0 where it recorded none."""
    step_ms: float = 0.0
    """Length of a step of the run."""
    notes: tuple[str, ...] = ()
    """What could not be carried over."""

    def payload(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "twin": self.twin.model_dump(mode="json") if self.twin else None,
            "question": self.question.model_dump(mode="json") if self.question else None,
            "lengths": list(self.lengths),
            "maximum": self.maximum,
            "depth": self.depth,
            "dropout": self.dropout,
            "launches": self.launches,
            "step_ms": self.step_ms,
        }

    @classmethod
    def from_payload(cls, data: dict[str, Any]) -> Setting:
        """Read what `payload` wrote."""
        return cls(
            twin=TwinConfig.model_validate(data["twin"]) if data["twin"] else None,
            question=MemoryQuestion.model_validate(data["question"]) if data["question"] else None,
            lengths=tuple(data["lengths"]),
            maximum=data["maximum"],
            depth=data["depth"],
            dropout=data["dropout"],
            launches=data["launches"],
            step_ms=data["step_ms"],
        )


def loop_of(profile: RunProfile, rule: LoopRule) -> tuple[LoopConfig, Setting]:
    """Return the run's own settings as a loop and what both arms share.

    Raises ExperimentError where the run did not record what the loop needs, or has no such loop.
    """
    fields: dict[str, Any] = {}
    setting = Setting()
    if rule.runs == "load":
        fields, setting = _loading(profile)
    elif rule.runs == "pad":
        fields, setting = _padding(profile)
    elif rule.runs == "step":
        fields, setting = _stepping(profile), _tiny(profile)
    elif rule.runs in {"hold", "peak"}:
        fields, setting = _holding(profile)
    elif rule.runs == "compile":
        dynamic = {True: "on", False: "off", None: "auto"}[profile.compile_dynamic]
        fields = {"dynamic": dynamic, "varies": profile.recompile_reason or "nothing"}
    elif rule.runs == "repeat":
        fields, setting = _repeating(profile), _tiny(profile)
    else:
        fields, setting = _writing(profile), _decoder(profile, trained=rule.runs != "generate")
    try:
        return LoopConfig(loop=rule.runs, **fields), setting
    except ValidationError as error:
        first = error.errors()[0]
        raise ExperimentError(
            f"no loop has {'.'.join(map(str, first['loc']))} = {first['input']!r}: {first['msg']}"
        ) from error


def changed(config: LoopConfig, change: dict[str, Any]) -> LoopConfig:
    """Return `config` with new values; a text such as `+4` adds.

    Raises ExperimentError for a field that loops do not have or a value it cannot take.
    """
    unknown = sorted(set(change) - set(LoopConfig.model_fields))
    if unknown:
        raise ExperimentError(f"a loop has no setting `{unknown[0]}`; it has {', '.join(LoopConfig.model_fields)}")
    update = {
        name: getattr(config, name) + int(value[1:]) if isinstance(value, str) and value[:1] == "+" else value
        for name, value in change.items()
    }
    try:
        return LoopConfig.model_validate({**config.model_dump(), **update})
    except ValidationError as error:
        raise ExperimentError(f"a loop cannot take {change}: {error.errors()[0]['msg']}") from error


def _loading(profile: RunProfile) -> tuple[dict[str, Any], Setting]:
    """Reading and computing in the run's proportions: with worker processes the step lasts as long as they need."""
    share = min(max(profile.data_share or 0.0, 0.0), 0.98)
    workers = min(profile.num_workers or 0, MOST_WORKERS)
    slow = share >= LITTLE_WAITING
    fields = {
        "num_workers": workers,
        "read_ms": round(STEP_MS * (workers if workers and slow else share), 3),
        "compute_ms": round(STEP_MS * (1 - share), 3),
    }
    unknown = profile.num_workers is None
    return fields, Setting(notes=("the number of loader processes (not recorded; none stands in)",) if unknown else ())


def _padding(profile: RunProfile) -> tuple[dict[str, Any], Setting]:
    batch = max(2, min(profile.batch_size or 8, 64))
    maximum = bool(profile.pads_to_maximum)
    lengths = profile.lengths or ()
    notes: tuple[str, ...] = ()
    top = profile.seq_length or (max(lengths) if lengths else 0)
    if not lengths and profile.padding_share is not None:
        from rca.experiments.loops.pad import lengths_with

        top = top or 512
        lengths = lengths_with(profile.padding_share, batch=batch, maximum=top if maximum else 0)
        notes = ("the lengths of the samples (drawn so that the share of padding is the run's)",)
    if not lengths:
        raise ExperimentError("the run recorded neither sequence lengths nor the share of padding")
    fields = {"batch": batch, "padding": "max_length" if maximum else "longest"}
    return fields, Setting(lengths=lengths, maximum=max(top, *lengths), notes=notes)


def _stepping(profile: RunProfile) -> dict[str, Any]:
    name = (profile.optimizer or "").lower()
    reads = round(min(max(profile.syncs_per_step or 0.0, 0.0), 1000.0))
    return {
        "reads": reads,
        "scaler": profile.precision == "fp16",
        "optimizer": "fused" if "fused" in name or "apex" in name else "foreach",
    }


def _holding(profile: RunProfile) -> tuple[dict[str, Any], Setting]:
    question = question_of(profile)
    evaluates = "eval_out_of_memory" in profile.symptoms
    fields: dict[str, Any] = {
        "checkpointing": question.checkpointing,
        "attention": question.attention,
        "mode": "eval" if evaluates else "train",
        "keeps": "outputs" if evaluates and not profile.eval_accumulation_steps else "number",
        "grad": not evaluates,
    }
    notes = ("the batch of the evaluation (that of the training stands in)",) if evaluates else ()
    return fields, Setting(question=question, depth=question.layers, notes=notes)


def _writing(profile: RunProfile) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "use_cache": profile.use_cache if profile.use_cache is not None else True,
        "beams": min(profile.num_beams or 1, 16),
        "new_tokens": min(max(profile.max_new_tokens or MOST_TOKENS, 8), MOST_TOKENS),
        "sampling": bool(profile.do_sample),
        "padding_side": profile.padding_side or "left",
    }
    if profile.temperature is not None:
        fields["temperature"] = profile.temperature
        fields["sampling"] = profile.do_sample is not False
    if profile.repetition_penalty is not None:
        fields["repetition_penalty"] = profile.repetition_penalty
    if profile.weight_bits is not None and profile.weight_bits < 16:
        fields["bits"] = profile.weight_bits
    return fields


def _repeating(profile: RunProfile) -> dict[str, Any]:
    sampled = profile.do_sample is True or (profile.do_sample is None and bool(profile.temperature))
    return {"mode": "eval", "sampling": sampled}


def _tiny(profile: RunProfile) -> Setting:
    twin = twin_of(profile)
    config = reference_of(twin.config).model_copy(update={"batch": twin.config.batch})
    notes = () if profile.family else ("the model class (not recorded; a generic pre-norm decoder stands in)",)
    return Setting(
        twin=config,
        depth=profile.num_layers or config.layers,
        dropout=profile.dropout,
        launches=profile.launches_per_step or 0.0,
        step_ms=1000 * (profile.step_time_s or 0.0),
        notes=notes,
    )


def _decoder(profile: RunProfile, *, trained: bool) -> Setting:
    """The tiny decoder that writes; what is compared are the settings, so a trained one is always of the same kind."""
    twin = twin_of(profile)
    if twin.config.family in DENSE or twin.config.family not in DECODERS:
        raise ExperimentError(f"{twin.config.family} does not generate token by token")
    config = reference_of(TwinConfig() if trained else twin.config)
    if not trained:
        return Setting(twin=config)
    notes = () if twin.config.family == config.family else (f"the model class {twin.config.family}",)
    return Setting(twin=config.model_copy(update={"steps": TRAINED_STEPS}), notes=notes)
