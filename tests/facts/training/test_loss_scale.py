from __future__ import annotations

import numpy as np

from ..tables import Run, decay, joined


def test_collapse() -> None:
    scale = joined([65536.0] * 5, [65536.0 / 2**k for k in range(1, 17)], [1.0])
    found = Run().curves({"loss_scale": scale, "loss": decay(len(scale))}).values()
    assert found["loss_scale.halvings"] == 16
    assert found["loss_scale.longest_fall"] == 16
    assert found["loss_scale.at_floor"] is True
    assert found["loss_scale.recovered"] is False
    assert found["loss_scale.fell_to_end"] is True


def test_early_reductions_are_harmless() -> None:
    scale = joined([65536.0, 32768.0, 16384.0], [8192.0] * 100, [16384.0] * 50)
    found = Run().curves({"loss_scale": scale}).values()
    assert found["loss_scale.halvings"] == 3
    assert found["loss_scale.at_floor"] is False
    assert found["loss_scale.recovered"] is True
    assert found["loss_scale.fell_to_end"] is False


def test_constant_scale_of_one_did_not_fall() -> None:
    found = Run().curves({"loss_scale": [1.0] * 60}).values()
    assert found["loss_scale.at_floor"] is False
    assert found["loss_scale.static"] is True
    assert "loss_scale.recovered" not in found


def test_calm_stretch_ends_a_fall() -> None:
    scale = joined([1024.0, 512.0, 256.0], [256.0] * 30, [128.0, 64.0], [64.0] * 30)
    assert Run().curves({"loss_scale": scale}).values()["loss_scale.longest_fall"] == 2


def test_messages_of_one_rank_count_once() -> None:
    run = Run().curves({"loss": decay(20)})
    for k in range(5):
        for rank in range(2):
            before = 65536.0 / 2**k
            run.log(
                "deepspeed.overflow_skip", role="benign", severity="warning", rank=rank, scale=before, next=before / 2
            )
    found = run.values()
    assert found["loss_scale.halvings"] == 5
    assert found["loss_scale.first"] == 65536
    assert found["loss_scale.last"] == 2048


def test_scale_of_messages_recovers_when_steps_go_on() -> None:
    run = Run()
    for k in range(3):
        run.log("deepspeed.overflow_skip", role="benign", severity="warning", scale=8.0 / 2**k, next=4.0 / 2**k)
    assert run.values()["loss_scale.recovered"] is False
    assert run.curves({"loss": decay(40)}).values()["loss_scale.recovered"] is False
    again = Run()
    for k in range(3):
        again.log(
            "deepspeed.overflow_skip", role="benign", severity="warning", scale=2.0**16 / 2**k, next=2.0**15 / 2**k
        )
    assert again.curves({"loss": decay(40)}).values()["loss_scale.recovered"] is True


def test_skipped_steps() -> None:
    found = Run().curves({"loss": decay(100), "skipped_steps": np.repeat([0.0, 1.0], [90, 10])}).values()
    assert found["loss_scale.skipped_share"] < 0.2
    counted = Run().curves({"loss": decay(100), "skipped_steps": np.arange(100.0)}).values()
    assert counted["loss_scale.skipped"] == 99
    assert "loss_scale.skipped" not in Run().curves({"loss": decay(100)}).values()
