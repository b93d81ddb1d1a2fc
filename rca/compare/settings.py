"""Settings, packages and properties of the system that are not the same in two runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rca.baseline import Difference
from rca.compare.interface import Side
from rca.events import Event
from rca.templates.masking import masked

SHOWN = 300
"""Differences kept."""
_LONGEST = 200
_SAME = 1e-9
"""Relative difference up to which two numbers are the same: one was printed with fewer digits."""
_OWN = re.compile(
    r"(?:^|[._])(?:(?:output|logging|log|save|cache|tmp|temp|work|run|ckpt|checkpoint|tensorboard)_?(?:dir|path|folder|root)"
    r"|(?:run|exp|experiment|job|project|session|trial|wandb|task|request)_?(?:name|id|number|url|group)|job|wandb|hostname"
    r"|host|node|nodelist|master_(?:addr|port)|port|pid|ppid|uuid|uid|user|home|pwd|time|date|datetime|timestamp|started"
    r"|start_time|commit|git_sha|sha|save_steps|logging_steps|log_interval|log_every|eval_steps|eval_interval"
    r"|report_to|transformers_version)$"
)
"""Names, places, ids and how often something is logged: they differ between any two runs and decide nothing."""
_PROPERTIES = {
    "env.driver": "NVIDIA driver",
    "env.driver_cuda": "CUDA that the driver supports",
    "env.cuda_build": "CUDA of the PyTorch build",
    "env.gpu_name": "GPU",
    "env.gpu_count": "GPUs of one host",
    "env.gpu_memory_gib": "memory of one GPU in GiB",
    "env.compute_capability": "compute capability",
    "env.python": "Python",
    "run.world_size": "processes",
}
"""Fact -> what it is called in the list of differences."""


class Compared(NamedTuple):
    """What differs, and how much does not."""

    differences: tuple[Difference, ...]
    unchanged: int
    same: tuple[str, ...]
    """Names of the settings that are the same."""


class _Said(NamedTuple):
    value: str
    number: float | None
    event: Event | None


def compare_settings(run: Side, healthy: Side) -> Compared:
    """Return the differences between two runs, settings first, and how many things are the same.

    What only one of the two recorded is a difference only where the other has a list that would show it: a file of the
    same kind for a setting, a list of packages for a package.
    """
    roles = _roles(run), _roles(healthy)
    differences: list[Difference] = []
    unchanged = 0
    same: list[str] = []
    for group, ours, theirs in (
        ("configuration", _settings(run), _settings(healthy)),
        ("packages", _packages(run), _packages(healthy)),
        ("system", _properties(run), _properties(healthy)),
    ):
        if not ours or not theirs:
            continue
        for name in sorted({**ours, **theirs}):
            here, there = ours.get(name), theirs.get(name)
            if here is not None and there is not None and _same(here, there):
                unchanged += 1
                same += [name] if group == "configuration" else []
            elif _told(group, here, there, *roles):
                differences.append(_difference(group, name, here, there))
    return Compared(tuple(differences[:SHOWN]), unchanged, tuple(same[:SHOWN]))


def _told(group: str, here: _Said | None, there: _Said | None, ours: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether both runs say what they have, if only by leaving it out of a list."""
    if here is not None and there is not None:
        return True
    if group == "configuration":
        said, roles = (there, ours) if here is None else (here, theirs)
        return said is not None and said.event is not None and _role(said.event) in roles
    return group == "packages"


def _roles(side: Side) -> frozenset[str]:
    """Kinds of files that hold the settings of a run."""
    return frozenset(_role(event) for event in side.events.of_kind("config"))


def _role(event: Event) -> str:
    return str(event.attr("file_role", ""))


def setting_names(side: Side) -> frozenset[str]:
    """Return the names of the settings of a run that could decide something."""
    return frozenset(_settings(side))


def _settings(side: Side) -> Mapping[str, _Said]:
    """The last value of every setting; a total that a progress bar shows is no setting."""
    found: dict[str, _Said] = {}
    for event in side.events.of_kind("config"):
        name = event.name
        if event.attr("from") == "progress" or _OWN.search(name) or event.attr("file_role") == "environment":
            continue
        found[name] = _Said(event.text, _finite(event.value), event)
    return found | dict(_variables(side))


def _variables(side: Side) -> Iterator[tuple[str, _Said]]:
    """Environment variables under the name that they have in a shell."""
    for event in side.events.of_kind("config"):
        if event.attr("file_role") == "environment" and not _OWN.search(event.name):
            yield str(event.attr("key", event.name)), _Said(event.text, _finite(event.value), event)


def _packages(side: Side) -> Mapping[str, _Said]:
    return {event.name: _Said(event.text, None, event) for event in side.events.of_kind("package")}


def _properties(side: Side) -> Mapping[str, _Said]:
    found = {}
    for fact, name in _PROPERTIES.items():
        if fact in side.facts:
            value = side.facts[fact].value
            number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
            found[name] = _Said(str(value), number, None)
    return found


def _same(here: _Said, there: _Said) -> bool:
    if here.number is not None and there.number is not None:
        return math.isclose(here.number, there.number, rel_tol=_SAME)
    ours, theirs = here.value.strip().lower(), there.value.strip().lower()
    return ours == theirs or ("/" in ours and "/" in theirs and masked(ours) == masked(theirs))


def _difference(group: str, name: str, here: _Said | None, there: _Said | None) -> Difference:
    ratio = None
    if here is not None and there is not None and here.number is not None and there.number is not None:
        ratio = here.number / there.number if here.number >= 0 and there.number > 0 else None
    event = None if here is None else here.event
    return Difference.model_validate(
        {
            "group": group,
            "name": name,
            "value": None if here is None else here.value[:_LONGEST],
            "baseline": None if there is None else there.value[:_LONGEST],
            "ratio": ratio,
            "source": "" if event is None else event.source,
            "line": None if event is None else event.line,
        }
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
