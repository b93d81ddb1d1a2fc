"""What the run says of its loops of loading, stepping and generating: settings and symptoms for its profile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from rca.events import EventTable

WAITS, WAITS_IN_TRACE = 0.3, 0.2
"""Share of the step spent waiting for data from which it is a symptom; a trace counts only waits of an idle device."""
SYNCS, READS, SYNC_SHARE = 10, 5, 0.25
"""A plain step waits for the device once or twice: for the logged loss and for the loss scaler."""
LAUNCHES, SHORT_US, IDLE = 2000, 15.0, 0.25
"""A launch takes 5 to 10 us of the host, so shorter kernels leave the device idle."""
PADS = 0.4
SLOW_TOKENS_PER_S, TAIL = 20.0, 3.0
LOST_QUALITY = 0.05
VARIES, VARIES_IN_PRINT = 0.01, 0.001
"""Relative spread of scores, and absolute difference of printed outputs: rounding stays below both."""
MOST_LENGTHS = 400
_LENGTHS = ("sequence_length", "length", "seq_lengths", "num_tokens", "n_tokens", "input_length")


class Reader(Protocol):
    """Typed look-ups in the configuration and the facts of one run."""

    @property
    def events(self) -> EventTable:
        """The event table."""

    def number(self, key: str) -> float | None:
        """A configured number."""

    def whole(self, key: str, *, least: int = 1) -> int | None:
        """A configured whole number."""

    def positive(self, key: str) -> float | None:
        """A configured number above zero."""

    def text(self, key: str) -> str | None:
        """A configured text."""

    def flag(self, key: str) -> bool | None:
        """A configured switch."""

    def fact(self, name: str) -> bool | int | float | str | None:
        """A fact."""

    def fact_number(self, name: str) -> float | None:
        """A fact that is a finite number."""


def of_loops(read: Reader) -> dict[str, Any]:
    """Return the fields of the profile that only loop experiments need."""
    temperature = read.fact_number("generation.temperature") or read.positive("temperature")
    return {
        "prefetch_factor": read.whole("prefetch_factor"),
        "lengths": _lengths(read.events),
        "padding_share": read.fact_number("lengths.padding_share"),
        "pads_to_maximum": _pads_to_maximum(read),
        "syncs_per_step": _largest(read, "trace.syncs_per_step", "trace.items_per_step"),
        "launches_per_step": read.fact_number("trace.launches_per_step"),
        "recompile_reason": _reason(read.events),
        "compile_dynamic": read.flag("torch_compile_dynamic"),
        "num_beams": read.whole("num_beams"),
        "do_sample": read.flag("do_sample"),
        "temperature": temperature if temperature and temperature < 100 else None,
        "repetition_penalty": read.positive("repetition_penalty"),
        "weight_bits": _bits(read),
        "padding_side": _side(read.fact("model.tokenizer_padding_side")),
        "eval_accumulation_steps": read.whole("eval_accumulation_steps"),
        "max_new_tokens": read.whole("max_new_tokens"),
    }


def symptoms_of_loops(read: Reader) -> Iterator[str]:
    """Yield the symptom words that are not about a training curve."""
    for word, shown in (
        ("waiting_for_data", _waits(read)),
        ("many_syncs", _syncs(read)),
        ("many_launches", _launches(read)),
        ("recompiles", _recompiles(read.events)),
        ("pads", _reaches(read, "lengths.padding_share", PADS)),
        ("outputs_vary", _varies(read)),
        ("repeats_itself", read.fact("generation.repeats") is True or _reaches(read, "transcript.looped_segments", 5)),
        ("slow_generation", _slow(read)),
        ("loses_quality", _reaches(read, "quality.lost_share", LOST_QUALITY) or _reaches(read, "quality.drop", 0.05)),
        ("eval_out_of_memory", read.fact("oom.phase") == "eval"),
    ):
        if shown:
            yield word


def _reaches(read: Reader, name: str, least: float) -> bool:
    value = read.fact_number(name)
    return value is not None and value >= least


def _largest(read: Reader, *names: str) -> float | None:
    values = [value for name in names if (value := read.fact_number(name)) is not None]
    return max(values, default=None)


def _waits(read: Reader) -> bool:
    return _reaches(read, "step.data_share", WAITS) or _reaches(read, "trace.dataloader_share", WAITS_IN_TRACE)


def _syncs(read: Reader) -> bool:
    counted = _reaches(read, "trace.syncs_per_step", SYNCS) or _reaches(read, "trace.items_per_step", READS)
    return counted or _reaches(read, "profile.sync_share", SYNC_SHARE)


def _launches(read: Reader) -> bool:
    if not _reaches(read, "trace.idle_share", IDLE):
        return False
    mean = read.fact_number("trace.mean_kernel_us")
    return _reaches(read, "trace.launches_per_step", LAUNCHES) or (mean is not None and mean < SHORT_US)


def _recompiles(events: EventTable) -> bool:
    if events.named("dynamo.recompile_limit", kind="log"):
        return True
    return len(events.named("dynamo.recompiling", kind="log")) > 1


def _reason(events: EventTable) -> str | None:
    if events.named("dynamo.guard_size_mismatch", kind="log"):
        return "size"
    return "value" if _recompiles(events) else None


def _varies(read: Reader) -> bool:
    scores = _reaches(read, "eval.repeat_differs", VARIES) or _reaches(read, "outputs.repeat_spread", VARIES)
    return scores or _reaches(read, "outputs.repeat_difference", VARIES_IN_PRINT)


def _slow(read: Reader) -> bool:
    speed = read.fact_number("latency.tokens_per_s")
    return (speed is not None and speed < SLOW_TOKENS_PER_S) or _reaches(read, "latency.tail_ratio", TAIL)


def _lengths(events: EventTable) -> tuple[int, ...] | None:
    series = next((found for name in _LENGTHS if (found := events.metric(name)) is not None), None)
    if series is None:
        return None
    values = np.sort(series.value[np.isfinite(series.value) & (series.value >= 1) & (series.value < 2**31)])
    if len(values) > MOST_LENGTHS:
        values = values[np.linspace(0, len(values) - 1, MOST_LENGTHS).round().astype(int)]
    return tuple(int(value) for value in values) or None


def _pads_to_maximum(read: Reader) -> bool | None:
    if (read.text("padding") or "").lower() == "max_length":
        return True
    found = [read.flag(name) for name in ("pad_to_max_length", "pad_to_sequence_len")]
    return None if found == [None, None] else any(found)


def _bits(read: Reader) -> int | None:
    for name in ("bits", "quantization_config.bits", "w_bit", "w_bits", "wbits", "n_bits", "num_bits", "nbits"):
        bits = read.whole(name)
        if bits is not None and bits <= 16:
            return bits
    kind = (read.text("quantization") or "").lower()
    for bits in (2, 3, 4, 8):
        if (
            any(f"{text}{bits}" in kind for text in ("int", "fp", "nf", "q", "w", "bitsandbytes-"))
            or f"{bits}bit" in kind
        ):
            return bits
    return 4 if kind in {"awq", "gptq", "true"} else None


def _side(value: object) -> str | None:
    return value if isinstance(value, str) and value in {"left", "right"} else None
