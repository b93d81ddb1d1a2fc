"""A callback for Lightning: `Trainer(..., callbacks=[RcaCallback()])`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from rca.integrations.recorder import Recorder


class RcaCallback(Callback):
    """Writes down what a run does and analyses it when it fails.

    `run_dir` defaults to the directory of the logger, `analyze=False` only writes.
    """

    def __init__(
        self, run_dir: str | Path | None = None, *, analyze: bool = True, output: str | Path = "reports"
    ) -> None:
        self._run_dir, self._analyze, self._output = run_dir, analyze, output
        self._recorder: Recorder | None = None
        self._written = -1

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keep the settings."""
        place = self._run_dir or trainer.log_dir or trainer.default_root_dir
        ranks = {"rank": trainer.global_rank, "world_size": trainer.world_size}
        self._recorder = Recorder(place, **ranks, analyze=self._analyze, output=self._output)
        told = {
            "max_steps": trainer.max_steps,
            "max_epochs": trainer.max_epochs,
            "precision": str(trainer.precision),
            "accumulate_grad_batches": trainer.accumulate_grad_batches,
            "gradient_clip_val": trainer.gradient_clip_val,
        }
        self._recorder.settings("hparams", {**told, **dict(pl_module.hparams)})

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Keep the loss and what was logged, as often as Lightning logs."""
        step = trainer.global_step
        if (
            self._recorder is None
            or step == self._written
            or (step > 1 and step % getattr(trainer, "log_every_n_steps", 1))
        ):
            return
        self._written = step
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        self._recorder.metrics(step, {"loss": loss, "lr": _rate(trainer), **trainer.callback_metrics})

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Keep the exception and analyse."""
        if self._recorder is not None:
            self._recorder.failed(exception)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Look at the last loss."""
        if self._recorder is not None:
            self._recorder.ended()


def _rate(trainer: Trainer) -> float | None:
    """Learning rate of the first parameter group."""
    return next((group["lr"] for optimizer in trainer.optimizers for group in optimizer.param_groups), None)
