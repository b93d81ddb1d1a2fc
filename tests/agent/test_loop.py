from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rca.agent import Investigation, investigate
from rca.diagnosis import Experiment, ExperimentVerdict, Hypothesis
from rca.errors import UsageError
from rca.experiments.information import expected_bits, likelihood, updated
from rca.experiments.interface import Material, RunProfile
from rca.rules.schema import ExperimentRule, Prediction

WEAK = Prediction(confirmed=0.6, refuted=0.2, inconclusive=0.2)
PROFILE = RunProfile(symptoms=("nan_abrupt",))
NONE = Material()


def rule(name: str, confirms: str, *, cost: float = 5, **update: Any) -> ExperimentRule:
    predicts = {
        confirms: Prediction(confirmed=0.85, refuted=0.05, inconclusive=0.1),
        "other": Prediction(confirmed=0.05, refuted=0.75, inconclusive=0.2),
    }
    base: dict[str, Any] = {
        "id": name,
        "title": name,
        "question": "?",
        "change": {"lr": "x0.1"},
        "confirms": (confirms,),
        "says": f"{confirms} predicts recovery",
        "predicts": predicts,
        "cost": cost,
    }
    return ExperimentRule(**{**base, **update})


RULES = {item.id: item for item in (rule("e_a", "x.a"), rule("e_b", "x.b"), rule("e_c", "x.c", cost=50))}


class Pretend:
    """Gives every experiment the verdict that it was told."""

    def __init__(self, verdicts: Mapping[str, ExperimentVerdict]) -> None:
        self.verdicts = verdicts
        self.asked: list[str] = []
        self.allowed: list[float] = []

    def __call__(
        self, rule: ExperimentRule, *, profile: RunProfile, device: str, seconds: float, material: Material = NONE
    ) -> Experiment:
        self.asked.append(rule.id)
        self.allowed.append(seconds)
        return Experiment(
            id=rule.id,
            title=rule.title,
            question=rule.question,
            tests=rule.confirms,
            prediction=rule.says,
            verdict=self.verdicts.get(rule.id, "refuted"),
            reason="so it was told.",
            seconds=0.1,
        )


def hypotheses(**probabilities: float) -> tuple[Hypothesis, ...]:
    return tuple(Hypothesis(cause=f"x.{name}", title=name, probability=value) for name, value in probabilities.items())


def go(pretend: Pretend, found: tuple[Hypothesis, ...], **options: Any) -> Investigation:
    profile = options.pop("profile", PROFILE)
    return investigate(found, options.pop("rules", RULES), profile, pretend, **options)


def test_the_true_cause_is_confirmed_and_its_rivals_fall() -> None:
    pretend = Pretend({"e_a": "confirmed"})
    result = go(pretend, hypotheses(a=0.45, b=0.35, c=0.1))
    first = result.hypotheses[0]
    assert (first.cause, first.status) == ("x.a", "confirmed")
    assert first.probability > 0.85
    assert sum(item.probability for item in result.hypotheses) < 1
    assert pretend.asked[0] == "e_a"


def test_a_refuted_leader_gives_way_and_the_log_says_what_was_ruled_out() -> None:
    pretend = Pretend({"e_a": "refuted", "e_b": "confirmed"})
    result = go(pretend, hypotheses(a=0.5, b=0.4))
    by_cause = {item.cause: item for item in result.hypotheses}
    assert by_cause["x.b"].status == "confirmed"
    assert by_cause["x.a"].status == "refuted"
    assert by_cause["x.a"].probability < 0.1
    assert any("x.a" in step.ruled_out for step in result.rounds)
    assert all(step.prediction for step in result.rounds if step.chosen)
    assert any(step.result.startswith("refuted") for step in result.rounds)


def test_what_the_twin_did_not_reproduce_weighs_little() -> None:
    result = go(Pretend({"e_a": "not_reproduced", "e_b": "not_reproduced"}), hypotheses(a=0.7, b=0.2))
    first = result.hypotheses[0]
    assert (first.cause, first.status) == ("x.a", "suspected")
    assert 0.6 < first.probability < 0.7


def test_the_log_shows_beliefs_before_and_after_and_what_was_considered() -> None:
    result = go(Pretend({"e_a": "confirmed"}), hypotheses(a=0.5, b=0.4))
    step = result.rounds[0]
    assert dict(step.before)["x.a"] == 0.5
    assert dict(step.after)["x.a"] > 0.5
    assert {name for name, _, _ in step.considered} == {"e_a", "e_b"}
    assert [step.number for step in result.rounds] == list(range(1, len(result.rounds) + 1))


