from __future__ import annotations

import json
import math

import numpy as np
import pytest
from tensorboard.compat.proto.summary_pb2 import HistogramProto
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DataType

from rca.ingest.event_files.histograms import of_buckets, of_message


def message(values: np.ndarray) -> HistogramProto:
    """Make the message as `SummaryWriter.add_histogram` does."""
    edges = np.linspace(-100, 100, 401)
    return HistogramProto(
        min=values.min(),
        max=values.max(),
        num=len(values),
        sum=values.sum(),
        sum_squares=values.dot(values),
        bucket_limit=edges[1:],
        bucket=np.histogram(values, bins=edges)[0],
    )


def test_statistics_of_the_message_are_those_of_the_values() -> None:
    values = np.random.default_rng(0).normal(2.0, 3.0, 1000)
    found = of_message(message(values))
    assert found is not None
    said = json.loads(found.note)
    assert found.norm == pytest.approx(np.linalg.norm(values))
    assert said["std"] == pytest.approx(values.std())
    assert (said["count"], said["min"], said["max"]) == (1000, values.min(), values.max())
    assert said["mean"] == pytest.approx(values.mean())
    assert said["non_finite_share"] == 0


@pytest.mark.filterwarnings("ignore:invalid value")
def test_values_that_are_not_finite_are_counted() -> None:
    values = np.ones(1000)
    values[:250] = math.nan
    found = of_message(message(values))
    assert found is not None
    said = json.loads(found.note)
    assert math.isnan(found.norm)
    assert said["non_finite_share"] == 0.25
    assert said["mean"] is None


def test_buckets_of_a_tensor_in_both_holders() -> None:
    rows = np.array([[0.0, 1.0, 0.0], [1.0, 2.0, 3.0], [2.0, 3.0, 1.0]])
    packed = TensorProto(dtype=DataType.DT_DOUBLE, tensor_content=rows.tobytes())
    listed = TensorProto(dtype=DataType.DT_DOUBLE, double_val=rows.ravel())
    assert of_buckets(packed) == of_buckets(listed)
    found = of_buckets(packed)
    assert found is not None
    said = json.loads(found.note)
    assert (said["count"], said["min"], said["max"], said["mean"]) == (4, 1.0, 3.0, 1.75)
    assert found.norm == pytest.approx(math.sqrt(3 * 1.5**2 + 2.5**2))


@pytest.mark.parametrize(
    "tensor",
    [
        TensorProto(),
        TensorProto(dtype=DataType.DT_FLOAT, tensor_content=b"\0" * 24),
        TensorProto(dtype=DataType.DT_DOUBLE, tensor_content=b"\0" * 23),
        TensorProto(dtype=DataType.DT_DOUBLE, double_val=[1.0, 2.0]),
        TensorProto(dtype=DataType.DT_DOUBLE, double_val=[1.0, 2.0, 0.0]),
        TensorProto(dtype=DataType.DT_DOUBLE, double_val=[1.0, 2.0, math.nan]),
    ],
)
def test_what_counts_nothing_is_no_histogram(tensor: TensorProto) -> None:
    assert of_buckets(tensor) is None


def test_infinite_edges_are_survived() -> None:
    tensor = TensorProto(dtype=DataType.DT_DOUBLE, double_val=[-math.inf, math.inf, 2.0, 1e308, 1.7e308, 1.0])
    found = of_buckets(tensor)
    assert found is not None
    json.loads(found.note)
    assert of_message(HistogramProto(num=math.nan)) is None
    assert of_message(HistogramProto(num=1, sum_squares=-1)) is not None
