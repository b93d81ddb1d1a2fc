"""`experimenter`: carries out one experiment, whatever its kind, and always comes back with a verdict."""

from __future__ import annotations

import atexit
import json
import shlex
import time
from collections.abc import Callable
from functools import partial

from rca.diagnosis import Experiment
from rca.experiments.bisect import BISECTION, Bisection
from rca.experiments.checks.experiment import ProbeExperiment
from rca.experiments.devices import choose_device
from rca.experiments.interface import NOTHING, Experimenter, Material, RunProfile
from rca.experiments.loops.experiment import LoopExperiment
from rca.experiments.memory.experiment import MemoryExperiment
from rca.experiments.repro.script import with_script
from rca.experiments.twin.experiment import TwinExperiment
from rca.experiments.twin.stand_in import with_supplied
from rca.experiments.workbench import Workbench
from rca.rules.schema import ExperimentRule

_benches: dict[str, Workbench] = {}


Tell = Callable[[str, int, int], None]
"""Stage, done, planned."""


def telling(tell: Tell) -> Experimenter:
    """Return an experimenter that tells, experiment by experiment, how many arms are done of those planned so far."""
    return partial(experimenter, tell=tell)


def experimenter(
    rule: ExperimentRule,
    *,
    profile: RunProfile,
    device: str,
    seconds: float,
    material: Material = NOTHING,
    tell: Tell | None = None,
) -> Experiment:
    """Carry out one experiment in a child process within `seconds`.

    `device` is `auto` (a GPU that nobody uses, else the CPU), `cpu`, `cuda` or `mps`. The child stays for the next
    experiment and ends with this process, or with `close`.
    """
    bench = _bench(rule, device)
    bench.notify = partial(tell, f"experiment {rule.id}") if tell is not None else None
    until = time.monotonic() + seconds
    supplied = material.twin is not None or material.data is not None
    if rule.id == BISECTION.id:
        found = Bisection(profile, material.baseline, bench, until).carry_out()
    elif rule.kind == "twin" and supplied:
        found = with_supplied(rule, profile, bench, until, material)
    elif rule.kind == "twin":
        found = TwinExperiment(rule, profile, bench, until).carry_out()
    elif rule.kind == "loop":
        found = LoopExperiment(rule, profile, bench, until).carry_out()
    elif rule.kind == "memory":
        found = MemoryExperiment(rule, profile, bench, until).carry_out()
    else:
        found = ProbeExperiment(rule, profile, bench, until, material).carry_out()
    found = found.model_copy(update={"repro": repro(rule, profile, bench.device, material=material)})
    return with_script(found, rule, profile, material=material)


def warm_up(rule: ExperimentRule, device: str) -> None:
    """Start the child process that `rule` will need, without waiting for its imports."""
    _bench(rule, device).warm_up()


def _bench(rule: ExperimentRule, device: str) -> Workbench:
    chosen = "cpu" if rule.kind != "twin" else choose_device(device)
    return _benches.setdefault(chosen, Workbench(device=chosen))


def close() -> None:
    """End the child processes."""
    for bench in _benches.values():
        bench.close()
    _benches.clear()


def forget() -> None:
    """Drop what was trained for earlier experiments; the child processes stay, with what they have imported."""
    for bench in _benches.values():
        bench.known.clear()


atexit.register(close)


def repro(rule: ExperimentRule, profile: RunProfile, device: str, *, material: Material = NOTHING) -> str:
    """Return the command that repeats an experiment of the installed knowledge.

    One that reads files, of the run or of the user, cannot be repeated from the report alone.
    """
    own = rule.kind == "twin"
    named = {
        " --baseline GOOD_RUN": rule.id == BISECTION.id,
        " --twin FILE.py:FUNCTION": own and material.twin is not None and rule.id != BISECTION.id,
        " --data PATH": own and material.data is not None and rule.id != BISECTION.id,
    }
    if rule.needs or any(named.values()):
        return f"rca experiment {rule.id} RUN_DIR" + "".join(option for option, used in named.items() if used)
    request = {"experiment": rule.id, "device": device, "profile": profile.model_dump(mode="json", exclude_none=True)}
    return f"python -m rca.experiments.repeat {shlex.quote(json.dumps(request, sort_keys=True))}"
