"""How fast the rules load, against parsing their YAML in the same process: a ratio, so that any machine can hold it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from rca.rules.load import builtin_folder, load

pytestmark = pytest.mark.slow


def seconds(work: Callable[[], Any], *, repeats: int = 3) -> float:
    """CPU time of the fastest of some runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def test_loaded_and_validated_from_the_cache_in_less_than_half_the_time_of_parsing(
    tmp_path, monkeypatch, record_property
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    texts = [
        file.read_text(encoding="utf-8")
        for file in builtin_folder().rglob("*.yaml")
        if not file.name.endswith(".cases.yaml")
    ]
    cold = seconds(load, repeats=1)
    warm = seconds(load)
    parsing = seconds(lambda: [yaml.load(text, Loader=loader) for text in texts], repeats=2)
    print(f"\nparsing {parsing:.3f} s, loading {cold:.3f} s the first time, {warm:.3f} s from then on")
    record_property("warm_over_parsing", round(warm / parsing, 2))
    assert warm < 0.5 * parsing