def test_the_cheaper_of_two_equal_experiments_comes_first() -> None:
    pretend = Pretend({})
    go(pretend, hypotheses(c=0.4, b=0.4))
    assert pretend.asked[0] == "e_b"


def test_the_cause_decides_between_experiments_that_tell_almost_the_same() -> None:
    pretend = Pretend({})
    rules = {"e_a": rule("e_a", "x.a"), "e_z": rule("e_z", "x.a", cost=5.2)}
    go(pretend, (Hypothesis(cause="x.a", title="a", probability=0.6, experiments=("e_z", "e_a")),), rules=rules)
    assert pretend.asked[0] == "e_z"


@pytest.mark.parametrize("verdict", ["error", "not_testable", "invalid", "no_op"])
def test_an_experiment_without_an_outcome_changes_nothing(verdict: ExperimentVerdict) -> None:
    result = go(Pretend(dict.fromkeys(RULES, verdict)), hypotheses(a=0.5, b=0.4))
    assert {item.cause: item.probability for item in result.hypotheses} == pytest.approx({"x.a": 0.5, "x.b": 0.4})
    assert all(item.status == "suspected" for item in result.hypotheses)


def test_a_certain_cause_without_experiment_is_left_alone_and_the_log_says_why() -> None:
    pretend = Pretend({})
    found = (Hypothesis(cause="environment.package_missing", title="t", probability=0.97),)
    result = go(pretend, found)
    assert pretend.asked == []
    assert result.experiments == ()
    assert "environment.package_missing" in result.rounds[0].why


def test_no_hypothesis_no_experiment() -> None:
    result = go(Pretend({}), ())
    assert result.rounds[0].chosen == ""
    assert "No hypothesis" in result.rounds[0].why


def test_a_probable_cause_is_still_confirmed_by_its_experiment() -> None:
    result = go(Pretend({"e_a": "confirmed"}), hypotheses(a=0.96))
    assert result.hypotheses[0].status == "confirmed"
    assert "no experiment has confirmed it yet" in result.rounds[0].why


def test_an_improbable_cause_is_not_called_confirmed() -> None:
    result = go(Pretend({"e_a": "confirmed"}), hypotheses(a=0.03, b=0.9), choose="e_a")
    assert {item.cause: item.status for item in result.hypotheses}["x.a"] == "suspected"


def test_an_outcome_that_every_cause_predicts_confirms_nothing() -> None:
    same = Prediction(confirmed=0.8, refuted=0.1, inconclusive=0.1)
    blunt = rule("e_a", "x.a", predicts={"x.a": same, "other": same})
    result = go(Pretend({"e_a": "confirmed"}), hypotheses(a=0.7, b=0.2), rules={"e_a": blunt})
    assert result.hypotheses[0].status == "suspected"


def test_an_outcome_that_its_own_cause_predicts_refutes_nothing() -> None:
    own = Prediction(confirmed=0.3, refuted=0.6, inconclusive=0.1)
    other = Prediction(confirmed=0.1, refuted=0.4, inconclusive=0.5)
    weak = rule("e_a", "x.a", predicts={"x.a": own, "other": other})
    result = go(Pretend({"e_a": "refuted"}), hypotheses(a=0.6, b=0.2), rules={"e_a": weak})
    assert result.hypotheses[0].status == "suspected"


def test_experiments_that_cannot_speak_about_the_symptom_are_not_run() -> None:
    about = {"e_a": rule("e_a", "x.a", symptoms=("stuck",))}
    pretend = Pretend({})
    result = go(pretend, hypotheses(a=0.6), rules=about)
    assert pretend.asked == []
    assert "nan_abrupt" in result.rounds[0].why


def test_a_budget_of_nothing_runs_nothing() -> None:
    pretend = Pretend({})
    result = go(pretend, hypotheses(a=0.5, b=0.4), budget_s=0)
    assert pretend.asked == []
    assert "time" in result.rounds[-1].why


def test_explained_symptoms_start_no_experiment() -> None:
    pretend = Pretend({})
    found = (Hypothesis(cause="x.a", title="t", probability=0.5, status="explained"),)
    assert go(pretend, found).hypotheses[0].status == "explained"
    assert pretend.asked == []


def test_chosen_experiments_run_and_unknown_ones_are_a_usage_error() -> None:
    pretend = Pretend({})
    go(pretend, hypotheses(a=0.5), choose="e_c,e_a")
    assert sorted(pretend.asked) == ["e_a", "e_c"]
    with pytest.raises(UsageError, match="e_z"):
        go(pretend, hypotheses(a=0.5), choose="e_z")


