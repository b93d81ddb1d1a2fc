"""Whatever stands in the logs, facts are numbers, refer to existing events and speak whole sentences."""

from __future__ import annotations

import math
import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rca.events import EventTable
from rca.facts.emit import emit
from rca.facts.failure.chronology import failure
from rca.facts.registry import ALL, CATALOGUE, MODULES, extract

from .tables import Run, decay

NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, width=64),
    st.sampled_from([0.0, -1.0, 1.0, math.nan, math.inf, -math.inf, 1e300, 1e-300, 2.5]),
)
NAMES = ("loss", "grad_norm", "learning_rate", "loss_scale", "eval_loss", "accuracy", "eval_accuracy", "epoch")
MORE = ("memory_allocated", "memory_reserved", "sequence_length", "host_rss", "skipped_steps", "train_runtime")
SETTINGS = ("learning_rate", "max_steps", "num_labels", "vocab_size", "warmup_steps", "warmup_ratio", "world_size")
SIZES = ("hidden_size", "num_layers", "num_attention_heads", "zero_stage", "batch_size", "epochs", "max_grad_norm")
FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def sound(table: EventTable) -> None:
    facts = extract(table)
    for name, fact in facts.items():
        assert fact.name == name
        assert name in CATALOGUE
        assert isinstance(fact.value, (bool, int, float, str))
        if isinstance(fact.value, float):
            assert math.isfinite(fact.value), name
        assert fact.says.endswith("."), (name, fact.says)
        assert all(0 <= event < len(table) for event in fact.events), name
        assert len(fact.events) <= 6
    failure(table, facts)


@FEW
@given(
    curves=st.dictionaries(st.sampled_from(NAMES + MORE), st.lists(NUMBERS, min_size=1, max_size=60), min_size=1),
    options=st.dictionaries(st.sampled_from(SETTINGS + SIZES), NUMBERS),
    every=st.integers(1, 50),
    steps=st.booleans(),
)
def test_any_series(curves: dict[str, list[float]], options: dict[str, float], every: int, steps: bool) -> None:
    run = Run().curves(curves, every=every, steps=steps)
    for key, value in options.items():
        run.config(**{key: value})
    sound(run.table())


@FEW
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["cuda.oom", "nccl.watchdog_timeout", "nccl.work_state", "deepspeed.overflow_skip", "a.b"]),
            st.text(max_size=80),
            st.sampled_from(["initiating", "cascade", "teardown", "benign", None]),
            st.sampled_from(["info", "warning", "error", "fatal"]),
            st.one_of(st.none(), st.integers(0, 5), st.just(2**31 - 1)),
            st.one_of(st.none(), st.floats(0, 1e6)),
            st.dictionaries(
                st.sampled_from(
                    ["tried_bytes", "capacity_bytes", "seq", "op", "rank", "scale", "next", "pid", "ranks"]
                ),
                st.one_of(st.integers(-5, 10**12), st.text(max_size=10), st.none(), NUMBERS, st.booleans()),
            ),
        ),
        max_size=12,
    ),
    st.lists(st.tuples(st.text(max_size=30), st.text(max_size=200)), max_size=4),
)
def test_any_events(logs: list[tuple], raised: list[tuple[str, str]]) -> None:  # type: ignore[type-arg]
    run = Run().curves({"loss": decay(12)})
    for name, text, role, severity, rank, after, attrs in logs:
        kept = {key: value for key, value in attrs.items() if not isinstance(value, float) or math.isfinite(value)}
        source = run.source(f"rank_{rank}.log", rank)
        source.add(
            kind="log",
            name=name,
            text=text,
            role=role,
            severity=severity,
            line=run.line(f"rank_{rank}.log"),
            time=None if after is None else int(after * 1e6),
            attrs=kept,
        )
    for name, text in raised:
        run.raised(name or "E", text)
    sound(run.table())


def test_empty_table() -> None:
    sound(EventTable.from_parts([], text_sources=0))


def test_names_are_unique_and_documented() -> None:
    counted = Counter(name for module in MODULES for name in module.CATALOGUE)
    assert [name for name, count in counted.items() if count > 1] == []
    assert all(re.fullmatch(r"[a-z_]+(\.[a-z0-9_]+)+", name) for name in counted)
    assert len(ALL) == len(set(ALL))


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_what_was_not_computed_is_no_fact(value: float | None) -> None:
    assert list(emit("loss.first", value, "x")) == []


def test_resumed_log_with_steps_that_fall_back() -> None:
    run = Run().curves({"loss": decay(100)}).curves({"loss": decay(60, 2.4, 2.0)}, start=50)
    found = run.values()
    assert found["loss.diverged"] is False
    assert found["run.steps_done"] == 109
    sound(run.table())
