"""`token_cost`: does the time per token grow as it would if the prefix were computed anew for every token?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from inspect import signature
from typing import Any

from rca.errors import ExperimentError
from rca.experiments.checks.check import Asked, Check, Outcome
from rca.experiments.twin.config import DECODERS, TwinConfig, twin_of

FLAT = 1.3
"""Growth of the time per token that is none."""
_LONG = 256


def token_cost(settings: Mapping[str, Any]) -> dict[str, float]:
    """Arithmetic of the next token after a long prefix over that after one a quarter as long: `without` the key-value
    cache and `with` it, counted on the twin."""
    from rca.experiments.twin.models import build

    config = TwinConfig.model_validate({**settings["twin"], "seq": _LONG, "dropout": 0.0})
    model = build(config).eval()
    return {
        name: _next_token(model, _LONG, cached=cached) / _next_token(model, _LONG // 4, cached=cached)
        for name, cached in (("without", False), ("with", True))
    }


def _next_token(model: Any, length: int, *, cached: bool) -> int:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    tokens = torch.ones((1, length), dtype=torch.int64)
    # transformers 5.2x renamed the argument.
    name = "cache" if "cache" in signature(model.forward).parameters else "past_key_values"
    with torch.no_grad():
        past = {}
        if cached:
            before = model(input_ids=tokens[:, :-1], use_cache=True)
            past = {name: getattr(before, name, None) or before.past_key_values}
        with FlopCounterMode(display=False) as counter:
            model(input_ids=tokens[:, -1:] if cached else tokens, use_cache=cached, **past)
    return int(counter.get_total_flops())


def judge(asked: Asked) -> Outcome:
    """Growth of the time per token: that of a prefix computed anew, or of one kept?"""
    observed = asked.profile.token_growth
    if observed is None:
        raise ExperimentError("the run recorded no time per token over the length")
    if asked.profile.use_cache is True:
        raise ExperimentError("the run's own configuration has the cache on")
    twin = twin_of(asked.profile)
    if twin.config.family not in DECODERS:
        raise ExperimentError(f"{twin.config.family} does not generate token by token")
    found = asked.measure({"twin": twin.config.model_dump(mode="json")})
    without, kept = float(found["without"]), float(found["with"])
    said = (
        f"Over a prefix four times as long the next token of the twin takes {without:.1f} times the "
        f"arithmetic without the cache and {kept:.2f} times with it; the run's tokens took "
        f"{observed:.1f} times as long."
    )
    scope = f"arithmetic of one token, counted on a tiny {twin.config.family}; no times were measured"
    details = (
        ("growth over a prefix four times as long, without the cache", f"{without:.2f}"),
        ("growth with the cache", f"{kept:.2f}"),
        ("growth in the run", f"{observed:.2f}"),
    )
    if observed <= FLAT:
        return Outcome("refuted", f"{said} That is flat: the prefix was not computed anew.", scope, details)
    if math.sqrt(without * kept) <= observed:
        return Outcome("confirmed", f"{said} That is the growth of a prefix computed anew.", scope, details)
    return Outcome("inconclusive", f"{said} That lies between the two.", scope, details)


CHECK = Check(judge, token_cost)
