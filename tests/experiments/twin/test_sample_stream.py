"""Batches of the user's samples."""

from __future__ import annotations

import numpy as np
import pytest

from rca.errors import ExperimentError
from rca.experiments.twin.config import TwinConfig
from rca.experiments.twin.sample_stream import SampleStream, unsuited
from rca.experiments.twin.samples import Samples

TEXT = Samples("tokens", (np.arange(4000) % 97 + 1000,))
DOCUMENTS = Samples("tokens", tuple(np.full(50, 5 + n) for n in range(60)), None, np.arange(60) % 3)
ROWS = Samples("features", (), np.arange(1200, dtype=np.float32).reshape(100, 12), np.arange(100) % 4)
DECODER = TwinConfig(family="llama", vocab=64, seq=16)
PERCEPTRON = TwinConfig(family="mlp", labels=4, batch=16)


def test_tokens_fit_the_twins_vocabulary_and_labels_are_the_next_ones() -> None:
    batch = next(iter(SampleStream(DECODER, 0, TEXT).training()))[0]
    assert batch.inputs.shape == batch.labels.shape == (8, 16)
    assert batch.inputs.min() >= 3
    assert batch.inputs.max() < 64
    assert (batch.inputs[:, 1:] == batch.labels[:, :-1]).all()


def test_the_same_seed_gives_the_same_batches_and_the_evaluation_is_fixed() -> None:
    one, same, other = (SampleStream(PERCEPTRON, seed, ROWS) for seed in (1, 1, 2))
    batches = [next(iter(stream.training()))[0].inputs for stream in (one, same, other)]
    assert (batches[0] == batches[1]).all()
    assert (batches[0] != batches[2]).any()
    assert (one.evaluation().inputs == other.evaluation().inputs).all()


def test_what_is_held_out_is_never_trained_on() -> None:
    stream = SampleStream(PERCEPTRON, 0, ROWS)
    held = {float(row[0]) for row in stream.evaluation().inputs}
    seen = {float(row[0]) for batches in stream.training() for batch in batches for row in batch.inputs}
    assert held
    assert not held & seen


def test_rows_with_values_that_are_not_finite_are_bad_batches_and_never_measured_on() -> None:
    spoiled = np.array(ROWS.features)
    spoiled[::7] = np.nan
    stream = SampleStream(PERCEPTRON, 0, Samples("features", (), spoiled, ROWS.classes))
    assert np.isfinite(stream.evaluation().inputs).all()
    flags = [batch.poisoned for batches in stream.training() for batch in batches]
    assert any(flags)


def test_wide_rows_and_images_are_brought_to_the_twins_size() -> None:
    wide = Samples("features", (), np.ones((60, 200), dtype=np.float32), np.arange(60) % 2)
    assert SampleStream(PERCEPTRON, 0, wide).evaluation().inputs.shape == (64, 32)
    last = Samples("features", (), np.ones((60, 28, 28, 3), dtype=np.float32), np.arange(60) % 2)
    grey = Samples("features", (), np.ones((60, 28, 28), dtype=np.float32), np.arange(60) % 2)
    for images in (last, grey):
        stream = SampleStream(TwinConfig(family="cnn", labels=2), 0, images)
        assert stream.evaluation().inputs.shape == (64, 3, 16, 16)


def test_an_encoder_learns_the_classes_of_documents() -> None:
    batch = SampleStream(TwinConfig(family="bert", labels=3, seq=16, vocab=64), 0, DOCUMENTS).evaluation()
    assert batch.inputs.shape == (64, 16)
    assert set(batch.labels.tolist()) <= {0, 1, 2}


def test_samples_of_another_kind_are_refused_with_the_reason() -> None:
    for samples, config in ((TEXT, PERCEPTRON), (ROWS, DECODER), (TEXT, TwinConfig(family="bert"))):
        why = unsuited(samples, config)
        assert config.family in why
        with pytest.raises(ExperimentError, match=config.family):
            SampleStream(config, 0, samples)
