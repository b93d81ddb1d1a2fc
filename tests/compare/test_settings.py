"""Differences in settings, packages and machine."""

from __future__ import annotations

import pytest

from rca.compare.settings import compare_settings

from .sides import Made


def named(run: Made, healthy: Made) -> dict[str, tuple[str | None, str | None]]:
    found = compare_settings(run.side(), healthy.side()).differences
    return {item.name: (item.value, item.baseline) for item in found}


def test_values_that_differ_are_listed_with_both_and_their_ratio() -> None:
    run, healthy = Made().config(learning_rate=0.3, batch_size=8), Made().config(learning_rate=0.1, batch_size=8)
    compared = compare_settings(run.side(), healthy.side())
    (only,) = compared.differences
    assert (only.name, only.value, only.baseline, only.source, only.line) == (
        "learning_rate", "0.3", "0.1", "train.log", 1,
    )  # fmt: skip
    assert only.ratio == pytest.approx(3)
    assert (compared.unchanged, compared.same) == (1, ("batch_size",))


@pytest.mark.parametrize(("here", "there", "ratio"), [(0, 8, 0.0), (8, 0, None), (-1, 8, None), (4, 8, 0.5)])
def test_a_ratio_needs_something_to_divide_by(here: int, there: int, ratio: float | None) -> None:
    found = compare_settings(Made().config(num_workers=here).side(), Made().config(num_workers=there).side())
    assert found.differences[0].ratio == ratio


def test_numbers_are_compared_as_numbers_and_words_without_case() -> None:
    run, healthy = Made().config(lr_scheduler="Cosine", eps=1e-8), Made().config(lr_scheduler="cosine", eps=0.00000001)
    assert named(run, healthy) == {}


def test_names_places_and_ids_of_a_run_are_no_differences() -> None:
    own = {"output_dir": "/a/1", "run_name": "x", "job_id": "1", "master_port": 29500, "logging.log_dir": "/a"}
    other = {"output_dir": "/b/2", "run_name": "y", "job_id": "2", "master_port": 29501, "logging.log_dir": "/b"}
    assert named(Made().config(**own), Made().config(**other)) == {}
    assert "dataset" in named(Made().config(dataset="c4"), Made().config(dataset="pile"))


def test_the_same_file_elsewhere_is_no_difference() -> None:
    assert named(Made().config(data="/mnt/a/x.bin"), Made().config(data="/mnt/b/x.bin")) == {}


def test_what_one_run_did_not_record_is_a_difference_only_where_it_has_such_a_list() -> None:
    run = Made().config(role="model", hidden_size=64)
    healthy = Made().config(role="model", hidden_size=64, dropout=0.1).config(warmup_steps=20)
    assert named(run, healthy) == {"dropout": (None, "0.1")}


def test_environment_variables_keep_their_names() -> None:
    run = Made().config(role="environment", NCCL_IB_DISABLE=1)
    healthy = Made().config(role="environment", NCCL_IB_DISABLE=0)
    assert named(run, healthy) == {"NCCL_IB_DISABLE": ("1", "0")}


def test_packages_and_machine() -> None:
    run = Made().packages(torch="2.5.0", numpy="1.26.0").gpu(name="NVIDIA A100-SXM4-80GB", driver="525.60.13")
    healthy = Made().packages(torch="2.4.0", numpy="1.26.0").gpu(name="NVIDIA A100-SXM4-80GB", driver="550.54.14")
    assert named(run, healthy) == {"torch": ("2.5.0", "2.4.0"), "NVIDIA driver": ("525.60.13", "550.54.14")}


def test_a_run_without_any_list_says_nothing_about_it() -> None:
    assert named(Made(), Made().packages(torch="2.4.0").config(learning_rate=1)) == {}
