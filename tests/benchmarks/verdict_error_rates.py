"""How often the verdicts err, by simulation of the rules as they are implemented.

    python tests/benchmarks/verdict_error_rates.py [--trials 4000] [--write]

Draws the outcomes of arms from known distributions, runs `rca.experiments.judges.reproduced` and then
`rca.experiments.trial.carry_through` on them, and counts verdicts. `--write` replaces `verdict_error_rates.json` beside
this file. Shapes: effects of 0.15 to 0.38 with standard deviations of 0.07 to 0.29 (those measured on tiny trainings),
treatments that do nothing or too little (at most half of what counts), seeds that fall into two groups, and failures
that leave learning intact, where only the failure is counted.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rca.experiments.judges import HIGHEST, LOWEST, MOST_NOISY, RECOVERED, reproduced
from rca.experiments.symptoms import LOST_GAP
from rca.experiments.trial import Seen, carry_through

RESULT = Path(__file__).with_suffix(".json")
SEED = 20260
NUISANCE = 0.05
"""Spread within one group of seeds."""


class Draw(NamedTuple):
    """A control and its treatments, each over `MOST_NOISY` seeds."""

    control: Seen
    treatments: tuple[Seen, ...]


Shape = Callable[[np.random.Generator, int], Draw]


def spread(gap: float, sd: float, level: float | None = None) -> Shape:
    """Normal outcomes; `sd` is that of the paired difference, pairs are correlated by 0, 0.3 or 0.6."""

    def draw(random: np.random.Generator, arms: int) -> Draw:
        shared = random.choice([0.0, 0.3, 0.6])
        each = sd / math.sqrt(2 * (1 - shared))
        height = random.uniform(0.3, 1.0) if level is None else level
        if gap >= 0.15:
            height = gap / random.uniform(RECOVERED + 0.1, 1.0)
        common = math.sqrt(shared) * random.normal(size=MOST_NOISY)

        def arm(mean: float) -> Seen:
            own = math.sqrt(1 - shared) * random.normal(size=MOST_NOISY)
            return _seen(mean + each * (common + own))

        return Draw(arm(height), tuple(arm(height - gap) for _ in range(arms)))

    return draw


def groups(rate: float, treated: float, height: float) -> Shape:
    """A failure that costs `height` and strikes a share of the seeds, `rate` untreated and `treated` treated."""

    def draw(random: np.random.Generator, arms: int) -> Draw:
        def arm(share: float) -> Seen:
            struck = random.random(MOST_NOISY) < share
            return _seen(np.where(struck, height, 0.0) + NUISANCE * random.normal(size=MOST_NOISY))

        return Draw(arm(rate), tuple(arm(treated) for _ in range(arms)))

    return draw


def counted(rate: float, treated: float) -> Shape:
    """A failure that leaves learning intact: only whether it shows tells the arms apart."""

    def draw(random: np.random.Generator, arms: int) -> Draw:
        def arm(share: float) -> Seen:
            lost = 0.05 + NUISANCE * np.abs(random.normal(size=MOST_NOISY))
            return Seen(lost.tolist(), (random.random(MOST_NOISY) < share).tolist())

        return Draw(arm(rate), tuple(arm(treated) for _ in range(arms)))

    return draw


NOTHING: Mapping[str, Mapping[str, Shape]] = {
    "spread": {
        f"gap {g:g}, sd {sd:g}": spread(g, sd) for g in (-0.3, 0.0, 0.04, 0.075) for sd in (0.07, 0.15, 0.22, 0.29)
    },
    "two groups": {
        f"{rate:.0%} fail, height {height:g}": groups(rate, rate, height)
        for rate in (0.5, 0.7, 0.9)
        for height in (0.5, 1.0, 1.3)
    },
    "counted": {f"{rate:.0%} fail": counted(rate, rate) for rate in (0.5, 0.7, 0.9, 1.0)},
}
"""Treatments that take nothing away that counts."""
EFFECTS: Mapping[str, Mapping[str, Shape]] = {
    "spread": {
        f"gap {g:g}, sd {sd:g}": spread(g, sd) for g in (0.15, 0.22, 0.3, 0.38) for sd in (0.07, 0.15, 0.22, 0.29)
    },
    "two groups": {
        f"{rate:.0%} fail, treated {treated:.0%}": groups(rate, treated, 1.0)
        for rate in (0.5, 0.7, 0.9)
        for treated in (0.0, 0.05)
    },
    "counted": {
        f"{rate:.0%} fail, treated {treated:.0%}": counted(rate, treated)
        for rate, treated in ((0.8, 0.1), (0.9, 0.05), (1.0, 0.0))
    },
    "gross": {f"gap 0.9, sd {sd:g}": spread(0.9, sd) for sd in (0.07, 0.15, 0.29)},
}
"""Treatments that take the failure away."""


def verdict(draw: Draw, treatment: int = 0) -> tuple[str, int]:
    """Return the verdict of one comparison and its number of pairs."""
    control, treated = draw.control, draw.treatments[treatment]
    shows = [lost >= LOST_GAP or failed for lost, failed in zip(*control, strict=True)]
    seeds = next(count for count in range(2, MOST_NOISY + 1) if reproduced(shows[:count]) is not None)
    if not reproduced(shows[:seeds]):
        return "not_reproduced", seeds
    pairs = 3

    def read(count: int) -> tuple[Seen, Seen]:
        nonlocal pairs
        pairs = count
        return _first(control, count), _first(treated, count)

    trial = carry_through(read, lambda count: _first(control, count))
    decision = trial.judgement.decision
    return ("inconclusive" if decision == "undecided" else decision), pairs


def shares(shape: Shape, *, trials: int, random: np.random.Generator) -> dict[str, float]:
    """Return the share of every verdict among the trials whose control reproduced, and the mean number of pairs."""
    seen: Counter[str] = Counter()
    pairs = lost = 0
    while seen.total() < trials:
        name, count = verdict(shape(random, 1))
        if name == "not_reproduced":
            lost += 1
            continue
        seen[name] += 1
        pairs += count
    return {
        **{name: round(count / trials, 4) for name, count in sorted(seen.items())},
        "not_reproduced": round(lost / (lost + trials), 4),
        "pairs": round(pairs / trials, 2),
    }


def family_wise(shape: Shape, *, trials: int, arms: int, random: np.random.Generator) -> float:
    """Return the share of investigations in which at least one of `arms` treatments of one control is confirmed."""
    wrong = done = 0
    while done < trials:
        draw = shape(random, arms)
        found = [verdict(draw, index)[0] for index in range(arms)]
        if found[0] != "not_reproduced":
            done += 1
            wrong += "confirmed" in found
    return round(wrong / trials, 4)


def simulate(*, trials: int, arms: int = 6) -> dict[str, object]:
    """Return the table of error rates."""
    random = np.random.default_rng(SEED)
    tables = {
        label: {
            kind: {name: shares(shape, trials=trials, random=random) for name, shape in shapes.items()}
            for kind, shapes in cases.items()
        }
        for label, cases in (("nothing to find", NOTHING), ("an effect to find", EFFECTS))
    }
    together = {
        kind: {
            name: family_wise(shape, trials=max(1, trials // 4), arms=arms, random=random)
            for name, shape in shapes.items()
        }
        for kind, shapes in NOTHING.items()
    }
    null, real = tables["nothing to find"], tables["an effect to find"]
    return {
        "command": f"python tests/benchmarks/verdict_error_rates.py --trials {trials} --write",
        "trials of each shape": trials,
        "false confirmations": _summary(null, "confirmed"),
        "false refutations": _summary(real, "refuted"),
        "right confirmations": _summary(real, "confirmed"),
        "right refutations": _summary(null, "refuted"),
        f"false confirmations in {arms} experiments on one control": {
            kind: {"mean": _mean(list(found.values())), "worst": max(found.values())}
            for kind, found in together.items()
        },
        "shapes": tables,
    }


def _summary(tables: Mapping[str, Mapping[str, Mapping[str, float]]], name: str) -> dict[str, dict[str, float | str]]:
    rows = {kind: {shape: row.get(name, 0.0) for shape, row in table.items()} for kind, table in tables.items()}
    right = (name == "confirmed") == ("gross" in tables)
    extreme = min if right else max
    found: dict[str, dict[str, float | str]] = {}
    for kind, row in rows.items():
        worst = extreme(row, key=lambda shape: row[shape])
        found[kind] = {"mean": _mean(list(row.values())), "worst": row[worst], "worst shape": worst}
    found["all shapes"] = {"mean": _mean([value for row in rows.values() for value in row.values()])}
    return found


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4)


def _first(arm: Seen, count: int) -> Seen:
    return Seen(arm.lost[:count], arm.failed[:count])


def _seen(values: np.ndarray) -> Seen:
    lost = np.clip(values, LOWEST, HIGHEST)
    return Seen(lost.tolist(), (lost >= HIGHEST).tolist())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    text = json.dumps(simulate(trials=asked.trials), indent=1) + "\n"
    if asked.write:
        RESULT.write_text(text, encoding="utf-8")
    print(text[: text.index('"shapes"')])
