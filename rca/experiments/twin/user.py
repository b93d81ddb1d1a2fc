"""A model of the user's own in the twin's place. Imported in the child process only: loads torch and runs a program.

The user names it with `--twin my_twin.py:build`; nothing else makes `rca` run a program. The function is

    def build(*, seed: int, settings: Mapping[str, Any]) -> dict:
        return {
            "model": ...,    # torch.nn.Module with fresh weights drawn from `seed`, on the CPU
            "batches": ...,  # callable(step) -> batch; the same step and seed give the same batch
            "loss": ...,     # callable(model, batch) -> scalar Tensor
            "eval": ...,     # one fixed clean batch on which all arms are compared
        }

`settings` is what is known of the run (lr, batch, seq, vocab, labels, optimizer, precision, ...) and `data`, the path
named with `--data` or None. It is the same for every arm: the arms differ in how this file trains the model, not in
what the function makes. A batch is a tensor, or tensors in dicts, lists and tuples; they are moved to the device.

How g is measured: a model that knows nothing is the model before its first step (its loss on `eval`), the known-good
recipe is the best of a ladder of learning rates (AdamW, FP32, clipped, warmed up, bad batches left out).
"""

from __future__ import annotations

import importlib.util
import math
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from rca.errors import ExperimentError
from rca.experiments.precision import forward_precision
from rca.experiments.twin.config import TwinConfig
from rca.experiments.twin.data import Batch
from rca.experiments.twin.train import Training

PARTS = ("model", "batches", "loss", "eval")


class UserCodeError(ExperimentError):
    """The user's program raised, or made something else than the protocol says."""


def maker_of(supplied: Mapping[str, Any]) -> Callable[..., Training]:
    """Return what makes a training of the user's model, in place of `training_of`."""
    return partial(training, supplied=supplied)


def training(config: TwinConfig, seed: int, *, device: str, supplied: Mapping[str, Any]) -> Training:
    """Build the user's model and wrap its batches and its loss. Raises UserCodeError."""
    file, _, name = supplied["program"].rpartition(":")
    settings = {**supplied["settings"], "data": supplied.get("data")}
    function = _function(file, name)
    made = _called(file, name, function, seed=seed + config.seed, settings=settings)
    parts = _checked(made, f"{Path(file).name}:{name}")
    model = parts["model"].to(device)
    run = _UserRun(file, parts, model, config, device, base=int(supplied["settings"]["batch"]))
    chance = run.chance()
    return Training(
        model=model.train(),
        batches=run.batches(),
        evaluation=run.keep(parts["eval"]),
        loss=run.loss,
        evaluate=run.evaluate,
        chance=chance,
    )


class _UserRun:
    """Batches are the user's; the loop gets a number that stands for each."""

    def __init__(
        self, file: str, parts: Mapping[str, Any], model: nn.Module, config: TwinConfig, device: str, *, base: int
    ) -> None:
        self.file, self.parts, self.model, self.config, self.device = file, parts, model, config, device
        self.fold = max(1, round(config.batch / base))
        self.kept: dict[int, Any] = {}

    def keep(self, batch: Any, *, poisoned: bool = False) -> Batch:
        """Remember a batch and return what stands for it."""
        key = len(self.kept)
        self.kept[key] = _moved(batch, self.device)
        return Batch(np.array([key]), np.zeros(1, dtype=np.int64), poisoned=poisoned)

    def batches(self) -> Iterator[list[Batch]]:
        """Yield the micro-batches of each step; a larger batch is several of the user's, averaged."""
        count = self.fold * self.config.accumulation
        held = len(self.kept)
        for step in range(self.config.steps):
            for key in list(self.kept)[held:]:
                del self.kept[key]
            made = [_called(self.file, "batches", self.parts["batches"], step * count + part) for part in range(count)]
            yield [self.keep(batch, poisoned=self.config.skip_bad_batches and self._is_bad(batch)) for batch in made]

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the user's loss in the precision of the arm."""
        with forward_precision(self.config.precision, self.device):
            return self._loss(self.kept[int(batch.inputs[0])])

    def evaluate(self, batch: Batch) -> torch.Tensor:
        """Return the user's loss on a batch in fp32 and evaluation mode, without touching the random numbers."""
        was = self.model.training
        self.model.eval()
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            found = self._loss(self.kept[int(batch.inputs[0])]).float()
        self.model.train(was)
        return found

    def chance(self) -> float:
        """Return the loss on `eval` before the first step."""
        found = float(self.evaluate(self.keep(self.parts["eval"])))
        if not math.isfinite(found):
            raise UserCodeError(f"the loss on `eval` is {found} before the first step; it must be finite there")
        return found

    def _loss(self, batch: Any) -> torch.Tensor:
        found = _called(self.file, "loss", self.parts["loss"], self.model, batch)
        if not isinstance(found, torch.Tensor) or found.numel() != 1:
            raise UserCodeError(f"`loss` must return one number as a tensor, not {_kind(found)}")
        return found.reshape(())

    def _is_bad(self, batch: Any) -> bool:
        """A batch with a value that is not finite, or on which finite weights have no finite loss."""
        moved = _moved(batch, self.device)
        if any(part.is_floating_point() and not bool(torch.isfinite(part).all()) for part in _tensors(moved)):
            return True
        if not all(bool(torch.isfinite(weight).all()) for weight in self.model.parameters()):
            return False
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            return not math.isfinite(float(self._loss(moved)))


