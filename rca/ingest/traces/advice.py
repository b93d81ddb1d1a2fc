"""The advice of torch-tb-profiler on a trace, and its own figures to compare ours with.

The package (0.4.3, its last version) does not know the categories and names of torch 2 and later and then says "0 %"
without an error; `modernised` renames them to what it knows. It also tells kernels of collectives by the id of the
operator that is around them, which traces give or give not; here they get the id of one operator by their name. Its
figures are a second opinion: shares in the report are our own.

Measured on 2 cores: loading it costs 0.1 s (0.5 s where nothing else has loaded pandas), then it reads about 8 MB of
JSON a second. So the trace reader asks it in passing only about traces up to `QUICK` bytes, and of many ranks only
about the first; that keeps a small analysis under two seconds. `read_advice` takes traces up to `LARGEST`, above which
it would need more than a gigabyte.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from rca.errors import UnreadableSource
from rca.ingest.traces.names import KERNELS, Role, kind_of

ADVICE = "torch_tb_profiler.advice"
"""Name of the log events that hold one recommendation each."""
QUICK = 3 << 20
"""Bytes of JSON that are analysed in passing, less than half a second."""
LARGEST = 50 << 20

_RUNTIME = ("cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "xpu_runtime", "xpu_driver")
_ANNOTATIONS = ("enumerate(Data", "Optimizer.", "DistributedDataParallel.", "DataParallel.")
_OPERATORS = ("cpu_op", "operator")
_COLLECTIVE, _COLLECTIVE_ID = "collective", 1 << 52
_TAG = re.compile(r"<[^<>]{0,500}>")
_LOGGER = "pytorch_profiler"
_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What the package raises on traces it does not expect: no name, no category, no duration, a step of no length, ..."""
_TOPICS = {
    "input data loading": "data_loading",
    "time cost on communication": "communication",
    "low utilization": "low_utilization",
    "Tensor Cores eligible": "tensor_cores",
    "memory usage is at the limit": "memory",
    "DistributedDataParallel instead": "data_parallel",
    "Nccl backend": "backend",
}
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?)%")


class Advice(NamedTuple):
    """What torch-tb-profiler says about a trace."""

    recommendations: tuple[tuple[str, str, float | None], ...]
    """(topic, text without markup, share named in it)."""
    shares: Mapping[str, float]
    """Its own step breakdown: part -> share of the step."""


def read_advice(data: bytes) -> Advice:
    """Ask torch-tb-profiler about a trace. Raises UnreadableSource where it fails or the trace is too large."""
    if len(data) > LARGEST:
        raise UnreadableSource(f"torch-tb-profiler is not asked about traces above {LARGEST >> 20} MiB.")
    logger = logging.getLogger(_LOGGER)
    before = logger.disabled
    try:
        document = msgspec.json.decode(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It calls pandas in ways that pandas 3 warns about.
            profile = _profile(document)
        shares = dict(_shares(profile))
        recommendations = tuple(_recommendation(text) for text in profile.recommendations)
    except _FAILURES as error:
        raise UnreadableSource(f"torch-tb-profiler could not read the trace ({type(error).__name__}).") from error
    finally:
        logger.disabled = before
    return Advice(recommendations, shares)


def _profile(document: Any) -> Any:
    from torch_tb_profiler.profiler import trace
    from torch_tb_profiler.profiler.data import RunProfileData

    logging.getLogger(_LOGGER).disabled = True
    if _COLLECTIVE not in trace.NcclOpNameSet:
        # Operators of these names count as communication, but on the host they only enqueue a kernel.
        trace.NcclOpNameSet[:] = [_COLLECTIVE]
    return RunProfileData.from_json("worker", "0", modernised(document))


def modernised(document: Any) -> dict[str, Any]:
    """Return the trace with the categories torch-tb-profiler knows; events it would choke on are left out."""
    listed = document if isinstance(document, list) else document["traceEvents"]
    events = [renamed for event in listed if isinstance(event, dict) and (renamed := _renamed(event)) is not None]
    operator = next((event for event in events if event.get("ph") == "X" and event["cat"].lower() in _OPERATORS), None)
    if operator is None:
        raise ValueError("no operator: its step would be empty")
    if any(event.get("args", {}).get("External id") == _COLLECTIVE_ID for event in events):
        events.append({**operator, "name": _COLLECTIVE, "dur": 0, "args": {"External id": _COLLECTIVE_ID}})
    head = {} if isinstance(document, list) else {key: item for key, item in document.items() if key != "traceEvents"}
    return {**head, "traceEvents": events}


def _renamed(event: dict[str, Any]) -> dict[str, Any] | None:
    phase, category, name = event.get("ph"), event.get("cat", ""), event.get("name")
    if phase == "X" and (not category or not isinstance(name, str) or event.get("dur") is None):
        return None
    if category == "gpu_user_annotation":
        return None
    if category in KERNELS and kind_of(category, str(name)).role is Role.COMMUNICATION:
        given = event.get("args")
        kept = {key: item for key, item in given.items() if key != "external id"} if isinstance(given, dict) else {}
        return {**event, "args": {**kept, "External id": _COLLECTIVE_ID}}
    if category in _RUNTIME:
        return {**event, "cat": "Runtime"}
    if category == "fwdbwd":
        return {**event, "cat": "forward_backward"}
    if category == "user_annotation" and str(name).startswith(_ANNOTATIONS):
        return {**event, "cat": "cpu_op"}
    return event


def _shares(profile: Any) -> Iterator[tuple[str, float]]:
    from torch_tb_profiler.profiler.event_parser import ProfileRole

    costs = profile.avg_costs.costs
    total = costs[ProfileRole.Total]
    for role in ProfileRole:
        if role is not ProfileRole.Total:
            yield role.name.lower(), float(costs[role] / total)


def _recommendation(html: str) -> tuple[str, str, float | None]:
    text = " ".join(_TAG.sub("", html).split())
    topic = next((topic for words, topic in _TOPICS.items() if words in text), "other")
    share = _PERCENT.search(text)
    return topic, text, float(share[1]) / 100 if share else None
