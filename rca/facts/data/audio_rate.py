"""Sampling rates: that of the recordings against the one the model was made for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rca.events import EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.curves import config_number

CATALOGUE: Mapping[str, str] = {
    "audio.input_rate": "sampling rate of the recordings (Hz)",
    "audio.model_rate": "sampling rate that the model or its feature extractor was made for (Hz)",
    "audio.rate_differs": "the two differ and nothing says that recordings are resampled",
}


def rates(events: EventTable) -> Iterator[Fact]:
    """Do recordings reach the model at the rate it knows?"""
    given, made = events.named("audio.input_rate"), events.named("audio.model_rate")
    configured = events.config("sampling_rate")
    told = config_number(events, "sampling_rate")
    expected = made[-1].attr("rate") if made else told
    shown = [made[-1].event_id] if made else [] if configured is None else [configured.event_id]
    if expected:
        says = f"The model was made for {int(expected)} Hz."
        yield from emit("audio.model_rate", int(expected), says, unit="Hz", events=shown)
    if not given or not given[-1].attr("rate"):
        return
    rate = int(given[-1].attr("rate"))
    says = f"The recordings have {rate} Hz."
    yield from emit("audio.input_rate", rate, says, unit="Hz", events=[given[-1].event_id])
    if expected:
        differs = rate != int(expected) and not events.named("audio.resampled")
        says = f"The recordings have {rate} Hz, the model was made for {int(expected)} Hz."
        yield from emit("audio.rate_differs", differs, says, events=[given[-1].event_id, *shown])


FACTS: tuple[FactFunction, ...] = (rates,)