def _function(file: str, name: str) -> Callable[..., Any]:
    """Load the user's file as a module; files beside it can be imported."""
    folder = str(Path(file).parent)
    if folder not in sys.path:
        sys.path.append(folder)
    sys.dont_write_bytecode = True  # nothing is left beside the user's file
    spec = importlib.util.spec_from_file_location("rca_user_twin", file)
    if spec is None or spec.loader is None:
        raise UserCodeError(f"{Path(file).name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    _called(file, "its top level", spec.loader.exec_module, module)
    found = getattr(module, name, None)
    if not callable(found):
        raise UserCodeError(f"{Path(file).name} has no function `{name}`")
    return found  # type: ignore[no-any-return]


def _called(file: str, what: str, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Call the user's code; what it raises is said with the place in its own file."""
    try:
        return call(*args, **named)
    except UserCodeError:
        raise
    except (Exception, SystemExit) as error:  # the boundary to a foreign program: whatever it raises is its answer
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        line = frames[-1].lineno if frames else error.lineno if isinstance(error, SyntaxError) else None
        inside = f" in {frames[-1].name}" if frames and frames[-1].name.isidentifier() else ""
        place = f"{Path(file).name}, line {line}{inside}" if line else f"{Path(file).name}, {what}"
        text = " ".join(str(error).split())[:200]
        raise UserCodeError(f"{place}: {type(error).__name__}: {text}") from error


def _checked(made: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(made, Mapping):
        raise UserCodeError(f"{what} must return a dict with {', '.join(PARTS)}, not {_kind(made)}")
    missing = [name for name in PARTS if name not in made]
    if missing:
        raise UserCodeError(f"the dict of {what} lacks {', '.join(missing)}")
    if not isinstance(made["model"], nn.Module):
        raise UserCodeError(f"`model` of {what} must be a torch.nn.Module, not {_kind(made['model'])}")
    for name in ("batches", "loss"):
        if not callable(made[name]):
            raise UserCodeError(f"`{name}` of {what} must be callable, not {_kind(made[name])}")
    return made


def _kind(value: Any) -> str:
    shape = f" of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else ""
    return f"{type(value).__name__}{shape}"


def _moved(batch: Any, device: str) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {key: _moved(value, device) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)) and type(batch) in {list, tuple}:
        return type(batch)(_moved(value, device) for value in batch)
    return batch


def _tensors(batch: Any) -> Iterator[torch.Tensor]:
    if isinstance(batch, torch.Tensor):
        yield batch
    elif isinstance(batch, Mapping):
        for value in batch.values():
            yield from _tensors(value)
    elif isinstance(batch, (list, tuple)):
        for value in batch:
            yield from _tensors(value)
