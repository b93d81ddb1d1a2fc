"""How sure the rules may be of themselves, learned from labelled incidents."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rca.calibrate import applied, calibrated, cross_validated, fit
from rca.errors import UsageError
from rca.evaluate import CaseOutcome, score
from rca.rules.schema import Calibration


def incidents(*, count: int, stretch: float, seed: int = 0) -> list[CaseOutcome]:
    """Incidents whose true cause is drawn from the probabilities of scores that are then multiplied by `stretch`."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        scores = dict(zip(("a.x", "a.y", "b.z", "unknown"), random.normal(scale=2.0, size=4), strict=True))
        weights = np.exp(list(scores.values()))
        truth = random.choice(list(scores), p=weights / weights.sum())
        made.append(
            CaseOutcome(
                case=f"case {number}",
                truth=truth,
                accepted=(truth,),
                verdict="unknown",
                probability=1.0,
                ranked=("unknown",),
                seconds=0.0,
                scores={name: float(value) * stretch for name, value in scores.items()},
            )
        )
    return made


@pytest.mark.parametrize("stretch", [0.7, 1.0, 1.6])
def test_the_temperature_undoes_the_boast(stretch: float) -> None:
    fitted = fit(incidents(count=600, stretch=stretch))
    assert fitted.temperature == pytest.approx(stretch, rel=0.2)
    assert fitted.unknown == pytest.approx(0, abs=0.35)
    assert fitted.incidents == 600


def test_a_fitted_calibration_states_what_comes_true() -> None:
    boasting = incidents(count=600, stretch=3.0)
    before = score(list(applied(boasting, Calibration()))).calibration_error
    found = calibrated(boasting)
    assert found.fitted_error < before / 2
    assert found.held_out_error < before / 2


def test_few_incidents_do_not_move_the_authors_values_far() -> None:
    always_right = [
        item.model_copy(update={"accepted": tuple(item.scores)}) for item in incidents(count=20, stretch=1.0)
    ]
    fitted = fit(always_right)
    assert math.log(fitted.temperature) == pytest.approx(0, abs=0.2)


def test_every_incident_is_judged_by_a_calibration_that_has_not_seen_it() -> None:
    found = cross_validated(incidents(count=53, stretch=1.0))
    assert [item.case for item in found] == [f"case {number}" for number in range(53)]


def test_too_few_incidents_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 20"):
        fit(incidents(count=19, stretch=1.0))
