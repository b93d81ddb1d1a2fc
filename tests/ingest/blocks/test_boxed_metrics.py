"""Metrics in a box of two columns."""

from __future__ import annotations

from typing import Any

BOX = """----------------------------------------
| rollout/                |            |
|    ep_len_mean          | 1.11e+04   |
|    ep_rew_mean          | -12.5      |
| time/                   |            |
|    fps                  | 1291       |
|    total_timesteps      | 4096       |
| train/                  |            |
|    approx_kl            | 0.01319446 |
|    learning_rate        | 0.0003     |
|    loss                 | -0.0401    |
----------------------------------------
"""


def test_rows_stand_at_the_timesteps_of_the_box(read: Any) -> None:
    found = read("ppo.out", "Using cuda device\n" + BOX + BOX.replace("4096", "8192"))
    assert found.metrics("rollout/ep_rew_mean") == [(4096, -12.5), (8192, -12.5)]
    assert found.metrics("loss") == [(4096, -0.0401), (8192, -0.0401)]
    assert found.metrics("learning_rate") == [(4096, 3e-4), (8192, 3e-4)]
    assert found.metrics("time/fps") == []


def test_a_box_without_groups_is_none(read: Any) -> None:
    assert read("a.log", "| name | value |\n| loss | 0.4 |\n").metrics("loss") == []
