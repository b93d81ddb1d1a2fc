"""A GPU gives the verdicts of the CPU; needs a GPU that nobody uses."""

from __future__ import annotations

import pytest

from rca.experiments.devices import free_gpu, torch_has_cuda
from tests.benchmarks.experiments_on_device import CASES, carry_out, compared


@pytest.mark.gpu
@pytest.mark.slow
def test_verdicts_agree_and_the_share_of_memory_is_kept() -> None:
    if not torch_has_cuda() or free_gpu() is None:
        pytest.skip("needs a CUDA device that nobody uses")
    found = {name: carry_out(name) for name in ("cpu", "cuda")}
    assert compared(found) == dict.fromkeys(CASES, True)
    assert 0 < max(row["peak MiB on the device"] for row in found["cuda"].values()) < 2048
