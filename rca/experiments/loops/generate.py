"""The arithmetic of an answer of a tiny decoder, counted. Imported in the child process only: loads torch."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from rca.experiments.loops.config import LoopConfig, Setting
from rca.experiments.twin.models import build

_PROMPT = 2


def generate(config: LoopConfig, setting: Setting) -> dict[str, float]:
    """Return `gflops` of an answer and `growth`: arithmetic of its last quarter over that of its first."""
    if setting.twin is None:
        raise ValueError("generation needs a model")
    torch.manual_seed(config.seed)
    longest = _PROMPT + config.new_tokens
    model: Any = build(setting.twin.model_copy(update={"seq": longest, "dropout": 0.0})).eval()
    quarter = config.new_tokens // 4
    first, before, all_ = (_flops(model, config, length) for length in (quarter, 3 * quarter, 4 * quarter))
    return {"gflops": all_ / 1e9, "growth": (all_ - before) / first}


def _flops(model: Any, config: LoopConfig, new_tokens: int) -> int:
    prompt = torch.arange(3, 3 + _PROMPT)[None]
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=new_tokens,
            min_new_tokens=new_tokens,
            num_beams=config.beams,
            do_sample=False,
            use_cache=config.use_cache,
            pad_token_id=0,
        )
    return int(counter.get_total_flops())
