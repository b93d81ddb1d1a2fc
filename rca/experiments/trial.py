"""A comparison of two arms, pair by pair, until the rules decide: the sequential test and the null check.

A pair is the control and the treatment with the same seed. The test looks after every pair from the third on and stops
at the first decision, both ways. Before it confirms, the control must have shown the same over three further seeds (the
null check): when these seeds compared with the first three would be "confirmed" themselves, the comparison is invalid;
when they show that the control falls into two groups, the test goes on with the stricter count.

Error rates of exactly this, once the control reproduced (tests/benchmarks/verdict_error_rates.py, 4,000 trials of each
of 57 shapes; table beside it): over treatments that take nothing away that counts 0.6 % confirmed (outcomes with a
spread of 0.07 to 0.29: 0.2 %, at worst 1.0 %; seeds in two groups: 1.1 %, at worst 2.5 %, when the failure strikes half
of the seeds by chance; failures only counted: 0.7 %, at worst 2.1 %). Over real effects 0.7 % refuted (at worst 4.4 %,
for an effect of exactly 0.15 with a spread of 0.29), 73 % confirmed (gross effects 95 %, effects of 0.15 to 0.38 64 %),
the rest undecided. Six useless treatments of one control: at least one is confirmed in 1.0 % of the investigations, 5 %
where seeds fall into two groups, 11 % where a coin decides which; so a confirmation counts only for a cause that leads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

from rca.experiments.judges import (
    CONFIRMING,
    FEWEST,
    USEFUL,
    Gap,
    Judgement,
    gap,
    judge,
    judge_binary,
)
from rca.experiments.symptoms import LOST_GAP


class Seen(NamedTuple):
    """What one arm showed, one value a seed."""

    lost: Sequence[float]
    """`g`."""
    failed: Sequence[bool]
    """Whether it shows the failure itself (not finite, skipping, no learning at all)."""


class Trial(NamedTuple):
    """The last look at the pairs."""

    judgement: Judgement
    null: Gap | None = None
    """The control's first seeds against further ones, where that was looked at."""
    out_of_time: bool = False
    """More pairs were wanted."""


Read = Callable[[int], "tuple[Seen, Seen] | None"]
"""Number of pairs -> control and treatment over the first so many seeds; None when the time is over."""
ReadControl = Callable[[int], "Seen | None"]
"""Number of seeds -> control over the first so many seeds; None when the time is over."""


def carry_through(read: Read, control_alone: ReadControl, *, attainable: float = 0.0) -> Trial:
    """Add pairs until the rules decide; an undecided end stays `undecided`.

    The first read must not return None. Without time for the null check nothing is confirmed.
    """
    pairs = read(FEWEST)
    if pairs is None:
        raise ValueError("a trial needs its first pairs")
    further = Seen((), ())
    null: Gap | None = None
    while True:
        control, treatment = pairs
        count = len(control.lost)
        judgement = look(control, treatment, attainable=attainable, further=further)
        if judgement.decision == "confirmed" and null is None:
            known = control_alone(2 * FEWEST) if count < 2 * FEWEST else control
            if known is None:
                return Trial(judgement._replace(decision="undecided"), None, out_of_time=True)
            further = Seen(known.lost[count:], known.failed[count:])
            null = null_check(known.lost)
            if confirms(null):
                return Trial(judgement._replace(decision="invalid"), null)
            judgement = look(control, treatment, attainable=attainable, further=further)
        if judgement.decision != "undecided" or count >= judgement.most:
            return Trial(judgement, null)
        following = read(count + 1)
        if following is None:
            return Trial(judgement, null, out_of_time=True)
        pairs = following
        further = Seen(further.lost[1:], further.failed[1:])


def look(control: Seen, treatment: Seen, *, attainable: float, further: Seen) -> Judgement:
    """Judge the pairs: learning must come back; where a failure takes no learning away, the failure is counted.

    That is so where the control learns, and where it loses no more than the run's own settings do without a planted
    fault.
    """
    found = gap(control.lost, treatment.lost, attainable=attainable)
    unavoidable = max(attainable, 0.0)
    if fmean(control.lost) - unavoidable < LOST_GAP:
        lost = [value - unavoidable for value in treatment.lost]
        return judge_binary(control.failed, treatment.failed, found, lost, further=further.failed)
    judgement = judge(control.lost, treatment.lost, attainable=attainable, further=further.lost)
    if judgement.decision == "confirmed" and 2 * sum(treatment.failed) >= len(treatment.failed):
        return judgement._replace(decision="mitigates")
    return judgement


def null_check(control: Sequence[float]) -> Gap:
    """Compare the first seeds of a control with the next ones, the larger mean first; both are the same arm."""
    first, second = control[:FEWEST], control[FEWEST : 2 * FEWEST]
    return gap(first, second) if fmean(first) >= fmean(second) else gap(second, first)


def confirms(null: Gap) -> bool:
    """Whether the rule would confirm a difference between an arm and itself."""
    return null.above_margin >= CONFIRMING and null.mean >= USEFUL
