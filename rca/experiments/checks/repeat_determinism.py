"""`repeat_determinism`: would the run's model answer one input with different numbers, and in which mode?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rca.errors import ExperimentError
from rca.experiments.checks.check import Asked, Check, Outcome
from rca.experiments.checks.files import listing
from rca.experiments.twin.config import FAMILIES, twin_of

REPEATS = 5
SAME = 1e-6
"""Difference of outputs, over their spread, that repetition on one machine may show; the same kernel gives 0."""
DIFFERENT = 1e-3
"""Spread of a run's repeated outputs from which they differ for good; another order of sums makes up to 1e-4."""


def measure(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Give one input to the model again and again, in evaluation and in train mode."""
    from rca.experiments.checks.repetition import measure as repeat

    return repeat(settings)


def judge(asked: Asked) -> Outcome:
    """Compare what the model does when repeated with what the run did."""
    profile = asked.profile
    settings: dict[str, Any] = {"repeats": REPEATS, "folder": "", "config": "", "twin": None}
    if asked.material.folder is not None:
        root = asked.material.folder.resolve()
        names = [file.path for file in listing(root).files if file.path.rpartition("/")[2] == "config.json"]
        if names:
            settings |= {"folder": str(root), "config": min(names, key=len)}
    if profile.family in FAMILIES and (profile.dropout is not None or profile.family == "cnn"):
        twin = twin_of(profile).config.model_copy(update={"dropout": profile.dropout or 0.0})
        settings["twin"] = twin.model_dump(mode="json")
    if not settings["config"] and settings["twin"] is None:
        raise ExperimentError("the run left no config.json of a model, and no dropout rate with a known model class")
    found = asked.measure(settings)
    if "unknown" in found:
        raise ExperimentError(found["unknown"])
    train, still = found["train"], found["eval"]
    observed = profile.repeat_spread
    details = (
        ("model", found["model"]),
        ("layers that act at random or on the batch in train mode", found["parts"] or "none"),
        (f"difference over {REPEATS} repetitions in train mode", f"{train:.3g} of the outputs' spread"),
        ("in evaluation mode", f"{still:.3g}"),
        ("alone against in a batch, evaluation mode", f"{found['batch_eval']:.3g}"),
        ("alone against in a batch, train mode", f"{found['batch_train']:.3g}"),
        ("sampling in generation_config.json", {True: "on", False: "off", None: "not said"}[found["sampling"]]),
        (
            "the run's own repetitions",
            "none recorded" if observed is None else f"{observed:.3g}",
        ),
    )
    scope = f"{found['model']}, on the CPU; kernels of a GPU that are not deterministic do not show here"
    if max(train, found["batch_train"]) <= SAME:
        said = "The model has nothing that acts differently in train mode: its outputs are the same in both modes"
        return Outcome("refuted", f"{said}.", scope, details)
    said = (
        f"Repeated, its outputs differ by {train:.2g} of their spread in train mode, by {still:.2g} in evaluation mode"
    )
    if still > SAME:
        return Outcome("inconclusive", f"{said}: the model itself is not deterministic.", scope, details)
    if observed is None:
        return Outcome("inconclusive", f"{said}; the run recorded no repetitions of its own.", scope, details)
    if observed <= SAME:
        return Outcome("refuted", f"{said}; the run's were equal, so it was not in train mode.", scope, details)
    if observed < DIFFERENT:
        return Outcome("inconclusive", f"{said}; the run's differ by less than rounding may.", scope, details)
    if found["sampling"]:
        return Outcome("inconclusive", f"{said}; but the run draws its tokens at random as well.", scope, details)
    return Outcome("confirmed", f"{said}; the run's differ by {observed:.2g}, as in train mode.", scope, details)


CHECK = Check(judge, measure)
