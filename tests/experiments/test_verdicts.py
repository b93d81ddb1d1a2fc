"""What verdicts may say: each is explained and has its reasons, and none says what a tiny training cannot show."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from rca.agent import investigate
from rca.agent.belief import Belief
from rca.diagnosis import Experiment, ExperimentVerdict, Hypothesis
from rca.experiments.checks.experiment import ProbeExperiment
from rca.experiments.interface import RunProfile
from rca.experiments.loops.experiment import LoopExperiment
from rca.experiments.memory.experiment import MemoryExperiment
from rca.experiments.twin.config import TwinConfig
from rca.experiments.twin.experiment import TwinExperiment
from rca.experiments.workbench import TIME_OVER, Answer, Task, Workbench
from rca.report.words import ENGLISH, catalogue
from rca.rules.check import check
from rca.rules.load import load
from tests.experiments.conftest import PretendBench

KNOWLEDGE = load()
VERDICTS = get_args(ExperimentVerdict)
HIGH_RATE = RunProfile(family="llama", hidden_size=64, learning_rate=0.1, symptoms=("diverged", "plateau"))
OUT_OF_MEMORY = RunProfile(
    family="llama",
    hidden_size=1024,
    num_layers=8,
    num_attention_heads=16,
    vocab_size=32000,
    optimizer="adamw",
    batch_size=16,
    seq_length=1024,
    precision="bf16",
    device_capacity_bytes=8 * 2**30,
    symptoms=("out_of_memory",),
)
Loss = Callable[[TwinConfig, int], "float | list[float]"]


def losses(control: list[float], treatment: list[float], reference: float = 1.4) -> Loss:
    """Loss of each arm by seed; a tenth of the rate is the treatment."""

    def loss(config: TwinConfig, seed: int) -> float:
        if math.isclose(config.lr, 0.1):
            return control[seed % len(control)]
        return treatment[seed % len(treatment)] if math.isclose(config.lr, 0.01) else reference

    return loss


@pytest.mark.parametrize(
    ("verdict", "loss", "said"),
    [
        ("confirmed", losses([5.0], [1.5]), "of what was lost"),
        ("mitigates", losses([5.0], [3.6]), "It helps but does not take the failure away."),
        ("refuted", losses([5.0, 5.1, 5.2], [5.1, 5.0, 5.2]), "of what was lost"),
        ("inconclusive", losses([4.0, 2.7, 4.6], [2.2, 3.2, 3.6]), "That decides nothing: it lies above 0.075 with"),
        ("not_reproduced", losses([1.5], [1.45]), "with the run's own settings shows"),
        ("invalid", losses([5.0, 5.0, 5.0, 1.4, 1.4, 1.4], [1.4]), "the control differs from itself as much"),
        ("invalid", losses([5.0], [1.5], reference=5.4), "The reference arm did not learn"),
    ],
)
def test_every_verdict_has_its_reason(verdict: str, loss: Loss, said: str, soon: float) -> None:
    rule = KNOWLEDGE.experiments["lr_tenth"].model_copy(update={"ladder": 1})
    bench: Any = PretendBench(loss)
    found = TwinExperiment(rule, HIGH_RATE, bench, soon).carry_out()
    assert (found.verdict, said in found.reason) == (verdict, True), found.reason
    assert found.reason.endswith(".")
    if found.effect is not None:
        assert found.effect.low < found.effect.value < found.effect.high
        if verdict != "not_reproduced":
            said_interval = re.search(r"95 % interval ([-+][\d.]+) to ([-+][\d.]+)", found.reason)
            assert said_interval is not None
            assert float(said_interval[1]) == pytest.approx(found.effect.low, abs=0.006)
            assert float(said_interval[2]) == pytest.approx(found.effect.high, abs=0.006)


class BrokenBench(Workbench):
    """Answers every task with the same error."""

    def __init__(self, error: str, *, died: bool = True) -> None:
        super().__init__()
        self.error, self.died = error, died

    def run(self, tasks: Any, *, deadline: float) -> list[Answer]:
        return [Answer(error=self.error, died=self.died) for _ in tasks]


@pytest.mark.parametrize(
    ("verdict", "error"),
    [
        ("error", "the job was ended by SIGKILL, from outside or because the system had no memory left"),
        ("error", "the child process did not start, it ended: ModuleNotFoundError: No module named 'torch'"),
        ("not_testable", "the time for experiments was over"),
    ],
)
def test_an_arm_that_does_not_finish_has_its_reason(verdict: str, error: str, soon: float) -> None:
    found = TwinExperiment(KNOWLEDGE.experiments["lr_tenth"], HIGH_RATE, BrokenBench(error), soon).carry_out()
    assert found.verdict == verdict
    assert error[1:] in found.reason
    assert found.reason[0].isupper()


class LateBench(PretendBench):
    """Has no time for the fourth seed and those after it."""

    def _answer(self, task: Task) -> Answer:
        return Answer(error=TIME_OVER) if task.payload["seed"] >= 3 else super()._answer(task)


def test_without_time_for_the_null_check_nothing_is_confirmed(soon: float) -> None:
    bench: Any = LateBench(losses([5.0], [1.5]))
    found = TwinExperiment(KNOWLEDGE.experiments["lr_tenth"], HIGH_RATE, bench, soon).carry_out()
    assert found.verdict == "inconclusive"
    assert "would confirm, but there was no time to see whether further seeds of the control fail" in found.reason


def test_a_treatment_is_one_change_over_the_same_seeds(soon: float) -> None:
    bench: Any = PretendBench(losses([5.0], [1.5]))
    found = TwinExperiment(KNOWLEDGE.experiments["lr_tenth"], HIGH_RATE, bench, soon).carry_out()
    assert found.control is not None
    assert found.treatment is not None
    assert found.control.seeds == found.treatment.seeds == (0, 1, 2)
    assert set(found.treatment.settings) == {"lr"}


def test_every_verdict_is_explained_and_has_a_word_in_the_report(root: Path) -> None:
    text = (root / "knowledge" / "README.md").read_text(encoding="utf-8")
    for verdict in VERDICTS:
        assert f"\n| `{verdict}` | " in text
        assert catalogue(ENGLISH)[f"experiment.{verdict}"]


# What a tiny training cannot show


def test_no_training_confirms_what_it_cannot_show() -> None:
    assert {"hardware", "scheduler", "environment", "distributed"} <= set(KNOWLEDGE.untestable)
    for rule in KNOWLEDGE.experiments.values():
        if rule.kind == "twin":
            untestable = {cause for cause in rule.confirms if {cause, cause.split(".")[0]} & set(KNOWLEDGE.untestable)}
            assert not untestable, rule.id
        if rule.kind == "loop":
            assert not {cause.split(".")[0] for cause in rule.confirms} & {"hardware", "scheduler", "environment"}


def test_what_is_untestable_exists_and_says_why() -> None:
    domains = {cause.split(".")[0] for cause in KNOWLEDGE.taxonomy}
    for name, why in KNOWLEDGE.untestable.items():
        assert name in domains | set(KNOWLEDGE.taxonomy)
        assert why.endswith(".")


def test_a_rule_of_a_team_that_would_confirm_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taxonomy.yaml").write_text(
        "causes: {hardware.gpu_fault: broken}\nuntestable: {hardware: The device is not here.}\n"
    )
    (tmp_path / "magic.yaml").write_text(
        textwrap.dedent("""
        id: magic
        title: Magic
        question: Is it the device?
        change: {lr: x0.1}
        confirms: [hardware.gpu_fault]
        says: If it recovers, the device is broken.
        predicts: {other: {confirmed: 0.1, refuted: 0.8, inconclusive: 0.1}}
        cost: 1
        """)
    )
    said = [
        str(item)
        for item in check(load([tmp_path], builtin=False), facts={}, common_name=lambda name: name, to_beat=-9)
    ]
    why = (
        "an experiment on the twin cannot confirm hardware.gpu_fault (`untestable` in taxonomy.yaml): The device is not"
    )
    assert any(why in text for text in said), said


def test_the_log_says_that_a_leading_cause_is_not_testable() -> None:
    def never(*_args: Any, **_options: Any) -> Any:
        raise AssertionError("nothing to carry out")

    result = investigate(
        (Hypothesis(cause="hardware.gpu_fault", title="A fault of the device", probability=0.97),),
        KNOWLEDGE.experiments,
        RunProfile(),
        never,
        untestable=KNOWLEDGE.untestable,
    )
    assert "hardware.gpu_fault is not testable here: the device that failed is not here" in result.rounds[-1].why
    assert [item.status for item in result.hypotheses] == ["suspected"]


def test_of_two_confirmed_rivals_only_the_one_that_leads_stays_confirmed() -> None:
    def outcome(verdict: str, name: str) -> Experiment:
        rule = KNOWLEDGE.experiments[name]
        return Experiment.model_validate(
            {"id": name, "title": "", "question": "", "tests": rule.confirms, "prediction": "", "verdict": verdict}
        )

    found = [
        Hypothesis(cause=cause, title="", probability=share)
        for cause, share in (("numerics.lr_too_high", 0.6), ("numerics.bad_init", 0.3))
    ]
    belief = Belief(found)
    belief.learn(KNOWLEDGE.experiments["lr_tenth"], outcome("confirmed", "lr_tenth"))
    assert belief.final()[0].status == "confirmed"
    for _ in range(3):
        belief.learn(KNOWLEDGE.experiments["init_fix"], outcome("confirmed", "init_fix"))
    assert [(item.cause, item.status) for item in belief.final()] == [
        ("numerics.bad_init", "confirmed"),
        ("numerics.lr_too_high", "suspected"),
    ]


def test_a_task_is_the_same_only_with_the_same_content() -> None:
    assert Task("train", {"a": 1, "b": 2}).key == Task("train", {"b": 2, "a": 1}).key
    assert Task("train", {"a": 1}).key != Task("probe", {"a": 1}).key


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("half_batch", OUT_OF_MEMORY),
        ("use_cache", OUT_OF_MEMORY.model_copy(update={"symptoms": ("tokens_slow_down",), "token_growth": 3.0})),
        ("release_graph", OUT_OF_MEMORY.model_copy(update={"symptoms": ("memory_grows",), "growth_gib_per_step": 1.0})),
    ],
)
def test_a_job_that_died_is_an_error_whatever_the_kind_of_experiment(
    name: str, profile: RunProfile, soon: float
) -> None:
    rule = KNOWLEDGE.experiments[name]
    kinds: dict[str, Any] = {"memory": MemoryExperiment, "probe": ProbeExperiment, "loop": LoopExperiment}
    for died, verdict in ((True, "error"), (False, "not_testable")):
        bench = BrokenBench("the job was ended by SIGKILL" if died else "the time for experiments was over", died=died)
        found = kinds[rule.kind](rule, profile, bench, soon).carry_out()
        assert found.verdict == verdict
        assert bench.error in found.reason
