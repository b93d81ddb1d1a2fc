"""One input given again and again, each time in other company. Imported in the child process only: loads torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from rca.experiments.loops.config import LoopConfig, Setting
from rca.experiments.twin.config import DENSE, TwinConfig
from rca.experiments.twin.data import Stream
from rca.experiments.twin.models import build

_REPEATS = 8
_SAME = 1e-4
"""Largest difference of a probability that rounding leaves between batches."""
_RATES = ("dropout", "hidden_dropout_prob", "resid_pdrop", "embd_pdrop", "dropout_rate", "hidden_dropout")


def repeat(config: LoopConfig, setting: Setting) -> dict[str, float]:
    """Return `varying`: share of the repetitions whose output differs from the first, and the `dropout` in use."""
    if setting.twin is None:
        raise ValueError("repetitions need a model")
    twin = setting.twin
    dropout = _default_dropout(twin.family) if setting.dropout is None else setting.dropout
    twin = twin.model_copy(update={"dropout": dropout, "batch": 8})
    torch.manual_seed(config.seed)
    model = build(twin)
    model.train(config.mode == "train")
    first, *others = (_output(model, config, twin, number) for number in range(1 + _REPEATS))
    differing = sum(float((first - other).abs().max()) > _SAME for other in others)
    return {"varying": differing / _REPEATS, "dropout": dropout}


def _output(model: nn.Module, config: LoopConfig, twin: TwinConfig, number: int) -> torch.Tensor:
    """Probabilities for the same first sample in a batch of others; one drawn token where the run samples."""
    company = next(Stream(twin, number).training())[0]
    same = next(Stream(twin, 0).training())[0]
    with torch.no_grad():
        logits = _forward(model, twin, company, same)
        odds = torch.softmax(logits, dim=-1)
        if not config.sampling:
            return odds
        return torch.multinomial(odds.reshape(-1, odds.shape[-1])[-1:], 1, replacement=True).float()


def _forward(model: Any, twin: TwinConfig, company: Any, same: Any) -> torch.Tensor:
    inputs = torch.from_numpy(company.inputs.copy())
    inputs[0] = torch.from_numpy(same.inputs)[0]
    if twin.family in DENSE:
        return torch.as_tensor(model(inputs)[0])
    if company.source is None:
        return torch.as_tensor(model(input_ids=inputs).logits[0])
    source = torch.from_numpy(company.source.copy())
    source[0] = torch.from_numpy(same.source)[0]
    return torch.as_tensor(model(input_ids=source, decoder_input_ids=inputs).logits[0])


def _default_dropout(family: str) -> float:
    """Dropout of a model class as transformers configures it; none for the dense ones, whose mode shows elsewhere."""
    if family in DENSE:
        return 0.0
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config = CONFIG_MAPPING[family]()
    rates = [getattr(config, name, None) for name in _RATES]
    return max((float(rate) for rate in rates if isinstance(rate, (int, float))), default=0.0)
