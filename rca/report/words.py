"""Every text of the reports that is not part of the diagnosis: one catalogue, so that a language can be added."""

from __future__ import annotations

ENGLISH: dict[str, str] = {
    # the answer
    "status.confirmed": "Confirmed by experiment",
    "status.suspected": "Suspected, not yet confirmed",
    "status.unknown": "Unknown",
    "status.none": "No failure found",
    "answer.cause": "Root cause",
    "answer.unknown": "No verdict",
    "answer.none": "Healthy run",
    "answer.undecided": "no candidate is likely enough to be called the cause",
    "answer.probability": "Probability {percent}, {words}",
    "answer.next": "Cheapest next step",
    "answer.observed": "First observed failure",
    "answer.no_failure": "No initiating failure was found in what was read.",
    "answer.fix": "What to change first",
    # hypotheses
    "hypothesis.confirmed": "confirmed",
    "hypothesis.suspected": "suspected",
    "hypothesis.explained": "symptom",
    "hypothesis.refuted": "refuted",
    "hypothesis.unlikely": "unlikely",
    # experiments
    "experiment.confirmed": "confirmed",
    "experiment.mitigates": "helps, does not prove",
    "experiment.refuted": "refuted",
    "experiment.inconclusive": "inconclusive",
    "experiment.not_reproduced": "symptom not reproduced",
    "experiment.not_testable": "not testable here",
    "experiment.no_op": "nothing to change",
    "experiment.invalid": "invalid control",
    "experiment.error": "did not finish",
    # sections
    "section.change": "What to change",
    "section.why": "Why we think so",
    "section.experiments": "Experiments",
    "section.log": "How the analysis went",
    "section.candidates": "Other candidates",
    "section.nearest": "Nearest candidates",
    "section.decide": "What would decide it",
    "section.timeline": "Timeline",
    "section.curves": "Curves",
    "section.steps": "Where the step time went",
    "section.settings": "Configuration, packages, system",
    "section.inputs": "What was read",
    # evidence
    "evidence.for": "For",
    "evidence.against": "Against",
    "evidence.no_data": "No data",
    "evidence.none_for": "Nothing that was read speaks for it.",
    "evidence.none_against": "Nothing that was read speaks against it.",
    "evidence.none_missing": "Every condition could be checked.",
    "evidence.arithmetic": "How the score adds up",
    "evidence.arithmetic_note": (
        "Weights are natural-log odds (nats): +0.7 doubles the odds, −0.7 halves them. The sum is compared with those "
        "of all other causes and calibrated on labelled incidents; what experiments changed is in the log above."
    ),
    "evidence.prior": "How common the cause is (prior)",
    "evidence.group": "Overlap: the same statement counts once, experiments",
    "evidence.score": "Sum",
    "strength.3": "strong",
    "strength.2": "moderate",
    "strength.1": "weak",
    # empty states
    "fixes.none": "No fix is recorded for this cause. Start from the evidence below.",
    "curves.none": "The run left no metrics.",
    "timeline.none": "No event was kept for the timeline.",
    "experiments.none": "No experiment was run.",
    # what was replaced
    "replaced.secret": "secret",
    "replaced.mail": "mail address",
    "replaced.ip": "IP address",
    "replaced.host": "host name",
    "replaced.user": "user name",
    "replaced.path": "folder",
    # notices
    "chart.missing": "This chart could not be drawn; its numbers are in the table.",
    "chart.more": "{count} more series are in the JSON report.",
    "trim.notice": "The report was shortened to stay small: {what}. The JSON report holds everything.",
    "trim.contexts": "context lines of candidates below the first",
    "trim.timeline": "timeline entries far from the failure",
    "trim.points": "points of the curves",
    "trim.settings": "settings beyond the first {count}",
    "trim.sources": "files beyond the first {count}",
    "trim.texts": "long texts",
    "trim.everything": "all but the beginning of every list and text",
    "trim.sections": "sections that do not fit ({names})",
}


def say(key: str, **values: object) -> str:
    """The text behind `key` with its values filled in; KeyError for a key that does not exist."""
    return ENGLISH[key].format(**values) if values else ENGLISH[key]


def count(amount: int, noun: str, plural: str = "") -> str:
    """`1 file`, `14 files`."""
    return f"{amount:,} {noun if amount == 1 else plural or noun + 's'}"


def strength(weight: float) -> str:
    """A weight in words: strong from 1.5 nats (odds x 4.5), moderate from 0.7 (odds x 2)."""
    size = abs(weight)
    return say(f"strength.{3 if size >= 1.5 else 2 if size >= 0.7 else 1}")


def replaced(kind: str, amount: int) -> str:
    """`3 host names`; a kind without a word of its own stays as it is."""
    noun = ENGLISH.get(f"replaced.{kind}", kind)
    return count(amount, noun, noun + ("es" if noun.endswith("s") else "s"))
