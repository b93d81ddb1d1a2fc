"""One arm with one seed: sixty steps of a tiny training. Imported in the child process only: loads torch."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from rca.experiments.precision import forward_precision
from rca.experiments.twin.config import DENSE, TwinConfig
from rca.experiments.twin.data import Batch, Stream
from rca.experiments.twin.models import build, embeddings, input_embedding

_EARLY, _LOOK_EVERY = 4, 6
_HOPELESS = 20.0
"""Loss in units of chance above which an arm without loss scaling is stopped after five steps."""


@dataclass(frozen=True)
class Training:
    """What an arm trains on: everything that another model, other data or another loss would bring along."""

    model: nn.Module
    """On its device, with fresh weights."""
    batches: Iterable[Sequence[Batch]]
    """The micro-batches of each optimizer step."""
    evaluation: Batch
    """Fixed and clean: all arms are compared on it."""
    loss: Callable[[Batch], torch.Tensor]
    """Training loss of one micro-batch, in the precision of the arm."""
    evaluate: Callable[[Batch], torch.Tensor]
    """Loss in fp32, without gradients."""
    chance: float
    """Loss of a model that knows nothing, in nats."""
    watched: Batch | None = None
    """Clean data on which the loss is looked at during training; None does not look."""


def training_of(
    config: TwinConfig, seed: int, *, device: str, data: Callable[[TwinConfig, int], Stream] = Stream
) -> Training:
    """Return the model, the data (synthetic ones unless others are given) and the loss of one arm.

    Seed torch's generator first.
    """
    stream = data(config, config.seed + seed)
    model = build(config).to(device)
    objective = _Objective(model, config, device)
    return Training(
        model=model,
        batches=stream.training(),
        evaluation=stream.evaluation(),
        loss=objective.loss,
        evaluate=objective.evaluate,
        chance=config.chance,
        watched=stream.watched() if config.samples else None,
    )


def train_arm(
    config: TwinConfig, seed: int, *, device: str = "cpu", make: Callable[..., Training] | None = None
) -> dict[str, Any]:
    """Train one arm and return its curves and its loss on the clean evaluation batch, as JSON-able values.

    `make` takes the place of `training_of`: another model, or other data.
    """
    started, cpu = time.perf_counter(), time.process_time()
    torch.manual_seed(config.seed + seed)
    torch.use_deterministic_algorithms(True, warn_only=device != "cpu")
    training = (make or training_of)(config, seed, device=device)
    model = training.model
    run = _Loop(training, _optimizer(model, config), config, device)
    before = [weight.detach().clone() for weight in model.parameters()]
    for step, batches in enumerate(training.batches):
        run.step(step, batches)
        if run.hopeless():
            break
    moved = sum(not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    evaluated = float(training.evaluate(training.evaluation))
    losses = run.losses + [math.nan] * (config.steps - len(run.losses))
    return {
        "seed": seed,
        "eval_loss": evaluated,
        "chance": training.chance,
        "losses": losses,
        "scales": run.scales,
        "skipped": run.skipped,
        "grad_norms": run.grad_norms,
        "dropped": run.dropped,
        "watched": run.watched,
        "layer_ratio": run.layer_ratio,
        "tensors": len(before),
        "tensors_moved": moved,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "cpu_seconds": time.process_time() - cpu,
        "seconds": time.perf_counter() - started,
        "curve_hash": hashlib.sha256(repr(losses).encode()).hexdigest()[:16],
    }


class _Loop:
    """The state of one training: weights, scaler and what was recorded."""

    def __init__(self, training: Training, optimizer: torch.optim.Optimizer, config: TwinConfig, device: str) -> None:
        self.training, self.optimizer, self.config = training, optimizer, config
        self.scaler = torch.amp.GradScaler(
            device,
            init_scale=config.init_scale,
            growth_interval=config.growth_interval,
            enabled=config.precision == "fp16" and config.scaler and config.frozen != "all",
        )
        self.bases = [group["lr"] for group in optimizer.param_groups]
        self.losses: list[float | None] = []
        """None where the whole batch was dropped."""
        self.scales: list[float] = []
        self.skipped: list[int] = []
        self.grad_norms: list[float] = []
        self.dropped = 0
        self.watched: list[tuple[int, float]] = []
        """Step and loss on the watched data."""
        self.layer_ratio: float | None = None
        """Gradient norm of the first matrix over that of the last, in an early step of a plain network: residual
        connections keep it up, and attention matrices get little in every healthy training."""

    def step(self, step: int, batches: Sequence[Batch]) -> None:
        """Do one optimizer step."""
        config = self.config
        if config.skip_bad_batches:
            kept = [
                batch for batch in batches if not batch.poisoned and batch.weight == 1 and (batch.labels != -100).any()
            ]
            self.dropped += len(batches) - len(kept)
            if not kept:
                self.losses.append(None)
                return
            batches = kept
        for group, base in zip(self.optimizer.param_groups, self.bases, strict=True):
            group["lr"] = base * _share_of_peak(config, step)
        if config.zero_grad:
            self.optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for batch in batches:
            loss = self.training.loss(batch) / len(batches)
            total += loss.item()
            factor = config.loss_factor * batch.weight * (1 if config.accumulation_mean else len(batches))
            self.scaler.scale(loss * factor).backward()  # type: ignore[no-untyped-call]
        if config.loss_reduction == "sum":
            total /= max(1, sum(int((batch.labels != -100).sum()) for batch in batches) // len(batches))
        self.losses.append(total)
        self.scaler.unscale_(self.optimizer)
        limit = config.clip if config.clip > 0 else math.inf
        norm = torch.nn.utils.clip_grad_norm_(self.training.model.parameters(), limit)
        self.grad_norms.append(float(norm))
        if self.scaler.is_enabled():
            old = self.scaler.get_scale()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.scales.append(self.scaler.get_scale())
            self.skipped.append(int(self.scaler.get_scale() < old))
        else:
            self.optimizer.step()
        if step == _EARLY:
            self.layer_ratio = _layer_ratio(self.training.model) if self.config.family in DENSE else None
        if step % _LOOK_EVERY == _LOOK_EVERY - 1:
            self._look(step)

    def _look(self, step: int) -> None:
        """Evaluate on the watched data."""
        training = self.training
        if training.watched is None:
            return
        self.watched.append((step, float(training.evaluate(training.watched))))
        training.model.train()

    def hopeless(self) -> bool:
        """Whether going on cannot change the outcome: weights that are not finite, or a loss beyond any return."""
        if self.scaler.is_enabled() or len(self.losses) < 5:
            return False
        last = [math.nan if loss is None else loss for loss in self.losses[-5:]]
        dropped = any(loss is None for loss in self.losses[-5:])
        lost = not dropped and all(not math.isfinite(loss) for loss in last)
        return lost or all(loss > _HOPELESS * self.training.chance for loss in last)


class _Objective:
    """The loss of the twin's own models on synthetic data."""

    def __init__(self, model: nn.Module, config: TwinConfig, device: str) -> None:
        self.model, self.config, self.device = model, config, device
        self.embedding = input_embedding(model)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the training loss of one micro-batch."""
        config = self.config
        with forward_precision(config.precision, self.device):
            logits = self._forward(batch)
        if config.logit_offset:
            logits = logits + config.logit_offset
        low = config.loss_dtype == "low" and config.precision != "fp32"
        logits = logits.to(torch.float16 if config.precision == "fp16" else torch.bfloat16) if low else logits.float()
        labels = torch.from_numpy(batch.labels).to(self.device).reshape(-1)
        logits = logits.reshape(-1, logits.shape[-1])
        if config.loss == "cross_entropy":
            return nn.functional.cross_entropy(logits, labels, reduction=config.loss_reduction)
        odds = torch.exp(logits)
        chosen = odds.gather(1, labels[:, None]).squeeze(1) / odds.sum(dim=1)
        losses = -torch.log(chosen)
        return losses.sum() if config.loss_reduction == "sum" else losses.mean()

    def evaluate(self, batch: Batch) -> torch.Tensor:
        """Return the loss on clean data in fp32."""
        self.model.eval()
        with torch.no_grad():
            logits = self._forward(batch).float()
            labels = torch.from_numpy(batch.labels).to(self.device).reshape(-1)
            return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels)

    def _forward(self, batch: Batch) -> torch.Tensor:
        inputs = torch.from_numpy(batch.inputs).to(self.device)
        hook = None
        if batch.poisoned and self.embedding is not None:
            hook = self.embedding.register_forward_hook(_spoil)
        if self.config.family in {"cnn", "mlp"}:
            logits = self.model(inputs)
        elif batch.source is not None:
            source = torch.from_numpy(batch.source).to(self.device)
            logits = self.model(input_ids=source, decoder_input_ids=inputs).logits
        else:
            logits = self.model(input_ids=inputs).logits
        if hook is not None:
            hook.remove()
        return logits if isinstance(logits, torch.Tensor) else torch.as_tensor(logits)


def _share_of_peak(config: TwinConfig, step: int) -> float:
    """Learning rate of a step over the peak: a straight warm-up, then a straight decay."""
    if step < config.warmup:
        return (step + 1) / config.warmup
    if config.decay == 1.0:
        return 1.0
    length = config.decay_steps or max(1, config.steps - config.warmup)
    return 1.0 - (1.0 - config.decay) * min(1.0, (step - config.warmup + 1) / length)


def _layer_ratio(model: nn.Module) -> float | None:
    """Gradient norm of the first matrix over that of the last."""
    found = [weight.grad for weight in model.parameters() if weight.dim() >= 2]
    norms = [float(grad.norm()) for grad in found if grad is not None]
    if len(norms) < 2 or not math.isfinite(norms[0]) or not math.isfinite(norms[-1]) or 0 in (norms[0], norms[-1]):
        return None
    return norms[0] / norms[-1]


def _spoil(_module: nn.Module, _args: Any, output: torch.Tensor) -> torch.Tensor:
    """Make the features of the first item not finite, as a corrupt sample does."""
    spoiled = torch.zeros_like(output)
    spoiled[0] = torch.nan
    return output + spoiled


def _optimizer(model: nn.Module, config: TwinConfig) -> torch.optim.Optimizer:
    hidden: list[nn.Parameter] = []
    other: list[nn.Parameter] = []
    skip = embeddings(model)
    for name, weight in model.named_parameters():
        head = "head" in name or "classifier" in name or "score" in name
        if config.frozen == "all" or (config.frozen == "body" and not head):
            continue
        (hidden if weight.dim() == 2 and id(weight) not in skip else other).append(weight)
    groups: list[dict[str, Any]] = [
        {"params": hidden, "lr": config.lr * config.lr_factor},
        {"params": other, "lr": config.lr},
    ]
    groups = [group for group in groups if group["params"]]
    if not groups:
        groups = [{"params": [nn.Parameter(torch.zeros(1))], "lr": config.lr}]
    decay = config.weight_decay
    # The fused kernels give the same numbers in a tenth of the time; with a loss scaler the plain ones stay.
    fused = config.precision != "fp16"
    adam: dict[str, Any] = {
        "betas": (config.beta1, config.beta2),
        "eps": config.eps,
        "weight_decay": decay,
        "fused": fused,
    }
    if config.optimizer == "adamw":
        return torch.optim.AdamW(groups, **adam)
    if config.optimizer == "adam":
        return torch.optim.Adam(groups, **adam)
    if config.optimizer == "rmsprop":
        return torch.optim.RMSprop(groups, weight_decay=decay, eps=config.eps, momentum=config.momentum)
    if config.optimizer == "adagrad":
        return torch.optim.Adagrad(groups, weight_decay=decay)
    return torch.optim.SGD(groups, weight_decay=decay, momentum=config.momentum, fused=fused)
