"""One training step, counted: operations launched and values read by the host. Imported in the child only: loads torch.

A processor has no queue of kernels to wait for, so the time that a read costs on a GPU does not show here; its number
does. Two small depths are counted and continued to the run's depth: operations grow in proportion to the layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from rca.experiments.loops.config import LoopConfig, Setting
from rca.experiments.twin.config import TwinConfig
from rca.experiments.twin.train import training_of

_DEPTHS = (1, 2)
_READS = ("_local_scalar_dense", "is_nonzero", "nonzero", "equal")
LAUNCH_US = 5.0
"""Time of the host for one launch from Python: 5 to 10 us are usual, the kernel launch itself takes 2 to 3 of them."""
_NO_KERNEL = ("empty", "empty_like", "empty_strided", "new_empty", "detach", "lift_fresh", "_unsafe_view", "alias")


def step(config: LoopConfig, setting: Setting) -> dict[str, float]:
    """Return `syncs_per_step` and `launches_per_step` at the depth of the run, and `launch_share`: the time of the
    launches, as many as the run recorded, over the length of its step."""
    if setting.twin is None:
        raise ValueError("a step needs a model")
    few, more = (_counts(config, setting.twin.model_copy(update={"layers": depth})) for depth in _DEPTHS)
    further = (setting.depth - _DEPTHS[0]) / (_DEPTHS[1] - _DEPTHS[0])
    found = {name: few[name] + (more[name] - few[name]) * further for name in few}
    launches = setting.launches or found["launches_per_step"]
    spent = LAUNCH_US / 1000 * (1.0 if config.graphs else launches)
    return {**found, "launch_share": min(1.0, spent / setting.step_ms) if setting.step_ms else 0.0}


def _counts(config: LoopConfig, twin: TwinConfig) -> dict[str, float]:
    torch.manual_seed(config.seed)
    training = training_of(twin.model_copy(update={"steps": 2}), config.seed, device="cpu")
    optimizer = _optimizer(training.model, config)
    scaler = torch.amp.GradScaler("cpu", enabled=config.scaler)
    counter = _Counter()
    for number, batches in enumerate(training.batches):
        with counter.on(number > 0):
            optimizer.zero_grad(set_to_none=True)
            loss = training.loss(batches[0])
            scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
            for _ in range(config.reads):
                loss.item()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(training.model.parameters(), 1.0)
            with counter.reads_pause(optimizer):
                scaler.step(optimizer)
            scaler.update()
    return {"syncs_per_step": float(counter.reads), "launches_per_step": float(counter.launches)}


def _optimizer(model: nn.Module, config: LoopConfig) -> torch.optim.Optimizer:
    return torch.optim.AdamW(
        model.parameters(), lr=1e-3, foreach=config.optimizer == "foreach", fused=config.optimizer == "fused"
    )


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations that start a kernel on a GPU, and those that make the host wait for it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.launches = 0
        self.reads = 0
        self.paused = False

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Count one operation."""
        name = getattr(func, "_opname", "")
        if name in _READS:
            self.reads += not self.paused
        elif not getattr(func, "is_view", False) and name not in _NO_KERNEL:
            self.launches += 1
        return func(*args, **(kwargs or {}))

    @contextmanager
    def on(self, counting: bool) -> Iterator[None]:
        """Count only where `counting`: the first step makes the state of the optimizer."""
        if not counting:
            yield
            return
        with self:
            yield

    @contextmanager
    def reads_pause(self, optimizer: torch.optim.Optimizer) -> Iterator[None]:
        """Do not count reads inside the optimizer: its step counters are on the processor on a GPU, too."""
        plain = optimizer.step

        def uncounted(*args: Any, **kwargs: Any) -> Any:
            self.paused = True
            try:
                return plain(*args, **kwargs)
            finally:
                self.paused = False

        optimizer.step = uncounted  # type: ignore[method-assign]
        try:
            yield
        finally:
            optimizer.step = plain  # type: ignore[method-assign]
