"""Runs of one job on more and on fewer devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

Reported = Callable[[Mapping[str, Any]], dict[str, Any]]


def bars(total: int, rate: str) -> str:
    return "".join(f"steps:  {i}%|##   | {i * 4}/{total} [00:01<10:00,  {rate}, loss=0.5{i}]\n" for i in range(1, 9))


def test_epoch_times_are_held_against_the_devices_of_the_launch(reported: Reported) -> None:
    found = reported(
        {
            "a.log": "$ python train.py\nCUDA_VISIBLE_DEVICES=3\nEpoch 1 took 90.0 s, loss 0.4\n",
            "b.log": "$ accelerate launch --num_processes 4 train.py\nEpoch 1 took 45.0 s, loss 0.4\n",
        }
    )
    assert found["scaling.speedup"] == pytest.approx(2.0)
    assert found["scaling.efficiency"] == pytest.approx(0.5)
    assert found["scaling.devices"] == 4


def test_fewer_steps_for_the_same_data_count(reported: Reported) -> None:
    found = reported({"run_1gpu.log": bars(800, "1.00s/it"), "run_2gpus.log": bars(400, "1.60s/it")})
    assert found["scaling.efficiency"] == pytest.approx(1 / 1.6, rel=0.01)


def test_as_many_steps_mean_a_batch_for_each_device(reported: Reported) -> None:
    found = reported({"run_1gpu.log": bars(800, "1.00s/it"), "run_2gpus.log": bars(800, "1.05s/it")})
    assert found["scaling.efficiency"] == pytest.approx(1 / 1.05, rel=0.01)


def test_runs_on_equally_many_devices_say_nothing(reported: Reported) -> None:
    found = reported({"a_2gpu.log": bars(800, "1.00s/it"), "b_2gpu.log": bars(800, "2.00s/it")})
    assert "scaling.efficiency" not in found


def test_a_benchmark_over_numbers_of_devices(reported: Reported) -> None:
    lines = "1 GPU: 100.0 images/s\n2 GPUs: 130.0 images/s\n4 GPUs: 160.0 images/s\n"
    assert reported({"bench.log": lines})["scaling.efficiency"] == pytest.approx(0.4)


def test_a_table_over_numbers_of_devices(reported: Reported) -> None:
    table = "num_gpus,batch,samples/s\n1,32,100\n2,32,196\n4,32,380\n"
    assert reported({"sweep.csv": table})["scaling.efficiency"] == pytest.approx(0.95)


def test_speeds_under_the_headings_of_a_sweep(reported: Reported) -> None:
    section = "".join(f"iter {i * 20} throughput {{0}}.{i} img/s\n" for i in range(1, 5))
    text = f"=== 1 GPU ===\n{section.format(100)}=== 8 GPUs ===\n{section.format(480)}"
    found = reported({"bench.log": text})
    assert found["scaling.efficiency"] == pytest.approx(0.6, rel=0.01)
    assert found["scaling.devices"] == 8
    assert "scaling.efficiency" not in reported({"bench.log": f"=== 8 GPUs ===\n{section.format(480)}"})
