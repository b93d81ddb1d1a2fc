"""Training metrics printed in log lines: pairs, dicts and progress bars, with the steps they belong to."""

from rca.ingest.training_metrics.reader import MetricReader, Segment
from rca.ingest.training_metrics.triggers import TRIGGERS

__all__ = ["TRIGGERS", "MetricReader", "Segment"]
