"""An experiment on the twin: reproduce the symptom, change one thing, judge."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rca.diagnosis import Experiment, ExperimentVerdict
from rca.errors import ExperimentError
from rca.experiments.entry import change_words
from rca.experiments.interface import RunProfile
from rca.experiments.judges import (
    CERTAINTY,
    CONFIRMING,
    FEWEST,
    HIGHEST,
    MARGIN,
    MOST,
    USEFUL,
    Judgement,
    gap,
    harmful,
    reproduced,
)
from rca.experiments.symptoms import STARTS_HIGH, UNSTABLE, reproduces
from rca.experiments.trial import Seen, Trial, carry_through
from rca.experiments.twin.arms import BrokenReference, Outcome, OutOfTime, TrainedArm, train, train_further
from rca.experiments.twin.config import (
    Twin,
    TwinConfig,
    changed,
    differences,
    is_quantile,
    reference_of,
    resolved,
    twin_of,
)
from rca.experiments.twin.report import Finding, figures, report, words
from rca.experiments.workbench import Workbench
from rca.rules.schema import ExperimentRule

NOTHING_LEARNT = 0.9
"""Share of the learnable gap lost from which an arm has learnt next to nothing."""
_RATES = frozenset({"lr", "lr_factor", "warmup"})
"""Settings whose meaning depends on the width map."""
_LIMITS = {
    "late": "a minute of training does not show what takes that long (growing logits, rare spikes, drift of the data)",
    "pretrained": "trained weights and their outliers are not on a twin that starts from random ones",
    "large_epsilon": "a higher learning rate makes up for such an epsilon without being what is wrong",
    "high_momentum": "a lower learning rate makes up for such a momentum without being what is wrong",
    "accumulates": "no accumulation of gradients is recorded",
    "length_outliers": "no batch is recorded as much longer than the others",
}
"""What a tiny model cannot show, by property of the run."""


@dataclass(frozen=True)
class TwinExperiment:
    """One rule on one twin."""

    rule: ExperimentRule
    profile: RunProfile
    bench: Workbench
    until: float
    """Monotonic clock."""
    twin: Twin | None = None
    """Stands in for the twin of the profile, with `reference` as the recipe to measure by."""
    reference: TwinConfig | None = None
    data: str = "synthetic data"
    """What the arms are trained on, in words."""

    def carry_out(self) -> Experiment:
        """Run the arms and judge; every way to end is a verdict."""
        started = time.perf_counter()
        twin = None
        try:
            twin = self.twin or twin_of(self.profile)
            refusal = self._refusal()
            finding = Finding("not_testable", refusal) if refusal else self._test(twin)
        except OutOfTime as error:
            finding = Finding("not_testable", _sentence(error))
        except BrokenReference as error:
            finding = Finding("invalid", _sentence(error))
        except ExperimentError as error:
            finding = Finding("error", _sentence(error))
        seconds = time.perf_counter() - started
        return report(self.rule, finding, twin=twin, data=self.data, device=self.bench.device, seconds=seconds)

    def _refusal(self) -> str:
        """Why the experiment says nothing about this run, if so."""
        rule, profile = self.rule, self.profile
        for name, value in rule.excludes.items():
            if getattr(profile, name, None) == value:
                why = _LIMITS.get(name, "on a twin this would prove nothing")
                return f"The run has {name.replace('_', ' ')} = {value}: {why}."
        if not profile.symptoms:
            return "The run left no training curve with a symptom that a twin could reproduce."
        if rule.symptoms and not set(rule.symptoms) & set(profile.symptoms):
            return f"The run shows {words(profile.symptoms)}; this experiment speaks about {words(rule.symptoms)} only."
        if profile.late and not rule.reproduces and set(self._observed) & UNSTABLE:
            return self._too_late()
        return ""

    @property
    def _observed(self) -> tuple[str, ...]:
        """What the run showed, as far as the experiment speaks about it."""
        about = {*self.rule.symptoms, STARTS_HIGH} if self.rule.symptoms else set(self.profile.symptoms)
        return tuple(word for word in self.profile.symptoms if word in about)

    def _too_late(self) -> str:
        return (
            f"The failure came {self.profile.steps_at_rate} steps after the learning rate had reached its value there: "
            f"{_LIMITS['late']}."
        )

    def _test(self, twin: Twin) -> Finding:
        """Reproduce with the run's own settings, else with the planted fault; then compare."""
        reference = self.reference or reference_of(twin.config)
        # A setting that the twin does not have is an error before anything is trained.
        changed(twin.config, {name: value for name, value in self.rule.change.items() if not is_quantile(value)})
        own, good, fails = self._control(twin.config, reference, planted=False)
        if fails and self.profile.late and set(self._observed) & UNSTABLE:
            return Finding("not_testable", self._too_late(), own, None, good)
        control, planted = own, False
        # A start far above chance that the run's own settings do not give is not explained by how they fail.
        unexplained = STARTS_HIGH in self._observed and STARTS_HIGH not in own.words
        # On top of settings that break the twin by themselves a planted fault shows nothing.
        if self.rule.reproduces and (unexplained or not fails) and not own.unstable:
            config = changed(twin.config, self.rule.reproduces)
            control, good, fails = self._control(config, reference, planted=True)
            planted = True
        if not fails:
            return self._unreproduced(own, control, good, planted)
        treated = changed(control.config, resolved(self.rule.change, control.norms))
        if not differences(control.config, treated):
            reason = (
                f"The twin fails as the run did ({words(control.words)}) although {change_words(self.rule)} is what it "
                f"has already: the failure does not come from there. It loses {figures(control.values)} of the "
                "learnable gap."
            )
            return Finding("refuted", reason, control, None, good, None, planted)
        attainable = own.mean if planted else 0.0
        finding = self._compare(control.config, treated, reference, twin, attainable=attainable, planted=planted)
        for _ in range(self.rule.ladder - 1):
            if not _goes_on(finding):
                break
            treated = changed(treated, resolved(self.rule.change, control.norms))
            further = self._compare(control.config, treated, reference, twin, attainable=attainable, planted=planted)
            if further.verdict not in {"confirmed", "mitigates"}:
                if finding.verdict == "refuted" and _goes_on(further):
                    continue
                break
            reason = f"Once: {finding.reason} Applied again: {further.reason}"
            finding = further._replace(reason=reason)
        return finding

    def _compare(
        self,
        untreated: TwinConfig,
        treated: TwinConfig,
        reference: TwinConfig,
        twin: Twin,
        *,
        attainable: float,
        planted: bool,
    ) -> Finding:
        """Add paired seeds until the rules decide."""
        arms = [("control", untreated), ("treatment", treated), ("reference", reference)]
        control, treatment, good = self._train(arms, tuple(range(FEWEST)), reference)
        if _identical(control, treatment):
            found = gap(control.values, treatment.values, attainable=attainable)
            reason = (
                f"With {change_words(self.rule)} every step of the twin stays exactly as it was, and the twin "
                f"fails as the run did ({words(control.words)})"
            )
            if planted:
                reason += f" of the planted fault. {_PLANTED_STAYS}"
                return Finding("inconclusive", reason, control, treatment, good, found, planted)
            reason += ": the failure does not need what this takes away."
            return Finding("refuted", reason, control, treatment, good, found, planted)

        def pairs(count: int) -> tuple[Seen, Seen] | None:
            nonlocal control, treatment, good
            try:
                control, treatment, good = self._train(arms, tuple(range(count)), reference)
            except OutOfTime:
                return None
            return _seen(control), _seen(treatment)

        def alone(count: int) -> Seen | None:
            seeds = range(len(control.outcomes), count)
            try:
                return _seen(train_further(self.bench, control, seeds, good=good, until=self.until))
            except OutOfTime:
                return None

        trial = carry_through(pairs, alone, attainable=attainable)
        reason = self._reason(trial, control, treatment)
        decision = trial.judgement.decision
        verdict: ExperimentVerdict = "inconclusive" if decision == "undecided" else decision
        if verdict == "confirmed" and not twin.width_known and set(self.rule.change) & _RATES:
            verdict = "inconclusive"
            reason += " The width of the run's model is not recorded, so its learning rate could not be mapped."
        elif verdict == "confirmed" and (still := sorted(set(treatment.words) & UNSTABLE)):
            verdict = "mitigates"
            reason += f" But it still shows {words(still)}."
        elif verdict == "refuted" and planted:
            verdict = "inconclusive"
            reason += f" {_PLANTED_STAYS}"
        return Finding(verdict, reason, control, treatment, good, trial.judgement.gap, planted)

    def _control(
        self, config: TwinConfig, reference: TwinConfig, *, planted: bool
    ) -> tuple[TrainedArm, TrainedArm, bool]:
        """Train a control with one seed after the other until it is clear whether it fails as the run did."""
        arms = [("control", config), ("reference", reference)]
        for count in range(2, MOST + 1):
            control, good = self._train(arms, tuple(range(count)), reference)
            fails = reproduced(
                [reproduces(self._observed, outcome.symptoms, planted=planted) for outcome in control.outcomes]
            )
            if fails is not None:
                break
        return control, good, bool(fails)

    def _unreproduced(self, own: TrainedArm, control: TrainedArm, good: TrainedArm, planted: bool) -> Finding:
        which = f"with the planted fault ({self.rule.planted})" if planted else "with the run's own settings"
        seen = words(control.words) if control.words else "ordinary learning"
        reason = (
            f"The run shows {words(self.profile.symptoms)}; the twin {which} shows {seen}. It loses "
            f"{figures(control.values)} of the learnable gap."
        )
        reason += self._luck(control, planted)
        if self.rule.when_healthy != "refuted" or own.unstable:
            return Finding("not_reproduced", reason, control, None, good, None, planted)
        treated = changed(own.config, resolved(self.rule.change, own.norms))
        if not differences(own.config, treated):
            return Finding("not_reproduced", reason, control, None, good, None, planted)
        seeds = tuple(range(FEWEST))
        arms = [("control", own.config), ("treatment", treated), ("reference", good.config)]
        own, treatment, good = self._train(arms, seeds, good.config)
        found = gap(own.values, treatment.values)
        if not harmful(found):
            return Finding("not_reproduced", reason, own, treatment, good, found, False)
        reason += (
            f" With {change_words(self.rule)} it learns less ({figures(treatment.values)}, difference "
            f"{found.mean:+.2f}, 95 % interval {found.low:+.2f} to {found.high:+.2f}): the run's own setting does not "
            "stop it."
        )
        return Finding("refuted", reason, own, treatment, good, found, False)

    def _luck(self, control: TrainedArm, planted: bool) -> str:
        """What to say when one seed fails and the others do not."""
        shows = [reproduces(self._observed, outcome.symptoms, planted=planted) for outcome in control.outcomes]
        if planted or sum(shows) != 1:
            return ""
        return (
            f" It shows in 1 of {len(shows)} seeds only: with these settings it is the luck of a seed and of the order "
            "of the data, and none of them is its cause by itself."
        )

    def _train(
        self, arms: list[tuple[str, TwinConfig]], seeds: tuple[int, ...], reference: TwinConfig
    ) -> list[TrainedArm]:
        return train(self.bench, arms, seeds, reference=reference, until=self.until)

    def _reason(self, trial: Trial, control: TrainedArm, treatment: TrainedArm) -> str:
        judgement = trial.judgement
        found = judgement.gap
        sentence = (
            f"The control shows {words(control.words)} and loses {figures(control.values)} of the learnable gap; with "
            f"{change_words(self.rule)} it loses {figures(treatment.values)}. Difference {found.mean:+.2f} (95 % "
            f"interval {found.low:+.2f} to {found.high:+.2f}, {found.pairs} paired seeds): "
            f"{100 * found.recovered:.0f} % of what was lost."
        )
        if judgement.factor is not None and judgement.counts is not None:
            failed, treated = judgement.counts
            sentence += (
                f" Counted by seeds, {failed} of {found.pairs} fail and, treated, {treated} (Bayes factor "
                f"{judgement.factor:.1f})."
            )
        if judgement.decision == "mitigates":
            sentence += " It helps but does not take the failure away."
        elif judgement.decision == "undecided":
            sentence += _undecided(judgement, out_of_time=trial.out_of_time)
        elif judgement.decision == "invalid" and trial.null is not None:
            sentence += (
                f" But the control differs from itself as much: between its first three seeds and the next three lie "
                f"{trial.null.mean:.2f} (95 % interval {trial.null.low:+.2f} to {trial.null.high:+.2f}), which would "
                "pass for an effect."
            )
        return sentence