def test_all_runs_every_experiment_on_a_live_cause() -> None:
    pretend = Pretend({})
    go(pretend, hypotheses(a=0.5, b=0.3), choose="all")
    assert sorted(pretend.asked) == ["e_a", "e_b"]


def test_likelihoods_are_tempered_and_bayes_keeps_the_total() -> None:
    assert likelihood(RULES["e_a"], "x.a", "confirmed") == pytest.approx(0.85 * 0.85 + 0.05)
    beliefs = {"x.a": 0.5, "x.b": 0.3, "other": 0.1}
    after = updated(beliefs, RULES["e_a"], "confirmed")
    assert sum(after.values()) == pytest.approx(0.9)
    assert after["x.a"] > 0.75
    assert expected_bits(beliefs, RULES["e_a"]) > 0.2
    assert expected_bits({"x.a": 1.0}, RULES["e_a"]) == 0


class Slow(Pretend):
    """Takes its time on a clock of its own, and ends at the latest when it was told to."""

    def __init__(self, takes: Callable[[ExperimentRule], float], verdict: ExperimentVerdict = "inconclusive") -> None:
        super().__init__(dict.fromkeys(RULES, verdict))
        self.takes, self.time = takes, 0.0

    def now(self) -> float:
        return self.time

    def __call__(self, rule: ExperimentRule, *, seconds: float, **run: Any) -> Experiment:
        self.time += min(self.takes(rule), seconds)
        return super().__call__(rule, seconds=seconds, **run)


def test_a_confirmed_cause_far_above_its_rivals_settles_it_whatever_is_not_listed() -> None:
    pretend = Pretend({"e_a": "confirmed"})
    result = go(pretend, hypotheses(a=0.3, b=0.05))
    assert pretend.asked == ["e_a"]
    assert result.hypotheses[0].probability < 0.9
    assert "far above every rival" in result.rounds[-1].why


def test_a_confirmed_cause_with_a_close_rival_does_not_settle_it() -> None:
    pretend = Pretend({"e_a": "confirmed", "e_b": "refuted"})
    go(pretend, hypotheses(a=0.4, b=0.4))
    assert pretend.asked == ["e_a", "e_b"]


@pytest.mark.parametrize("speed", [0.1, 1, 4, 1000])
@pytest.mark.parametrize("budget", [0.5, 5, 20, 60])
def test_the_budget_is_kept_however_slow_the_machine_is(budget: float, speed: float) -> None:
    slow = Slow(lambda rule: speed * rule.cost)
    result = go(slow, hypotheses(a=0.3, b=0.3, c=0.3), budget_s=budget, clock=slow.now)
    assert slow.asked, "the first experiment always gets its chance"
    assert slow.time <= budget
    assert result.seconds <= budget
    assert result.rounds[-1].why


def test_what_is_not_expected_to_end_in_time_is_not_started_and_a_shorter_one_is() -> None:
    slow = Slow(lambda rule: 4 * rule.cost)
    rules = {item.id: item for item in (rule("e_a", "x.a"), rule("e_b", "x.b", cost=8), rule("e_c", "x.c", cost=4))}
    result = go(slow, hypotheses(a=0.25, b=0.45, c=0.25), rules=rules, budget_s=50, clock=slow.now)
    assert slow.asked[-1] != "e_b"
    assert "e_b" not in slow.asked or slow.asked[0] == "e_b"
    assert any("too short" in step.why or "shorter" in step.why for step in result.rounds)


def test_an_outcome_that_the_clock_left_open_is_no_evidence() -> None:
    slow = Slow(lambda rule: 1000, verdict="inconclusive")
    result = go(slow, hypotheses(a=0.5, b=0.4), budget_s=60, clock=slow.now)
    assert result.experiments[0].verdict == "not_testable"
    assert "time was over" in result.experiments[0].reason
    assert {item.cause: item.probability for item in result.hypotheses} == pytest.approx({"x.a": 0.5, "x.b": 0.4})


def test_with_little_time_a_short_experiment_takes_the_place_of_the_best() -> None:
    slow = Slow(lambda rule: rule.cost)
    rules = {"e_a": rule("e_a", "x.a", cost=8), "e_b": rule("e_b", "x.b", cost=2)}
    rules["e_b"] = rules["e_b"].model_copy(update={"predicts": {**rules["e_b"].predicts, "x.b": WEAK}})
    found = hypotheses(a=0.5, b=0.05)
    assert go(slow, found, rules=rules, budget_s=600, clock=slow.now).rounds[0].chosen == "e_a"
    slow = Slow(lambda rule: rule.cost)
    assert go(slow, found, rules=rules, budget_s=9, clock=slow.now).rounds[0].chosen == "e_b"


