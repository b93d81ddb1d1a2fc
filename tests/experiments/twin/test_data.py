from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rca.experiments.twin.config import TwinConfig
from rca.experiments.twin.data import Stream


def steps(**settings: object) -> list:
    return [batches[0] for batches in Stream(TwinConfig(**settings), 3).training()]  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_data_to_every_arm() -> None:
    one, other = steps(), steps(lr=1.0, precision="fp16")
    assert all((left.inputs == right.inputs).all() for left, right in zip(one, other, strict=True))
    assert (one[0].inputs != next(Stream(TwinConfig(), 4).training())[0].inputs).any()


def test_a_planted_fault_leaves_all_other_batches_as_they_were() -> None:
    clean, faulty = steps(), steps(bad_batch="random", bad_step=20)
    differs = [bool((a.labels != b.labels).any()) for a, b in zip(clean, faulty, strict=True)]
    assert differs.index(True) == 20
    assert sum(differs) == 1


def test_labels_are_the_next_tokens() -> None:
    batch = steps()[0]
    assert (batch.inputs[:, 1:] == batch.labels[:, :-1]).all()
    twice = steps(label_offset=2)[0]
    assert (twice.inputs[:, 2:] == twice.labels[:, :-2]).all()


def test_the_chain_is_learnable_and_far_from_uniform() -> None:
    stream = Stream(TwinConfig(vocab=64), 0)
    tokens = np.concatenate([batches[0].inputs for batches in stream.training()])
    pairs = {(int(a), int(b)) for row in tokens for a, b in pairwise(row)}
    assert len(pairs) < 0.4 * 64 * 64
    assert tokens.min() >= 3
    assert tokens.max() < 64


@pytest.mark.parametrize("family", ["cnn", "mlp", "bert"])
def test_classes_have_features_and_labels_in_range(family: str) -> None:
    batch = steps(family=family, labels=5)[0]
    assert batch.labels.min() >= 0
    assert batch.labels.max() < 5
    spoiled = steps(family=family, labels=5, bad_batch="nonfinite", bad_step=2, bad_every=3)
    assert [index for index, item in enumerate(spoiled[:9]) if item.poisoned] == [2, 5, 8]


def test_sequence_to_sequence_has_a_source() -> None:
    batch = steps(family="t5")[0]
    assert batch.source is not None
    assert batch.source.shape == batch.inputs.shape


def test_padding_counts_only_where_it_is_asked_to() -> None:
    right = steps(padding=0.5)[0]
    assert (right.inputs[:, 16:] == 0).all()
    assert (right.labels[:, 15:] == -100).all()
    assert (right.labels[:, :15] >= 3).all()
    assert (steps(padding=0.5, masking="none")[0].labels[:, 15:] == 0).all()
    assert (steps(masking="all")[0].labels == -100).all()


def test_few_samples_come_again_and_again() -> None:
    rows = {row.tobytes() for batch in steps(samples=5) for row in batch.inputs}
    assert len(rows) == 5


def test_over_long_batches_are_cut_on_request() -> None:
    long = steps(bad_batch="long", bad_step=2)
    assert [index for index, batch in enumerate(long) if batch.weight > 1] == [2]
    assert all(batch.weight == 1 for batch in steps(bad_batch="long", bad_step=2, truncate=True))
