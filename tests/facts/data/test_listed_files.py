from __future__ import annotations

from typing import Any

import pytest


def listing(sizes: dict[str, int]) -> str:
    rows = [f"-rw-r--r-- 1 ana ana {size:8d} May  8 03:11 {name}" for name, size in sizes.items()]
    return "\n".join(["total 4096", *rows, ""])


@pytest.mark.parametrize(("suffix", "size"), [("wav", 44), ("flac", 0), ("npy", 128), ("jpg", 0)])
def test_files_with_a_header_and_nothing_behind_it(facts_of: Any, suffix: str, size: int) -> None:
    full = {f"clip{number}.{suffix}": 40_000 + number for number in range(6)}
    found = facts_of({"ls.txt": listing({**full, f"bad.{suffix}": size})})
    assert found["data.header_only_files"] == 1


def test_full_files_small_formats_and_weights(facts_of: Any) -> None:
    assert facts_of({"ls.txt": listing({"a.wav": 40_000, "b.wav": 30_000})})["data.header_only_files"] == 0
    assert facts_of({"ls.txt": listing({"a.txt": 0, "b.txt": 3, "c.txt": 0})})["data.header_only_files"] == 0
    assert "data.header_only_files" not in facts_of({"ls.txt": listing({"model.safetensors": 0, "b.py": 12})})
