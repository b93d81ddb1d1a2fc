"""The loop: choose an experiment, run it, believe the result, go on until it is settled or the time is over."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rca.agent.belief import Belief
from rca.agent.budget import Budget
from rca.agent.choice import Choice, Chooser, Order, Ranked
from rca.diagnosis import Experiment, Hypothesis, Round
from rca.errors import UsageError
from rca.experiments.checks.files import left
from rca.experiments.information import OTHER, OUTCOMES, likelihood
from rca.experiments.interface import Experimenter, Material, RunProfile
from rca.rules.schema import ExperimentRule

INTERRUPTED = "The experiments were interrupted; what was found before stands."
CUT = 0.98
"""Share of the time allowed from which an open outcome comes from the clock: that is no evidence about the cause."""


@dataclass(frozen=True)
class Investigation:
    """What the experiments made of the hypotheses."""

    hypotheses: tuple[Hypothesis, ...]
    experiments: tuple[Experiment, ...]
    rounds: tuple[Round, ...]
    seconds: float = 0.0
    """From the first choice to the stop."""
    interrupted: bool = False
    """The user stopped it; the rounds before that count."""


def investigate(
    hypotheses: Sequence[Hypothesis],
    rules: Mapping[str, ExperimentRule],
    profile: RunProfile,
    experimenter: Experimenter,
    *,
    budget_s: float = 60.0,
    limit_s: float | None = None,
    device: str = "auto",
    choose: str = "auto",
    order: Order = "information",
    material: Material | None = None,
    untestable: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Investigation:
    """Test the leading hypotheses by experiment until one is settled, nothing informs any more, or time is over.

    `choose` is `auto`, `all` (every experiment that concerns a candidate) or experiment ids separated by commas.
    `budget_s` is for all experiments, `limit_s` for each one. Ctrl-C ends the experiment that runs and the
    investigation; what was found before is returned. `untestable` tells, for a domain or a cause id, why no tiny
    training can show it. Raises UsageError for an unknown id.
    """
    material = material or Material()
    chooser = Chooser(_wanted(rules, choose), profile, choose, order, left(material), untestable or {})
    budget = Budget(budget_s, limit=limit_s, clock=clock)
    carry_out = partial(experimenter, profile=profile, device=device, material=material)
    return _Loop(Belief(hypotheses), chooser, budget, carry_out).run()


class _Loop:
    """State of one investigation."""

    def __init__(self, belief: Belief, chooser: Chooser, budget: Budget, carry_out: Callable[..., Experiment]) -> None:
        self.belief, self.chooser, self.budget, self.carry_out = belief, chooser, budget, carry_out
        self.experiments: list[Experiment] = []
        self.rounds: list[Round] = []

    def run(self) -> Investigation:
        """Go through the rounds."""
        choice, interrupted = Choice(None, ""), False
        try:
            while True:
                choice = self.chooser.next(self.belief, self.budget)
                if choice.rule is None:
                    break
                self._round(choice.rule, choice)
            self._note(choice)
        except KeyboardInterrupt:
            self._note(choice, result=INTERRUPTED)
            interrupted = True
        return Investigation(
            hypotheses=self.belief.final(),
            experiments=tuple(self.experiments),
            rounds=tuple(self.rounds),
            seconds=round(self.budget.spent, 2),
            interrupted=interrupted,
        )

    def _round(self, rule: ExperimentRule, choice: Choice) -> None:
        before, leaders = self.budget.spent, self.belief.leaders
        expected = self._expected(rule)
        allowed = self.budget.allowed()
        experiment = self.carry_out(rule, seconds=allowed)
        seconds = self.budget.spent - before
        if experiment.verdict == "inconclusive" and seconds >= CUT * allowed:
            reason = f"The time was over before it was decided. {experiment.reason}"
            experiment = experiment.model_copy(update={"verdict": "not_testable", "reason": reason})
        self.budget.saw(rule, seconds)
        self.chooser.done.add(rule.id)
        ruled_out = self.belief.learn(rule, experiment)
        self.experiments.append(experiment.model_copy(update={"rules_out": ruled_out}))
        self.rounds.append(
            Round(
                number=len(self.rounds) + 1,
                considered=_shown(choice.considered),
                chosen=rule.id,
                why=choice.why,
                prediction=rule.says,
                expected=expected,
                result=f"{experiment.verdict}: {experiment.reason}",
                ruled_out=ruled_out,
                before=leaders,
                after=self.belief.leaders,
                seconds=round(seconds, 2),
            )
        )

    def _note(self, choice: Choice, *, result: str = "") -> None:
        """A round without an outcome: why the investigation stops."""
        leaders = self.belief.leaders
        self.rounds.append(
            Round(
                number=len(self.rounds) + 1,
                considered=_shown(choice.considered),
                chosen=choice.rule.id if choice.rule is not None else "",
                why=choice.why,
                result=result,
                before=leaders,
                after=leaders,
            )
        )

    def _expected(self, rule: ExperimentRule) -> tuple[tuple[str, float, float, float], ...]:
        """What each cause that the rule names predicts, as far as it is a candidate, and what all others do."""
        if not rule.predicts:
            return ()
        named = [cause for cause in self.chooser.candidates(self.belief) if cause in rule.predicts]
        rows = []
        for cause in (*named, OTHER):
            confirmed, refuted, open_ = (round(likelihood(rule, cause, outcome), 3) for outcome in OUTCOMES)
            rows.append((cause, confirmed, refuted, open_))
        return tuple(rows)


def _shown(considered: Sequence[Ranked]) -> tuple[tuple[str, float, float], ...]:
    return tuple((item.rule.id, round(item.bits, 4), item.rule.cost) for item in considered)


def no_experiment(unknown: Sequence[str], known: Iterable[str]) -> str:
    """Return the sentence for names that no experiment has, with those that look like the first."""
    close = difflib.get_close_matches(unknown[0], list(known), n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`rca experiment list` shows all"
    return f"no experiment is called {', '.join(unknown)}; {hint}"


def _wanted(rules: Mapping[str, ExperimentRule], choose: str) -> Mapping[str, ExperimentRule]:
    if choose in {"auto", "all"}:
        return rules
    names = [name.strip() for name in choose.split(",") if name.strip()]
    unknown = [name for name in names if name not in rules]
    if unknown:
        raise UsageError(no_experiment(unknown, rules))
    return {name: rules[name] for name in names}
