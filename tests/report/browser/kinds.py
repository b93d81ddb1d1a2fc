"""The kinds of page that a person may meet, each with all that belongs to it.

`confirmed` holds a trace, experiments, scripts and the agent's log; `distributed` is only suspected, has eight ranks
and a memory what-if table; `baseline` compares with a healthy run.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from rca.diagnosis import Diagnosis

from ..samples import healthy, lr_too_high, oom_on_many_ranks, unknown
from ..test_baseline import compared
from ..test_tables import TABLE

OWN = ("loading the data", "building the model", "compiling", "resuming", "warming up")
"""What only one rank says; the others of a timeline are one row a message."""


def confirmed() -> Diagnosis:
    """Learning rate too high; the first experiment can be repeated by a script with lines of every length."""
    diagnosis = lr_too_high()
    first, *rest = diagnosis.experiments
    script = "\n".join(f"x_{number} = {number}  # {'why it is so, ' * (number % 14)}" for number in range(60))
    return diagnosis.model_copy(update={"experiments": (first.model_copy(update={"script": script}), *rest)})


def distributed() -> Diagnosis:
    """Eight ranks; what each remedy would need stands under the first experiment."""
    diagnosis = oom_on_many_ranks()
    first, *rest = diagnosis.experiments
    tabled = first.model_copy(update={"table": TABLE, "verdict": "mitigates"})
    said = [
        diagnosis.timeline[0].model_copy(update={"id": f"own{number}", "line": number, "text": text})
        for number, text in enumerate(OWN, 1)
    ]
    return diagnosis.model_copy(update={"experiments": (tabled, *rest), "timeline": (*said, *diagnosis.timeline)})


def baseline() -> Diagnosis:
    """A failed run beside the healthy one before it; nothing was tried."""
    return compared(lr_too_high().model_copy(update={"experiments": (), "log": (), "breakdowns": ()}))


KINDS: MappingProxyType[str, Callable[[], Diagnosis]] = MappingProxyType(
    {
        "confirmed": confirmed,
        "distributed": distributed,
        "unknown": unknown,
        "healthy": healthy,
        "baseline": baseline,
    }
)
