"""Optimisation of a policy by rewards (PPO, GRPO): does it leave its reference, and how far does one update go?

The loss of such a run is a surrogate around zero that tells nothing about progress; divergence from the reference and
the reward do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.memo import once_per_table
from rca.facts.robust import spread
from rca.facts.training.curves import Curve, curve

CATALOGUE: Mapping[str, str] = {
    "policy.kl_growth": "divergence from the reference policy at the end over its level in the first tenth (x)",
    "policy.kl_exploded": "that divergence grew more than twentyfold and ends far above what a useful policy needs",
    "policy.reward_fell": "the reward ends below its start by more than its noise",
    "policy.is_reference": "rewards of a preference loss are exactly 0 at every point after the first",
    "policy.update_kl": "median divergence that one update of the policy causes, in the second half of the run (nats)",
    "policy.clip_share": "median share of samples at the clip of the probability ratio, in the second half of the run",
}

_REWARD = re.compile(
    r"^(?:train/|rollout/|env/|objective/|critic/|ppo/)?(?:rewards?|scores|rlhf_reward|ep(?:isode)?_rew(?:ard)?(?:_mean)?|"
    r"episode_return|mean_rewards?|rewards?[_/]mean|score/mean|mean_scores|returns[_/]mean)$",
    re.I,
)
_KL = re.compile(
    r"^(?:train/|objective/|actor/|env/)?(?:mean_kl|kl|kl_mean|ref_kl|reward_kl_penalty|kl_divergence)$", re.I
)
_UPDATE_KL = re.compile(r"(?:^|/)(?:approx_?kl(?:_avg|_v3)?|ppo_kl|policykl)$", re.I)
_CLIPPED = re.compile(r"(?:^|/)(?:pg_)?clip_?frac(?:tion)?(?:_avg)?$", re.I)
_OF_THE_VALUE = re.compile(r"^val/|vf_|value|critic", re.I)
_FEWEST = 10
GROWN = 20.0
"""Times the level of the first tenth; a penalty that holds keeps the divergence within an order of magnitude."""
FAR_SEQUENCE, FAR_TOKEN = 50.0, 2.0
"""Nats over a whole answer, and a token: useful policies end at 10 to 30 nats (Stiennon et al. 2020; Gao et al. 2023),
and a token whose probability changed sevenfold on average is another text."""


@once_per_table
def rewarded(events: EventTable) -> bool:
    """Say whether the run optimises a policy by rewards; rewards that preference losses report do not count."""
    return any(_REWARD.match(name) for name in events.metric_names)


def _lines(events: EventTable, pattern: re.Pattern[str]) -> list[Curve]:
    named = (name for name in events.metric_names if pattern.search(name) and not _OF_THE_VALUE.search(name))
    found = (line.pick(line.finite) for name in named if (line := curve(events, name)) is not None)
    return [line for line in found if len(line) >= _FEWEST]


def _ends(line: Curve) -> tuple[float, float]:
    width = max(3, len(line) // 10)
    return float(np.median(line.value[:width])), float(np.median(line.value[-width:]))


def reference(events: EventTable) -> Iterator[Fact]:
    """How far did the policy go from its reference?"""
    if not rewarded(events):
        return
    for line in _lines(events, _KL)[:1]:
        start, end = _ends(line)
        if start <= 0:
            return
        says = f"The divergence from the reference ({line.name}) went from {number(start)} to {number(end)}."
        seen = line.event_id[[-1, 0]]
        far = FAR_SEQUENCE if line.name.startswith("objective") else FAR_TOKEN
        yield from emit("policy.kl_growth", end / start, says, unit="x", events=seen)
        yield from emit("policy.kl_exploded", end > GROWN * start and end > far, says, events=seen)


def reward(events: EventTable) -> Iterator[Fact]:
    """Is the policy worse than the one it started from?"""
    lines = [line for name in events.metric_names if _REWARD.match(name) and (line := curve(events, name)) is not None]
    lines = [line.pick(line.finite) for line in lines if line.finite.sum() >= _FEWEST]
    if not lines:
        return
    line = max(lines, key=len)
    start, end = _ends(line)
    noise = spread(np.diff(line.value)) / 2**0.5
    fell = start - end > max(3 * noise, 0.2 * abs(start))
    says = f"The reward ({line.name}) went from {number(start)} to {number(end)}."
    yield from emit("policy.reward_fell", fell, says, events=line.event_id[[-1, 0]])


def preference(events: EventTable) -> Iterator[Fact]:
    """Did the policy of a preference loss leave its reference at all?

    The rewards are differences of log-probabilities, so only the reference itself has none (Rafailov et al. 2023).
    """
    found = [curve(events, f"{prefix}rewards/{side}") for prefix in ("", "train/") for side in ("chosen", "rejected")]
    lines = [line.pick(line.finite) for line in found if line is not None and line.finite.sum() >= _FEWEST]
    if not lines:
        return
    largest = max(float(np.abs(line.value[1:]).max()) for line in lines)
    says = f"The largest of {len(lines[0])} rewards of chosen and rejected answers is {number(largest)}."
    yield from emit("policy.is_reference", largest == 0.0, says, events=lines[0].event_id[[-1, 0]])


def updates(events: EventTable) -> Iterator[Fact]:
    """How far does one update go?"""
    for line in _lines(events, _UPDATE_KL)[:1]:
        level = float(np.median(line.value[len(line) // 2 :]))
        says = f"One update changes the policy by {number(level)} nats ({line.name})."
        yield from emit("policy.update_kl", level, says, events=line.event_id[[-1]])
    for line in _lines(events, _CLIPPED)[:1]:
        share = float(np.median(line.value[len(line) // 2 :]))
        says = f"{percent(share)} of the samples reach the clip of the probability ratio ({line.name})."
        yield from emit("policy.clip_share", share, says, events=line.event_id[[-1]])


FACTS: tuple[FactFunction, ...] = (reference, reward, preference, updates)
