"""The loop: which experiment tells most about the leading causes, run it, update, stop; and a log of every round."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rca.diagnosis import Experiment, Hypothesis, Round
from rca.errors import UsageError
from rca.experiments.information import OTHER, OUTCOME_OF, expected_bits, likelihood, updated
from rca.experiments.interface import Experimenter, Material, RunProfile
from rca.rules.schema import ExperimentRule, Outcome

CONFIDENT = 0.9
LEAST_BITS = 0.01
"""Expected information below which an experiment is not worth its time."""
NEARLY = 0.9
"""Information per second, relative to the best, within which the order given by the cause decides."""
LIVE = 0.02
"""Causes below this probability start no experiment."""
RULED_OUT = 0.1
"""A cause is ruled out when its probability fell below this and to less than half."""
TELLING = 1.5
"""An outcome must be this many times as likely (or unlikely) under the cause as otherwise; less proves nothing."""
MOST_LIKELY_SHARE = 0.5
"""A cause must be at least this probable after its experiment to count as confirmed."""


@dataclass(frozen=True)
class Investigation:
    """What the experiments made of the hypotheses."""

    hypotheses: tuple[Hypothesis, ...]
    experiments: tuple[Experiment, ...]
    rounds: tuple[Round, ...]


def investigate(
    hypotheses: Sequence[Hypothesis],
    rules: Mapping[str, ExperimentRule],
    profile: RunProfile,
    experimenter: Experimenter,
    *,
    budget_s: float = 60.0,
    device: str = "auto",
    choose: str = "auto",
    material: Material | None = None,
) -> Investigation:
    """Test the leading hypotheses by experiment until one is settled, nothing informs any more, or time is over.

    `choose` is `auto`, `all` (every experiment that concerns a live cause) or experiment ids separated by commas.
    Raises UsageError for an unknown id.
    """
    return _Loop(
        hypotheses=tuple(hypotheses),
        rules=_wanted(rules, choose),
        profile=profile,
        experimenter=experimenter,
        until=time.monotonic() + budget_s,
        device=device,
        choose=choose,
        material=material or Material(),
    ).run()


class _Loop:
    """State of one investigation."""

    def __init__(
        self,
        *,
        hypotheses: tuple[Hypothesis, ...],
        rules: Mapping[str, ExperimentRule],
        profile: RunProfile,
        experimenter: Experimenter,
        until: float,
        device: str,
        choose: str,
        material: Material,
    ) -> None:
        self.rules, self.profile, self.experimenter = rules, profile, experimenter
        self.until, self.device, self.choose = until, device, choose
        self.material = material
        self.hypotheses = {item.cause: item for item in hypotheses}
        self.beliefs = {cause: item.probability for cause, item in self.hypotheses.items()}
        self.beliefs[OTHER] = max(0.0, 1 - sum(self.beliefs.values()))
        self.status: dict[str, str] = {}
        self.experiments: list[Experiment] = []
        self.rounds: list[Round] = []

    def run(self) -> Investigation:
        """Go through the rounds."""
        while True:
            ranked = self._ranked()
            chosen, why = self._choice(ranked)
            if chosen is None:
                if not self.rounds or why:
                    self._note(ranked, why)
                break
            self._round(chosen, why, ranked)
        return Investigation(
            hypotheses=tuple(self._final(item) for item in self._ordered()),
            experiments=tuple(self.experiments),
            rounds=tuple(self.rounds),
        )

    def _leading(self) -> str:
        known = {cause: belief for cause, belief in self.beliefs.items() if cause in self.hypotheses}
        return max(known, key=lambda cause: (known[cause], cause)) if known else OTHER

    def _live(self, rule: ExperimentRule) -> bool:
        """Whether the experiment can still say something about a cause that matters."""
        tests = set(rule.confirms)
        asked = {cause for cause, item in self.hypotheses.items() if rule.id in item.experiments} | tests
        return any(
            self.beliefs.get(cause, 0.0) >= LIVE and self.hypotheses[cause].status != "explained"
            for cause in asked
            if cause in self.hypotheses
        )

    def _speaks(self, rule: ExperimentRule) -> bool:
        """Whether the run shows a symptom that the experiment is about."""
        if any(getattr(self.profile, name, None) == value for name, value in rule.excludes.items()):
            return False
        if rule.symptoms:
            return bool(set(rule.symptoms) & set(self.profile.symptoms))
        return rule.kind != "twin" or bool(self.profile.symptoms)

    def _ranked(self) -> list[tuple[ExperimentRule, float]]:
        """Experiments not yet done, by expected information per second, best first."""
        done = {experiment.id for experiment in self.experiments}
        open_ = [rule for rule in self.rules.values() if rule.id not in done]
        if self.choose == "auto":
            open_ = [rule for rule in open_ if self._live(rule) and self._speaks(rule)]
        elif self.choose == "all":
            open_ = [rule for rule in open_ if self._live(rule)]
        pairs = [(rule, expected_bits(self.beliefs, rule)) for rule in open_]
        return sorted(pairs, key=lambda pair: (-pair[1] / pair[0].cost, pair[0].id))

    def _choice(self, ranked: Sequence[tuple[ExperimentRule, float]]) -> tuple[ExperimentRule | None, str]:
        leading = self._leading()
        belief = self.beliefs.get(leading, 0.0)
        if not ranked:
            return None, self._nothing_left(leading)
        if time.monotonic() >= self.until:
            return None, "The time for experiments is over."
        best, bits = self._preferred(ranked, leading)
        if self.choose != "auto":
            return best, f"Asked for; {bits:.2f} bit expected."
        settled = self.status.get(leading) == "confirmed"
        if belief >= CONFIDENT and settled:
            return None, f"{leading} is confirmed and has a probability of {belief:.2f}."
        own = next((rule for rule, _ in ranked if leading in rule.confirms), None)
        if belief >= CONFIDENT:
            if own is None:
                return None, f"{leading} has a probability of {belief:.2f}; no experiment left can confirm it."
            return own, f"{leading} leads with {belief:.2f} and no experiment has confirmed it yet."
        if bits < LEAST_BITS:
            if own is None:
                return None, f"No experiment left promises {LEAST_BITS} bit about the cause."
            return own, f"{leading} leads with {belief:.2f} and no experiment has confirmed it yet."
        return best, (
            f"Most information for its time: {bits:.2f} bit in about {best.cost:.0f} s of computing, "
            f"{bits / best.cost:.3f} bit a second."
        )

    def _preferred(self, ranked: Sequence[tuple[ExperimentRule, float]], leading: str) -> tuple[ExperimentRule, float]:
        """Of those that tell almost as much for their time as the best, the first that the leading cause lists."""
        first, bits = ranked[0]
        enough = NEARLY * bits / first.cost
        close = {rule.id: (rule, gain) for rule, gain in ranked if gain / rule.cost >= enough}
        listed = self.hypotheses[leading].experiments if leading in self.hypotheses else ()
        return next((close[name] for name in listed if name in close), ranked[0])

    def _nothing_left(self, leading: str) -> str:
        if self.rounds:
            return "No other experiment concerns a cause that is still open."
        if not self.hypotheses:
            return "No hypothesis to test: nothing failed, or nothing known explains it."
        if not self.rules:
            return "There are no experiments in the knowledge base."
        belief = self.beliefs[leading]
        about = [rule for rule in self.rules.values() if self._live(rule)]
        if about:
            seen = ", ".join(self.profile.symptoms) or "no symptom in a training curve"
            return f"The run shows {seen}; none of the experiments on the leading causes can speak about that."
        return f"No experiment tests {leading} ({belief:.2f}) or another probable cause: the evidence itself decides."

    def _round(self, rule: ExperimentRule, why: str, ranked: Sequence[tuple[ExperimentRule, float]]) -> None:
        started = time.perf_counter()
        before = dict(self.beliefs)
        seconds = max(1.0, self.until - time.monotonic())
        experiment = self.experimenter(
            rule, profile=self.profile, device=self.device, seconds=seconds, material=self.material
        )
        outcome = OUTCOME_OF.get(experiment.verdict)
        if outcome is not None:
            self.beliefs = updated(self.beliefs, rule, outcome)
        ruled_out = tuple(
            cause
            for cause in self.hypotheses
            if self.beliefs[cause] < RULED_OUT <= before[cause] and self.beliefs[cause] < before[cause] / 2
        )
        self._settle(rule, experiment, before)
        experiment = experiment.model_copy(update={"rules_out": ruled_out})
        self.experiments.append(experiment)
        self.rounds.append(
            Round(
                number=len(self.rounds) + 1,
                considered=_considered(ranked),
                chosen=rule.id,
                why=why,
                prediction=rule.says,
                result=f"{experiment.verdict}: {experiment.reason}",
                ruled_out=ruled_out,
                before=self._leaders(before),
                after=self._leaders(self.beliefs),
                seconds=round(time.perf_counter() - started, 2),
            )
        )

    def _settle(self, rule: ExperimentRule, experiment: Experiment, before: Mapping[str, float]) -> None:
        """Only an experiment confirms: the cause it tests, when its outcome speaks for it and it leads afterwards."""
        tested = [cause for cause in rule.confirms if cause in self.hypotheses]
        if not tested:
            return
        if experiment.verdict == "confirmed":
            best = max(tested, key=lambda cause: self.beliefs[cause])
            if self.beliefs[best] >= MOST_LIKELY_SHARE and self._ratio(rule, best, before, "confirmed") >= TELLING:
                self.status[best] = "confirmed"
        elif experiment.verdict == "refuted":
            for cause in tested:
                against = self._ratio(rule, cause, before, "refuted") <= 1 / TELLING
                if against and self.status.get(cause) != "confirmed":
                    self.status[cause] = "refuted"

    @staticmethod
    def _ratio(rule: ExperimentRule, cause: str, before: Mapping[str, float], outcome: Outcome) -> float:
        """How many times as likely an outcome is under a cause as under what else was believed."""
        rest = {other: belief for other, belief in before.items() if other != cause and other not in rule.confirms}
        mass = sum(rest.values())
        if mass <= 0:
            return likelihood(rule, cause, outcome) / likelihood(rule, OTHER, outcome)
        otherwise = sum(belief * likelihood(rule, other, outcome) for other, belief in rest.items()) / mass
        return likelihood(rule, cause, outcome) / otherwise

    def _note(self, ranked: Sequence[tuple[ExperimentRule, float]], why: str) -> None:
        leaders = self._leaders(self.beliefs)
        self.rounds.append(
            Round(
                number=len(self.rounds) + 1,
                considered=_considered(ranked),
                why=why,
                before=leaders,
                after=leaders,
            )
        )

    def _leaders(self, beliefs: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
        known = [(cause, belief) for cause, belief in beliefs.items() if cause in self.hypotheses]
        known.sort(key=lambda pair: (-pair[1], pair[0]))
        return tuple((cause, round(belief, 4)) for cause, belief in known[:5])

    def _ordered(self) -> list[Hypothesis]:
        """By probability now; equal ones stay in the order in which they came."""
        return sorted(self.hypotheses.values(), key=lambda item: -self.beliefs[item.cause])

    def _final(self, item: Hypothesis) -> Hypothesis:
        update: dict[str, object] = {"probability": min(1.0, max(0.0, self.beliefs[item.cause]))}
        status = self.status.get(item.cause)
        if status is not None and item.status != "explained":
            update["status"] = status
        return item.model_copy(update=update)


def _considered(ranked: Sequence[tuple[ExperimentRule, float]]) -> tuple[tuple[str, float, float], ...]:
    return tuple((rule.id, round(bits, 4), rule.cost) for rule, bits in ranked)


def _wanted(rules: Mapping[str, ExperimentRule], choose: str) -> Mapping[str, ExperimentRule]:
    if choose in {"auto", "all"}:
        return rules
    names = [name.strip() for name in choose.split(",") if name.strip()]
    unknown = [name for name in names if name not in rules]
    if unknown:
        raise UsageError(f"no experiment is called {', '.join(unknown)}; there are {', '.join(sorted(rules))}")
    return {name: rules[name] for name in names}
