"""A callback for the Trainer of transformers: `Trainer(..., callbacks=[RcaCallback()])`."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rca.integrations.recorder import Recorder, UncaughtExceptions


class RcaCallback(TrainerCallback):  # type: ignore[misc]  # the library has no types
    """Writes down what a run does and analyses it when it fails.

    `run_dir` defaults to the output directory of the run, `analyze=False` only writes. The Trainer tells callbacks
    nothing about exceptions: the one that ends the program is seen; where it does not end it (a notebook), use the
    callback as a context manager around `trainer.train()`.
    """

    def __init__(
        self, run_dir: str | Path | None = None, *, analyze: bool = True, output: str | Path = "reports"
    ) -> None:
        self._run_dir, self._analyze, self._output = run_dir, analyze, output
        self._recorder: Recorder | None = None
        self._uncaught: UncaughtExceptions | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Keep the settings and listen for the exception that ends the program."""
        place = args.output_dir if self._run_dir is None else self._run_dir
        ranks = {"rank": args.process_index, "world_size": args.world_size}
        self._recorder = Recorder(place, **ranks, analyze=self._analyze, output=self._output)
        self._recorder.settings("training_args", {**args.to_sanitized_dict(), "max_steps": state.max_steps})
        described = getattr(getattr(kwargs.get("model"), "config", None), "to_dict", None)
        if described is not None:
            self._recorder.settings("config", described())
        self._uncaught = UncaughtExceptions(self._recorder)
        self._uncaught.install()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the numbers that the Trainer logs."""
        if self._recorder is not None:
            self._recorder.metrics(state.global_step, logs or {})

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Stop listening; look at the last loss."""
        if self._recorder is not None and self._uncaught is not None:
            self._uncaught.remove()
            self._recorder.ended()

    def __enter__(self) -> RcaCallback:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._uncaught is not None:
            self._uncaught.remove()
        if error is not None and self._recorder is not None:
            self._recorder.failed(error)