_PLANTED_STAYS = (
    "The change does not undo the fault that was planted with these settings, so its outcome says nothing of the run."
)


def _undecided(judgement: Judgement, *, out_of_time: bool) -> str:
    found = judgement.gap
    if out_of_time and found.above_margin >= CONFIRMING and found.mean >= USEFUL:
        return " That would confirm, but there was no time to see whether further seeds of the control fail as well."
    text = (
        f" That decides nothing: it lies above {MARGIN:g} with {found.above_margin:.1%} probability "
        f"({CONFIRMING:.1%} confirm) and below {USEFUL:g} with {found.below_useful:.1%} ({CERTAINTY:.0%} refute)."
    )
    if out_of_time:
        text += " There was no time for further seeds."
    return text


def _goes_on(finding: Finding) -> bool:
    """Whether more of the same change may still help: it helped in part, or did little and no harm."""
    if finding.verdict in {"mitigates", "inconclusive"}:
        return True
    if finding.verdict != "refuted" or finding.gap is None or finding.control is None or finding.treatment is None:
        return False
    # Beyond chance an arm is no better or worse for where it ends: 1.0 and 1.3 both mean that nothing was learnt.
    hopeless = min(*finding.control.values, *finding.treatment.values) >= NOTHING_LEARNT
    return finding.gap.mean > -MARGIN or hopeless


def _seen(arm: TrainedArm) -> Seen:
    return Seen(arm.values, tuple(not _clean(outcome) for outcome in arm.outcomes))


def _clean(outcome: Outcome) -> bool:
    return outcome.finite and "skipping" not in outcome.symptoms and outcome.lost_gap < HIGHEST


def _identical(control: TrainedArm, treatment: TrainedArm) -> bool:
    return all(
        one.raw["curve_hash"] == other.raw["curve_hash"] and repr(one.eval_loss) == repr(other.eval_loss)
        for one, other in zip(control.outcomes, treatment.outcomes, strict=True)
    )


def _sentence(error: ExperimentError) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
