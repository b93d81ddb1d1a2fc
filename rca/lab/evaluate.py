"""Whole analyses of runs on which nothing was counted: other seeds, severities, sizes and the second architecture."""

from __future__ import annotations

import time
from pathlib import Path

from rca.errors import NothingReadable
from rca.evaluate import Label
from rca.experiments.run import forget
from rca.hypotheses.decide import answer
from rca.lab.faults import Variant
from rca.lab.measure import Row, run_of
from rca.pipeline import Options, examine
from rca.rules.load import load


def analysed(made: Variant, folder: Path, budget_s: float) -> list[Row]:
    """Analyse one run with experiments and return what came of it.

    What the child process trained for other runs is forgotten first, so that the time is that of this run alone; only
    its imports are kept.
    """
    place = run_of(made, folder)
    knowledge = load()
    forget()
    label = Label(cause=made.fault.cause, also_ok=made.fault.also_ok)
    row: Row = {
        "run": made.name,
        "fault": made.fault.name,
        "severity": made.severity,
        "architecture": made.architecture if made.fault.has_architectures else "",
        "seed": made.seed,
        "cause": label.cause,
        "accepted": [label.cause, *label.also_ok],
    }
    started = time.perf_counter()
    try:
        analysis = examine(place / "run", knowledge, options=Options(budget_s=budget_s, device="cpu", redact="none"))
    except NothingReadable as error:
        return [{**row, "error": str(error)}]
    diagnosis = analysis.diagnosis
    ranked = [item.cause.id for item in analysis.ranking.candidates]
    rules_say, _ = answer(analysis.ranking, knowledge.calibration)
    return [
        {
            **row,
            "seconds": round(time.perf_counter() - started, 2),
            "before": rules_say,
            "first_before": _first(ranked, rules_say),
            "after": diagnosis.verdict.cause,
            "first_after": _first([item.cause for item in diagnosis.hypotheses] or ranked, diagnosis.verdict.cause),
            "probability": round(diagnosis.verdict.probability, 4),
            "confirmed": [item.cause for item in diagnosis.hypotheses if item.status == "confirmed"],
            "refuted": [item.cause for item in diagnosis.hypotheses if item.status == "refuted"],
            "experiments": [
                {"id": item.id, "verdict": item.verdict, "tests": list(item.tests), "seconds": item.seconds}
                for item in diagnosis.experiments
            ],
            "warnings": [text for text in diagnosis.warnings if "failed" in text],
        }
    ]


def _first(ranked: list[str], verdict: str) -> str:
    """Return the first answer, also where the verdict leaves it open; `none` where the run is judged healthy."""
    return ranked[0] if verdict == "unknown" and ranked else verdict
