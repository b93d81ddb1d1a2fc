"""One name for what many programs call differently: metrics and configuration keys."""

from __future__ import annotations

import re
from functools import lru_cache

from rca.ingest.settings.config_names import ALIASES

_METRICS: dict[str, tuple[str, ...]] = {
    "loss": (
        "loss",
        "train_loss",
        "train/loss",
        "training_loss",
        "trl",
        "lm loss",
        "lm_loss",
        "lm-loss",
        "loss/train",
        "train loss",
        "train.loss",
        "loss_step",
        "train_loss_step",
        "total_loss",
        "loss_total",
        "nll_loss",
        "train_inner/loss",
        "loss_metrics/global_avg_loss",
        "global_avg_loss",
        "train/lm_loss",
        "train/lm-loss",
        "sft_loss",
        "ce_loss",
        "train/samples/train_loss",
        "lm-loss-training/lm loss",
        "train/crossentropyloss",
        "loss/train/total",
        "loss/total_loss",
        "reduced_train_loss",
        "xent",
        "metrics/train/languagecrossentropy",
        "main/loss",
    ),
    "eval_loss": (
        "eval_loss",
        "eval/loss",
        "val_loss",
        "val/loss",
        "valid_loss",
        "validation_loss",
        "validation loss",
        "loss/val",
        "loss/valid",
        "loss/validation",
        "test_loss",
        "val loss",
        "tel",
        "valid/loss",
        "dev_loss",
        "lm loss value",
        "validation/loss",
        "loss/test",
        "test loss",
        "vl_loss",
        "eval/crossentropyloss",
        "metrics/eval/languagecrossentropy",
        "validation/main/loss",
    ),
    "grad_norm": (
        "grad_norm",
        "gradient_norm",
        "train/grad_norm",
        "grad norm",
        "gnorm",
        "grad-norm",
        "norm",
        "global_grad_norm",
        "gradnorm",
        "grad_norm_total",
        "total_norm",
        "grad_2.0_norm_total",
        "grad_norm/total",
        "|g|",
        "||g||",
        "|grad|",
        "||grad||",
        "grad-norm/grad-norm",
        "optim/total_grad_norm",
        "l2_norm/grad/global",
        "global_norm_grads",
    ),
    "learning_rate": (
        "learning_rate",
        "lr",
        "train/learning_rate",
        "learning rate",
        "train/lr",
        "current_lr",
        "lr-adamw",
        "lr-adam",
        "lr-sgd",
        "lr/group0",
        "lr/pg0",
        "lr0",
        "optim0_lr0",
        "optimizer/lr",
        "lr_group_0",
        "lr-adamw/pg1",
        "optim/lr",
        "learning-rate",
        "learning-rate/learning-rate",
        "train/samples/lr",
        "optim/learning_rate_group0",
        "lr-decoupledadamw/group0",
    ),
    "loss_scale": (
        "loss_scale",
        "loss scale",
        "scale",
        "amp_scale",
        "amp_scaler",
        "grad_scale",
        "scaler",
        "loss-scale",
        "loss-scale/loss-scale",
        "train/samples/loss_scale",
    ),
    "step_time": (
        "step_time",
        "iter_time",
        "train_step_timing",
        "train_step_timing in s",
        "time_per_step",
        "elapsed time per iteration (ms)",
        "batch_time",
        "batch time",
        "batch (t)",
        "batch_cost",
        "s/step",
        "step_s",
        "sec_per_step",
        "time/step",
        "seconds_per_step",
        "iteration_time",
        "time_per_iteration",
        "iteration-time",
        "time_metrics/end_to_end(s)",
        "step_time_s",
        "step_ms",
        "dt",
        "iteration-time/iteration-time",
    ),
    "data_time": (
        "data_time",
        "data_s",
        "data",
        "loader_time",
        "data time",
        "data (t)",
        "data_cost",
        "reader_cost",
        "data_loading_time",
        "data_load_time",
        "dataload_time",
        "data_loading_s",
        "time_metrics/data_loading(s)",
        "batch-generator",
        "data_wait",
        "data_ms",
    ),
    "throughput": (
        "throughput",
        "samples/s",
        "samples_per_second",
        "train_samples_per_second",
        "tokens/s",
        "tokens_per_second",
        "tok/s",
        "img/s",
        "images/s",
        "it/s",
        "wps",
        "tps",
        "throughput(tps)",
        "samples_per_sec",
        "tokens_per_sec",
        "tgs",
        "tokens_per_second_per_gpu",
        "imgs/s",
        "steps_per_second",
        "train_steps_per_second",
        "seq/s",
        "currsamplespersec",
        "samples/sec",
        "throughput/device/tokens_per_second",
        "throughput/tokens_per_sec",
        "token/s",
    ),
    "memory_allocated": (
        "memory_allocated",
        "mem_allocated",
        "cuda mem",
        "gpu_mem",
        "mem",
        "allocated",
        "memory/allocated",
        "allocated_gib",
        "gpu_memory",
        "memory",
        "max mem",
        "memory/max_active(gib)",
        "memory_gb",
        "alloc_gb",
        "peak_memory_active",
        "cuda_memory_allocated",
        "memallocated",
        "memory/max_mem_active(gib)",
        "mem_alloc",
        "vram",
        "alloc",
        "allocated_memory",
        "allocated_bytes.all.current",
    ),
    "memory_reserved": (
        "memory_reserved",
        "mem_reserved",
        "reserved",
        "memory/reserved",
        "reserved_gib",
        "max_reserved",
        "memory/max_reserved(gib)",
        "peak_memory_reserved",
        "reserved_gb",
        "memory/device_mem_reserved(gib)",
        "cached",
        "reserved_bytes.all.current",
    ),
    "accuracy": (
        "accuracy",
        "acc",
        "train_acc",
        "train/acc",
        "train/accuracy",
        "train_accuracy",
        "mean_token_accuracy",
        "main/accuracy",
        "main/acc",
    ),
    "eval_accuracy": (
        "eval_accuracy",
        "val_acc",
        "eval/accuracy",
        "val/acc",
        "val_accuracy",
        "valid_acc",
        "test_acc",
        "top1",
        "acc1",
        "test_accuracy",
        "val/accuracy",
        "validation_accuracy",
        "eval_acc",
        "validation/main/accuracy",
        "validation/main/acc",
    ),
    "perplexity": ("perplexity", "ppl", "lm loss ppl", "train/ppl"),
    "eval_perplexity": ("eval_perplexity", "eval/ppl", "val_ppl", "eval_ppl", "valid_ppl"),
    "epoch": ("epoch", "train/epoch", "ep"),
    "tokens": ("tokens", "num_input_tokens_seen", "num_tokens", "n_tokens", "tokens_seen", "consumed_tokens", "ntok"),
    "consumed_samples": ("consumed samples", "consumed_samples"),
    "skipped_steps": ("number of skipped iterations", "skipped_iterations", "skipped iterations", "skipped_steps"),
    "nan_steps": ("number of nan iterations", "nan_iterations"),
    "global_batch_size": ("global batch size", "global_batch_size"),
    "sequence_length": (
        "sequence_length",
        "seq_len",
        "seqlen",
        "max_len",
        "padded",
        "seq_length",
        "max_seq_len",
        "padded_len",
        "batch_max_length",
        "longest",
        "maxlen",
    ),
    "gpu_utilization": ("gpu_utilization", "utilization.gpu", "gpu_util", "sm", "utilization.gpu [%]", "util"),
    "gpu_temperature": ("gpu_temperature", "temperature.gpu", "gtemp", "temp", "gpu_temp"),
    "sm_clock": ("sm_clock", "clocks.sm", "clocks.current.sm", "pclk", "clocks.sm [mhz]", "clocks.current.sm [mhz]"),
    "power": ("power", "power.draw", "pwr", "power.draw [w]"),
}

