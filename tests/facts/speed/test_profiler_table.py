from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

FULL = """\
            Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg     Self CUDA    # of Calls
      aten::item         0.40%      20.000ms        60.00%        3.000s       1.000ms       0.000us          3000
cudaLaunchKernel        12.00%     600.000ms        12.00%     600.000ms       5.000us       0.000us        120000
Self CPU time total: 5.000s
Self CUDA time total: 2.000s
"""
SHORT = """\
            Name    Self CPU %      Self CPU     CPU total     Self CUDA    # of Calls
      aten::item         0.40%      20.000ms        3.000s       0.000us          3000
cudaLaunchKernel        12.00%     600.000ms     600.000ms       0.000us        120000
Self CPU time total: 5.000s
Self CUDA time total: 2.000s
"""


@pytest.mark.parametrize("table", [FULL, SHORT])
def test_shares_are_told_by_tables_with_and_without_percentages(
    reported: Callable[[Mapping[str, Any]], dict[str, Any]], table: str
) -> None:
    found = reported({"profile.txt": table})
    assert found["profile.sync_share"] == pytest.approx(0.6)
    assert found["profile.syncs"] == 3000
    assert found["profile.launch_share"] == pytest.approx(0.12)
    assert found["profile.device_share"] == pytest.approx(0.4)


def test_kernels_of_collectives_have_a_share_of_the_device_time(
    reported: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> None:
    table = """\
                                     Name     Self CUDA   Self CUDA %    CUDA total    # of Calls
 ncclReduceScatterRingLLKernel_sum_f16     300.000ms        30.00%     300.000ms            96
         ncclAllGatherRingLLKernel_sum     150.000ms        15.00%     150.000ms            96
                       nccl:all_gather       0.000us        15.00%     150.000ms            96
                     ampere_sgemm_32x4     550.000ms        55.00%     550.000ms           960
"""
    assert reported({"profile.txt": table})["profile.communication_share"] == pytest.approx(0.45)
