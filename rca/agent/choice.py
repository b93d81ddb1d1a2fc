"""Which experiment comes next, and why; or why none does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from rca.agent.belief import Belief, separates
from rca.agent.budget import Budget
from rca.experiments.information import expected_bits
from rca.experiments.interface import RunProfile
from rca.rules.schema import ExperimentRule

Order = Literal["information", "ids", "prior"]
"""By expected information per second; or, to compare with: a checklist in the order of the ids, whatever is believed;
or always the cheapest experiment on the most probable cause that has one."""

CONFIDENT = 0.9
LEAST_BITS = 0.01
"""Expected information below which an experiment is not worth its time."""
NEARLY = 0.9
"""Information per second, relative to the best, within which the order given by the cause decides."""
LIVE = 0.02
"""Causes below this probability start no experiment of their own accord."""
FAINT = 0.002
"""Rivals below this probability are not asked about even if an outcome would separate them from the leader."""


class Ranked(NamedTuple):
    """An experiment that could come next."""

    rule: ExperimentRule
    bits: float

    @property
    def per_second(self) -> float:
        """Expected bits a second of computing."""
        return self.bits / self.rule.cost


class Choice(NamedTuple):
    """What comes next; `rule` is None where the investigation stops."""

    rule: ExperimentRule | None
    why: str
    considered: tuple[Ranked, ...] = ()


@dataclass(frozen=True)
class Chooser:
    """Chooses among the experiments of the knowledge base."""

    rules: Mapping[str, ExperimentRule]
    profile: RunProfile
    asked: str = "auto"
    """`auto`, `all` (every experiment on a candidate), or anything else: all the rules given were asked for."""
    order: Order = "information"
    left: frozenset[str] = frozenset()
    """What the run left for checks to look at, in the words of `ExperimentRule.needs`."""
    untestable: Mapping[str, str] = field(default_factory=dict)
    """Domain or cause id -> why a tiny training cannot show it."""
    done: set[str] = field(default_factory=set)

    def candidates(self, belief: Belief) -> tuple[str, ...]:
        """Causes that experiments are chosen for: the probable ones, and every rival that an outcome of an experiment
        on those would separate from the leading cause, so that the leader can lose to it."""
        likely = [cause for cause in belief.hypotheses if belief.open(cause) and belief.of(cause) >= LIVE]
        leading = belief.leading
        about = [rule for rule in self.rules.values() if self._asks(rule, likely, belief)]
        rivals = [
            cause
            for cause in belief.hypotheses
            if cause not in likely
            and belief.open(cause)
            and belief.of(cause) >= FAINT
            and any(cause in rule.predicts and separates(rule, cause, leading) for rule in about)
        ]
        return (*likely, *rivals)

    def considered(self, belief: Belief) -> tuple[Ranked, ...]:
        """Experiments that could come next, the best first."""
        candidates = self.candidates(belief)
        open_ = [rule for name, rule in self.rules.items() if name not in self.done and rule.predicts]
        if self.asked == "all" or (self.asked == "auto" and self.order != "ids"):
            open_ = [rule for rule in open_ if self._asks(rule, candidates, belief)]
        if self.asked == "auto":
            open_ = [rule for rule in open_ if self._speaks(rule)]
        found = [Ranked(rule, expected_bits(belief.shares, rule)) for rule in open_]
        keys: dict[Order, Callable[[Ranked], tuple[float, ...]]] = {
            "information": lambda item: (-item.per_second,),
            "ids": lambda _item: (),
            "prior": lambda item: (-max((belief.of(cause) for cause in item.rule.confirms), default=0.0),
                                   item.rule.cost),
        }  # fmt: skip
        key = keys[self.order]
        return tuple(sorted(found, key=lambda item: (*key(item), item.rule.id)))

    def next(self, belief: Belief, budget: Budget) -> Choice:
        """Return the next experiment, or why there is none.

        What the time left is not enough for gives way to what fits; where nothing fits, only the very first experiment
        gets its chance.
        """
        ranked = self.considered(belief)
        if budget.over:
            return Choice(None, "The time for experiments is over.", ranked)
        chosen = self._best(belief, ranked)
        if chosen.rule is None:
            return self._closing(chosen._replace(why=chosen.why + self._beyond(belief.leading)), budget)
        if budget.fits(chosen.rule):
            return chosen
        for other in ranked:
            if budget.fits(other.rule) and (self.asked != "auto" or other.bits >= LEAST_BITS):
                why = f"The time left is too short for {chosen.rule.id}; {other.bits:.2f} bit expected of this one."
                return Choice(other.rule, why, ranked)
        if budget.untouched:
            return chosen
        return Choice(None, "The time left is shorter than what any open experiment is expected to take.", ranked)

    def _closing(self, stop: Choice, budget: Budget) -> Choice:
        """Experiments that test no cause, such as the search for the settings that matter, come last."""
        for name, rule in sorted(self.rules.items()):
            if name not in self.done and not rule.predicts and (self.asked != "auto" or self._speaks(rule)):
                if budget.untouched or budget.fits(rule):
                    why = f"{stop.why} Time is left to ask: {rule.question}" if self.asked == "auto" else "Asked for."
                    return Choice(rule, why, stop.considered)
                return Choice(None, f"{stop.why} The time left is too short for {name}.", stop.considered)
        return stop

    def _best(self, belief: Belief, ranked: tuple[Ranked, ...]) -> Choice:
        leading = belief.leading
        share = belief.of(leading)
        settled = belief.status.get(leading) == "confirmed" and belief.lead >= CONFIDENT
        told = f"{leading} is confirmed and has a probability of {share:.2f}, far above every rival."
        if not ranked:
            return Choice(None, told if settled else self._nothing_left(belief))
        best = self._preferred(belief, ranked) if self.order == "information" else ranked[0]
        if self.asked != "auto":
            return Choice(best.rule, f"Asked for; {best.bits:.2f} bit expected.", ranked)
        if settled:
            return Choice(None, told, ranked)
        own = next((item.rule for item in ranked if leading in item.rule.confirms), None)
        unsettled = f"{leading} leads with {share:.2f} and no experiment has confirmed it yet."
        if share >= CONFIDENT:
            if own is None:
                why = f"{leading} has a probability of {share:.2f}; no experiment left can confirm it."
                return Choice(None, why, ranked)
            return Choice(own if self.order == "information" else best.rule, unsettled, ranked)
        if max(item.bits for item in ranked) < LEAST_BITS:
            if own is None:
                return Choice(None, f"No experiment left promises {LEAST_BITS} bit about the cause.", ranked)
            return Choice(own, unsettled, ranked)
        if self.order != "information":
            return Choice(best.rule, f"Next in the fixed order; {best.bits:.2f} bit expected.", ranked)
        why = (
            f"Most information for its time: {best.bits:.2f} bit in about {best.rule.cost:.0f} s of computing, "
            f"{best.per_second:.3f} bit a second."
        )
        return Choice(best.rule, why, ranked)

    @staticmethod
    def _preferred(belief: Belief, ranked: Sequence[Ranked]) -> Ranked:
        """Of those that tell almost as much for their time as the best, the first that the leading cause lists."""
        enough = NEARLY * ranked[0].per_second
        close = {item.rule.id: item for item in ranked if item.per_second >= enough}
        leading = belief.hypotheses.get(belief.leading)
        listed = leading.experiments if leading is not None else ()
        return next((close[name] for name in listed if name in close), ranked[0])

    @staticmethod
    def _asks(rule: ExperimentRule, causes: Sequence[str], belief: Belief) -> bool:
        """Whether an experiment is about one of the causes: it can confirm it, or the cause lists it."""
        return any(
            cause in rule.confirms or rule.id in belief.hypotheses[cause].experiments
            for cause in causes
            if cause in belief.hypotheses
        )

    def _speaks(self, rule: ExperimentRule) -> bool:
        """Whether the run shows a symptom that the experiment is about, and left what it needs."""
        if any(getattr(self.profile, name, None) == value for name, value in rule.excludes.items()):
            return False
        required = rule.loop.requires if rule.loop is not None else ()
        if not set(rule.needs) <= self.left or any(getattr(self.profile, name, None) is None for name in required):
            return False
        if rule.symptoms:
            return bool(set(rule.symptoms) & set(self.profile.symptoms))
        return rule.kind != "twin" or bool(self.profile.symptoms)

    def _beyond(self, cause: str) -> str:
        """Why no experiment can confirm the leading cause, where that lies in its nature."""
        why = self.untestable.get(cause) or self.untestable.get(cause.split(".", maxsplit=1)[0], "")
        if not why or any(cause in rule.confirms for rule in self.rules.values()):
            return ""
        return f" {cause} is not testable here: {why[:1].lower()}{why[1:]}"

    def _nothing_left(self, belief: Belief) -> str:
        leading = belief.leading
        if self.done:
            return "No other experiment concerns a cause that is still open."
        if not belief.hypotheses:
            return "No hypothesis to test: nothing failed, or nothing known explains it."
        if not self.rules:
            return "There are no experiments in the knowledge base."
        candidates = self.candidates(belief)
        if any(self._asks(rule, candidates, belief) for rule in self.rules.values()):
            seen = ", ".join(self.profile.symptoms) or "no symptom in a training curve"
            return f"The run shows {seen}; none of the experiments on the leading causes can speak about that."
        return (
            f"No experiment tests {leading} ({belief.of(leading):.2f}) or another probable cause: the evidence itself "
            "decides."
        )