_METRIC_OF = {alias: name for name, aliases in _METRICS.items() for alias in aliases}
_CONFIG_OF = {alias: name for name, aliases in ALIASES.items() for alias in aliases}
METRIC_NAMES = tuple(_METRICS)
CONFIG_NAMES = tuple(ALIASES)


_FIRST_DEVICE = re.compile(r"(?:gpu|cuda|device)[:_]?0[_/ -]")
"""The first device speaks for the process; the columns of the others keep their own names."""


_LEARNER = re.compile(r"^(?:info/)?learners?/default_policy/(?:learner_stats/)?(?P<name>\w+)$")
_OF_LEARNER = {
    "total_loss": "loss",
    "grad_gnorm": "grad_norm",
    "gradients_default_optimizer_global_norm": "grad_norm",
    "cur_lr": "learning_rate",
    "default_optimizer_learning_rate": "learning_rate",
}
"""What RLlib calls the figures of a single policy, in its old and its new interface."""

_PART = re.compile(r"[\s_./-]+")
_OF_DEVICE = frozenset({"gpu", "cuda", "torch", "device", "mem", "memory", "vram", "current", "curr", "usage", "used"})
_LIVE = frozenset({"alloc", "allocated", "allocation"})
_HELD = frozenset({"reserved", "cached"})
_SIZES = frozenset({"gib", "gb", "mib", "mb", "bytes"})


