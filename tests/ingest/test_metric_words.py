"""Names of metrics in words: split and measure in any order."""

from __future__ import annotations

import pytest

from rca.ingest.metric_units import meaning
from rca.ingest.metric_words import worded_metric, worded_names
from rca.ingest.names import canonical_metric
from rca.ingest.training_metrics.pairs import pairs


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("loss_train", "loss"),
        ("average training loss", "loss"),
        ("acc_val", "eval_accuracy"),
        ("Accuracy/Dev", "eval_accuracy"),
        ("mean validation loss", "eval_loss"),
        ("val_loss_epoch", "eval_loss"),
        ("tr_acc", "accuracy"),
    ],
)
def test_split_and_measure_in_any_order(raw: str, name: str) -> None:
    assert worded_metric(raw) == name


@pytest.mark.parametrize("raw", ["box_loss_train", "train_loss_rank3", "loss", "train", "train/val_loss", "val_f1"])
def test_what_says_more_or_less_has_no_common_name(raw: str) -> None:
    assert worded_metric(raw) is None


def test_a_task_in_front_is_left_out_where_there_is_one_task() -> None:
    assert worded_names(["seg/loss_val", "seg/acc_val"], []) == {
        "seg/loss_val": "eval_loss",
        "seg/acc_val": "eval_accuracy",
    }
    assert worded_names(["seg/loss_val", "depth/loss_val"], []) == {}
    assert worded_names(["avg train loss"], ["loss"]) == {}


def test_a_sentence_names_a_metric_and_says_what_it_is() -> None:
    found = pairs("After epoch 3, average training loss is 0.412, average training acc is 0.81")
    assert [(pair.name, pair.value) for pair in found] == [("loss", 0.412), ("accuracy", 0.81)]


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("cuda_alloc_mb", "memory_allocated"),
        ("cuda_reserved_mb", "memory_reserved"),
        ("gpu_mem_gb", "memory_allocated"),
        ("Torch/Mem_Alloc_GiB", "memory_allocated"),
        ("device_memory_cached", "memory_reserved"),
        ("cpu_mem_mb", "cpu_mem_mb"),
        ("gpu_mem_util", "gpu_mem_util"),
        ("gpu_max_mem_gb", "gpu_max_mem_gb"),
        ("cuda_version", "cuda_version"),
    ],
)
def test_device_memory_in_any_words(raw: str, name: str) -> None:
    assert canonical_metric(raw) == name


def test_the_size_that_a_name_states_is_the_unit() -> None:
    assert pairs("step 7 loss 2.1 gpu_mem_mb=250")[-1] == ("memory_allocated", 250 / 1024, "GiB", True)
    assert meaning("cuda_alloc_mb").factor == 1 / 1024


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("main/loss", "loss"),
        ("validation/main/acc", "eval_accuracy"),
        ("main/loss_ctc", "main/loss_ctc"),
        ("info/learner/default_policy/learner_stats/grad_gnorm", "grad_norm"),
        ("learners/default_policy/default_optimizer_learning_rate", "learning_rate"),
        ("info.learner.default_policy.learner_stats.total_loss", "loss"),
        ("info/learner/default_policy/learner_stats/vf_loss", "info/learner/default_policy/learner_stats/vf_loss"),
        ("info/learner/agent_2/learner_stats/total_loss", "info/learner/agent_2/learner_stats/total_loss"),
    ],
)
def test_names_of_chainer_and_rllib(raw: str, name: str) -> None:
    assert canonical_metric(raw) == name