def test_a_limit_for_each_experiment_is_passed_on() -> None:
    pretend = Pretend({})
    go(pretend, hypotheses(a=0.5, b=0.4), limit_s=7)
    assert len(pretend.allowed) == 2
    assert all(allowed <= 7 for allowed in pretend.allowed)


@pytest.mark.parametrize("seed", range(5))
def test_the_same_diagnosis_whatever_the_load_while_there_is_time(seed: int) -> None:
    def outcome(load: Callable[[ExperimentRule], float]) -> Investigation:
        slow = Slow(load)
        slow.verdicts = {"e_a": "inconclusive", "e_b": "refuted", "e_c": "confirmed"}
        return go(slow, hypotheses(a=0.3, b=0.3, c=0.3), budget_s=10_000, clock=slow.now)

    random = Random(seed)
    busy, idle = outcome(lambda rule: random.uniform(0.1, 9) * rule.cost), outcome(lambda rule: 0.3 * rule.cost)

    def told(result: Investigation) -> list[Any]:
        return [step.model_dump(exclude={"seconds"}) for step in result.rounds]

    assert told(busy) == told(idle)
    assert busy.hypotheses == idle.hypotheses


def test_the_leader_can_lose_to_a_rival_that_hardly_anybody_believed_in() -> None:
    rules = {
        "e_a": rule("e_a", "x.a", predicts={
            "x.a": Prediction(confirmed=0.9, refuted=0.05, inconclusive=0.05),
            "x.b": Prediction(confirmed=0.02, refuted=0.9, inconclusive=0.08),
            "other": Prediction(confirmed=0.3, refuted=0.3, inconclusive=0.4),
        }),
        "e_b": rule("e_b", "x.b"),
    }  # fmt: skip
    pretend = Pretend({"e_a": "refuted", "e_b": "confirmed"})
    result = go(pretend, hypotheses(a=0.7, b=0.015), rules=rules)
    assert {name for name, _, _ in result.rounds[0].considered} == {"e_a", "e_b"}
    assert {row[0] for row in result.rounds[0].expected} == {"x.a", "x.b", "other"}
    by_cause = {item.cause: item for item in result.hypotheses}
    assert by_cause["x.b"].probability > by_cause["x.a"].probability
    assert by_cause["x.a"].status == "refuted"


def test_ctrl_c_keeps_what_was_found_before() -> None:
    class Stopped(Pretend):
        def __call__(self, rule: ExperimentRule, **run: Any) -> Experiment:
            if rule.id == "e_b":
                raise KeyboardInterrupt
            return super().__call__(rule, **run)

    result = go(Stopped({"e_a": "refuted"}), hypotheses(a=0.5, b=0.4))
    assert result.interrupted
    assert [item.id for item in result.experiments] == ["e_a"]
    assert result.rounds[-1].chosen == "e_b"
    assert "interrupted" in result.rounds[-1].result
    assert {item.cause: item.status for item in result.hypotheses}["x.a"] == "refuted"


def test_an_experiment_that_tests_no_cause_comes_last_and_changes_no_belief() -> None:
    rules = {**RULES, "a_search": rule("a_search", "x.a").model_copy(update={"confirms": (), "predicts": {}})}
    pretend = Pretend({"e_a": "confirmed", "a_search": "confirmed"})
    result = go(pretend, hypotheses(a=0.5, b=0.4), rules=rules)
    assert pretend.asked[-1] == "a_search"
    assert pretend.asked.count("a_search") == 1
    assert result.rounds[-2].before == result.rounds[-2].after
    assert "confirmed and has a probability" in result.rounds[-1].why


def test_checks_whose_files_are_missing_are_not_offered(tmp_path: Path) -> None:
    rules = {"e_a": rule("e_a", "x.a", kind="probe", needs=("weights",))}
    pretend = Pretend({})
    go(pretend, hypotheses(a=0.5), rules=rules, material=Material(folder=tmp_path))
    assert pretend.asked == []
    (tmp_path / "model.safetensors").write_bytes(b"")
    go(pretend, hypotheses(a=0.5), rules=rules, material=Material(folder=tmp_path))
    assert pretend.asked == ["e_a"]


def test_the_agent_loads_no_torch() -> None:
    import subprocess
    import sys

    code = "import rca.agent, rca.experiments.run, rca.experiments.profile, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
