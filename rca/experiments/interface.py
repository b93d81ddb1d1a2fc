"""What an experiment needs to know of the run, and what the agent asks of an experimenter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from rca.diagnosis import Experiment
from rca.rules.schema import ExperimentRule

LATE = 1000
"""Steps at the rate of the failure from which it counts as late: more than ten times what a twin trains, and what a
rate that is too high needs to show itself (all reproduced divergences began within 60 steps)."""
LARGE_EPSILON, HIGH_MOMENTUM = 1e-3, 0.98
"""From here on a setting changes the size of every step so much that another learning rate makes up for it."""
LONG = 3.0
"""Length of the failing batch over the median from which it is an outlier."""


class RunProfile(BaseModel):
    """What the run used, as far as it left a trace; None where it said nothing."""

    model_config = ConfigDict(frozen=True)

    family: str | None = None
    """`model_type` of transformers (`llama`, `gpt2`, `bert`, `t5`, ...) or `cnn` / `mlp`."""
    hidden_size: int | None = None
    num_layers: int | None = None
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    intermediate_size: int | None = None
    vocab_size: int | None = None
    max_position_embeddings: int | None = None
    tie_word_embeddings: bool | None = None
    initializer_range: float | None = None
    parameters: float | None = None
    optimizer: str | None = None
    learning_rate: float | None = None
    """Configured peak learning rate."""
    learning_rate_at_failure: float | None = None
    lr_scheduler: str | None = None
    warmup_steps: int | None = None
    adam_beta1: float | None = None
    adam_beta2: float | None = None
    adam_eps: float | None = None
    momentum: float | None = None
    weight_decay: float | None = None
    batch_size: int | None = None
    """Micro-batch per device."""
    gradient_accumulation_steps: int | None = None
    world_size: int | None = None
    max_grad_norm: float | None = None
    precision: Literal["fp32", "fp16", "bf16"] | None = None
    seq_length: int | None = None
    gradient_checkpointing: bool | None = None
    zero_stage: int | None = None
    lora_r: int | None = None
    failure_step: int | None = None
    first_loss: float | None = None
    device_capacity_bytes: int | None = None
    allocated_bytes: int | None = None
    tried_bytes: int | None = None
    seed: int | None = None
    symptoms: tuple[str, ...] = ()
    """What went wrong as seen from outside, in the words of `rca.experiments.symptoms`; empty when nothing did."""
    symptom_step: int | None = None
    """Optimizer step at which the symptom began."""
    pretrained: bool | None = None
    """Started from trained weights (the first loss is far below chance)."""
    num_labels: int | None = None
    attn_implementation: str | None = None
    dropout: float | None = None
    max_new_tokens: int | None = None
    sequence_outlier: float | None = None
    """Sequence length of the failing batch over the median."""
    oom_phase: str | None = None
    data_share: float | None = None
    """Share of the step spent waiting for data."""
    step_time_s: float | None = None
    num_workers: int | None = None
    weight_dtype: Literal["fp32", "fp16", "bf16"] | None = None
    """Type in which the weights are kept; half types mean a cast model, not autocast."""
    growth_gib_per_step: float | None = None
    token_growth: float | None = None
    """Time per generated token of long over short requests."""
    use_cache: bool | None = None
    repeat_spread: float | None = None
    """Median spread of the run's outputs over repetitions of one input, relative to their mean."""
    learning_rate_peak: float | None = None
    """Highest learning rate that was logged."""
    lr_decay: float | None = None
    """Last logged learning rate over the highest, where it lies behind it."""
    lr_half_share: float | None = None
    """Share of the logged steps after the peak until the rate had fallen to half of it."""
    lr_warmup_share: float | None = None
    """Share of the logged steps until the rate reached nine tenths of its peak."""
    steps_at_rate: int | None = None
    """Steps before the symptom with nine tenths of the rate at the failure or more."""
    loss_scale_initial: float | None = None
    loss_scale_window: int | None = None
    """Clean steps after which the scale doubles."""
    loss_reduction: Literal["mean", "sum"] | None = None
    ignore_index: int | None = None
    ignored_share: float | None = None
    """Share of the label positions that the loss leaves out; 1 when all samples have none."""
    activation: str | None = None
    norm_eps: float | None = None

    @property
    def late(self) -> bool:
        """The failure came after a long time at the same learning rate, which a minute of training does not show."""
        return (self.steps_at_rate or 0) >= LATE

    @property
    def large_epsilon(self) -> bool:
        """Adam's epsilon outweighs ordinary second moments, so that its steps shrink with the gradient."""
        return (self.adam_eps or 0.0) >= LARGE_EPSILON

    @property
    def high_momentum(self) -> bool:
        """The momentum multiplies each step by fifty or more."""
        return (self.momentum or 0.0) >= HIGH_MOMENTUM

    @property
    def accumulates(self) -> bool:
        """Gradients of several micro-batches are recorded to make one step."""
        return (self.gradient_accumulation_steps or 1) > 1

    @property
    def length_outliers(self) -> bool:
        """The failing batch is recorded as much longer than usual."""
        return (self.sequence_outlier or 0.0) >= LONG

    prefetch_factor: int | None = None
    """Batches that each loader process reads ahead."""
    lengths: tuple[int, ...] | None = None
    """Sequence lengths that the run recorded, thinned to at most 400, shortest first."""
    padding_share: float | None = None
    """Share of the computed tokens that are padding."""
    pads_to_maximum: bool | None = None
    """Every sample is padded to the maximum length instead of to the longest of its batch."""
    syncs_per_step: float | None = None
    """Waits of the host for the device in a profiled step."""
    launches_per_step: float | None = None
    """Kernel launches in a profiled step."""
    recompile_reason: Literal["size", "value"] | None = None
    """What failed the guards of a compiled function: the size of an input, or something else."""
    compile_dynamic: bool | None = None
    """`dynamic=` of torch.compile; None leaves it to the compiler."""
    num_beams: int | None = None
    do_sample: bool | None = None
    temperature: float | None = None
    repetition_penalty: float | None = None
    weight_bits: int | None = None
    """Bits of quantised weights."""
    padding_side: Literal["left", "right"] | None = None
    """Side on which the tokenizer pads."""
    eval_accumulation_steps: int | None = None
    """Evaluation steps after which outputs move to the host."""
    reserved_unallocated_bytes: int | None = None
    """Memory that the allocator held in gaps when an allocation failed."""
    others_bytes: int | None = None
    """Device memory held by other processes."""


@dataclass(frozen=True)
class Material:
    """What an experiment may use beside the profile: files, which no report ever repeats by their place."""

    folder: Path | None = None
    """The run directory; hostile, so nothing in it is executed or unpickled."""
    elsewhere: str = ""
    """Address of a run directory of a remote store, which has no folder here."""
    data: Path | None = None
    """Samples that the user named with `--data`."""
    twin: str | None = None
    """`FILE.py:FUNCTION` that the user named with `--twin`: builds the model that takes the twin's place."""
    baseline: RunProfile | None = None
    """The healthy run of the same job, where one was given."""


NOTHING = Material()


class Experimenter(Protocol):
    """Carries out one experiment; never raises for what the experiment itself does."""

    def __call__(
        self, rule: ExperimentRule, *, profile: RunProfile, device: str, seconds: float, material: Material = NOTHING
    ) -> Experiment:
        """Run the arms of `rule` on a twin of `profile` within `seconds` and judge the outcome."""