def _memory_in_words(name: str) -> str | None:
    """Return the common name of a metric that says device memory in words of its own: `cuda_alloc_mb`.

    A peak (`max_mem`) is no level, and the memory of the host or a share in percent is another figure.
    """
    words = set(_PART.split(name.strip("_./- ")))
    if words & _SIZES:
        words -= _SIZES
    elif not words & {"mem", "memory", "vram"}:
        return None
    rest = words - _LIVE - _HELD
    if not rest or not rest <= _OF_DEVICE or not words & {"gpu", "cuda", "torch", "device", "vram"}:
        return None
    if words & _HELD:
        return None if words & _LIVE else "memory_reserved"
    return "memory_allocated" if words & (_LIVE | {"mem", "memory", "vram"}) else None


_GRADIENT = frozenset({"grad", "grads", "gradient", "gradients"})
_OF_WHOLE_GRADIENT = frozenset(
    {"train", "training", "optim", "total", "global", "model", "all", "l2", "raw", "before", "pre", "unclipped", "clip"}
    | {"clipping", "avg", "mean", "max", "step", "the"}
)


def _gradient_in_words(name: str) -> str | None:
    """Return the common name of the norm of the whole gradient in words of its own: `train/grad_norm_before_clip`.

    What is left of it after clipping says nothing of its size.
    """
    words = set(_PART.split(name.strip("_./- ")))
    if not ("norm" in words and words & _GRADIENT) and not words & {"gnorm", "gradnorm"}:
        return None
    return "grad_norm" if words - _GRADIENT - {"norm", "gnorm", "gradnorm"} <= _OF_WHOLE_GRADIENT else None


@lru_cache(maxsize=4096)
def canonical_metric(raw: str) -> str:
    """Return the common name of a metric, or the name as printed (lower case) when it has none."""
    name = raw.strip().lower()
    # Lightning's DeviceStatsMonitor prefixes the allocator's own names with the hook that logged them.
    name = name.rsplit("/", 1)[-1] if name.startswith("devicestatsmonitor.") else name
    plain = re.sub(r"[\s.]+", "_", name)
    known = _METRIC_OF.get(name) or _METRIC_OF.get(plain)
    if known is None and (learner := _LEARNER.match(name.replace(".", "/"))) is not None:
        known = _OF_LEARNER.get(learner["name"])
    if known is None and (first := _FIRST_DEVICE.match(plain)) is not None:
        known = _METRIC_OF.get(f"gpu_{plain[first.end() :]}") or _METRIC_OF.get(plain[first.end() :])
    return known or _memory_in_words(name) or _gradient_in_words(name) or name


@lru_cache(maxsize=4096)
def canonical_config(raw: str) -> str:
    """Return the common name of a configuration key, or the key as written (lower case, dotted) when it has none."""
    key = raw.strip().lstrip("-").lower().replace("-", "_")
    return _CONFIG_OF.get(key) or _CONFIG_OF.get(key.rsplit(".", 1)[-1]) or key
