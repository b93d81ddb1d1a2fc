"""Text written by a tiny trained decoder. Imported in the child process only: loads torch.

The decoder learns a language with known rules (`twin/data.py`): every token has six possible successors. So what it
writes can be counted: how much repeats itself, and how much the language does not allow.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from rca.experiments.loops.config import NEW_TOKENS, LoopConfig, Setting
from rca.experiments.twin.config import TwinConfig
from rca.experiments.twin.data import Stream
from rca.experiments.twin.train import training_of

_TEXTS = 16
_PROMPT = 6
_SHORTER = 3
"""Tokens by which every second prompt is shorter, and padded."""
_GROUP = 64
"""Weights that share one scale, as in the usual 4-bit formats."""


def decode(config: LoopConfig, setting: Setting) -> dict[str, float]:
    """Return `repeat_share` (3-grams that the text already had) and `stray_share` (steps that the language does not
    allow)."""
    model, stream = _trained(setting)
    torch.manual_seed(config.seed)
    texts = _write(model, _prompts(stream), config)
    return {"repeat_share": _repeats(texts[:, _PROMPT:]), "stray_share": _strays(texts, stream)}


def score(config: LoopConfig, setting: Setting) -> dict[str, float]:
    """Return `lost_share` (of what the decoder had learnt, by rounded weights or a penalty) and `learnt_share`."""
    model, stream = _trained(setting)
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    full, chance = _loss(model, stream), stream.config.chance
    try:
        _round(model, config.bits)
        loss = _loss(model, stream, penalty=config.repetition_penalty)
    finally:
        model.load_state_dict(weights)
    return {"lost_share": (loss - full) / (chance - full), "learnt_share": 1 - full / chance}


def align(config: LoopConfig, setting: Setting) -> dict[str, float]:
    """Return `padded_differ`: share of padded prompts that are continued in another way than alone."""
    model, stream = _trained(setting)
    return {"padded_differ": _padded(model, _prompts(stream), config)}


def _prompts(stream: Stream) -> torch.Tensor:
    return torch.from_numpy(stream.evaluation().inputs[:_TEXTS, :_PROMPT].copy())


def _trained(setting: Setting) -> tuple[Any, Stream]:
    if setting.twin is None:
        raise ValueError("writing needs a model")
    return _train(setting.twin), Stream(setting.twin, 0)


@cache
def _train(twin: TwinConfig) -> Any:
    torch.manual_seed(0)
    training = training_of(twin, 0, device="cpu")
    optimizer = torch.optim.AdamW(training.model.parameters(), lr=twin.lr, weight_decay=0.0, fused=True)
    for batches in training.batches:
        optimizer.zero_grad(set_to_none=True)
        training.loss(batches[0]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return training.model.eval()


def _loss(model: Any, stream: Stream, *, penalty: float = 1.0) -> float:
    """Loss on right text; a penalty for tokens that the text already has is applied as generation does it."""
    batch = stream.evaluation()
    inputs = torch.from_numpy(batch.inputs)
    with torch.no_grad():
        logits = model(input_ids=inputs).logits
        for position in range(inputs.shape[1] if penalty != 1.0 else 0):
            seen = inputs[:, : position + 1]
            scores = logits[:, position].gather(1, seen)
            logits[:, position].scatter_(1, seen, torch.where(scores < 0, scores * penalty, scores / penalty))
    labels = torch.from_numpy(batch.labels).reshape(-1)
    return float(nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels))


def _round(model: nn.Module, bits: int) -> None:
    """Round the weights of linear layers to `bits`, symmetric, one scale for each 64 of a row."""
    if bits >= 16:
        return
    top = 2 ** (bits - 1) - 1
    with torch.no_grad():
        for module in model.modules():
            if not isinstance(module, nn.Linear):
                continue
            groups = module.weight.reshape(-1, math.gcd(_GROUP, module.in_features))
            scale = (groups.abs().amax(dim=1, keepdim=True) / top).clamp_min(1e-12)
            module.weight.copy_(((groups / scale).round().clamp(-top - 1, top) * scale).reshape(module.weight.shape))


def _write(model: Any, prompts: torch.Tensor, config: LoopConfig, mask: torch.Tensor | None = None) -> torch.Tensor:
    settings: dict[str, Any] = {"do_sample": config.sampling}
    if config.sampling:
        settings |= {"temperature": config.temperature, "top_k": 0}
    with torch.no_grad():
        texts = model.generate(
            prompts,
            attention_mask=torch.ones_like(prompts) if mask is None else mask,
            max_new_tokens=NEW_TOKENS,
            min_new_tokens=NEW_TOKENS,
            repetition_penalty=config.repetition_penalty,
            pad_token_id=0,
            use_cache=True,
            **settings,
        )
    return torch.as_tensor(texts)


def _repeats(written: torch.Tensor) -> float:
    repeated = total = 0
    for row in written.tolist():
        grams = list(zip(row, row[1:], row[2:], strict=False))
        repeated += len(grams) - len(set(grams))
        total += len(grams)
    return repeated / total


def _strays(texts: torch.Tensor, stream: Stream) -> float:
    allowed = stream.successors()
    pairs = [pair for row in texts[:, _PROMPT - 1 :].tolist() for pair in pairwise(row)]
    return sum(after not in allowed[before] for before, after in pairs) / len(pairs)


def _padded(model: Any, prompts: torch.Tensor, config: LoopConfig) -> float:
    """Continue shortened prompts in a padded batch and alone, greedily."""
    greedy = config.model_copy(update={"sampling": False})
    short = prompts[::2, _SHORTER:]
    padding = torch.zeros((len(short), _SHORTER), dtype=torch.int64)
    sides = (padding, short) if config.padding_side == "left" else (short, padding)
    ones, zeros = torch.ones_like(short), torch.zeros_like(padding)
    mask = torch.cat((zeros, ones) if config.padding_side == "left" else (ones, zeros), dim=1)
    batch = _write(model, torch.cat(sides, dim=1), greedy, mask)[:, _PROMPT:]
    alone = _write(model, short, greedy)[:, short.shape[1] :]
    return float((batch != alone).any(dim=1).float().mean())
