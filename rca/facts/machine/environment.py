"""Versions of the software stack and what they must agree on: torch, CUDA build, driver, device, packages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from rca.events import Event, EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction
from rca.facts.machine.gpu_models import capability_of, runs_on

CATALOGUE: Mapping[str, str] = {
    "env.torch": "version of PyTorch with its build tag",
    "env.cuda_build": "CUDA version that PyTorch was built for",
    "env.cpu_only_torch": "the installed PyTorch is a build without CUDA",
    "env.cuda_available": "what torch.cuda.is_available() said",
    "env.driver": "version of the NVIDIA driver",
    "env.driver_cuda": "highest CUDA version that the driver says it supports",
    "env.driver_too_old": "the driver is older than the CUDA major version of the build needs",
    "env.gpu_name": "name of most devices",
    "env.gpu_count": "devices that one host shows",
    "env.gpu_memory_gib": "memory of one device (GiB)",
    "env.compute_capability": "compute capability of the device, said or from its name",
    "env.arch_list": "architectures that the PyTorch build has code for",
    "env.arch_supported": "the build has code that runs on the device",
    "env.python": "version of Python",
    "env.requirement_conflicts": "requirements that the installed packages do not meet",
    "env.requirement_conflict": "the first of them, in words",
}
_TAG = re.compile(r"\+cu([0-9]{2,3})\b")
_RUNTIME_PACKAGE = re.compile(r"nvidia-cuda-runtime(?:-cu([0-9]{2}))?")
MINIMUM_DRIVER = {11: (450, 80), 12: (525, 60), 13: (580, 0)}
"""Oldest driver for a CUDA major version on Linux (NVIDIA CUDA compatibility guide, minor version compatibility)."""
_VERSION = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){0,3}")


def _said(events: EventTable, key: str) -> Event | None:
    """Return the last `system.environment` event that holds a key."""
    found = [event for event in events.named("system.environment") if event.attr(key) is not None]
    return found[-1] if found else None


def _package(events: EventTable, name: str) -> Event | None:
    found = events.named(name, kind="package")
    return next((event for event in reversed(found) if event.attr("installed")), found[-1] if found else None)


def _version(text: str) -> tuple[int, ...]:
    match = _VERSION.match(text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def cuda_build(events: EventTable) -> tuple[str, Event] | None:
    """Return the CUDA version of the PyTorch build: said outright, from its tag, or from the runtime it needs."""
    said = _said(events, "cuda_build")
    if said is not None:
        return str(said.attr("cuda_build")), said
    torch = _package(events, "torch")
    if torch is not None and (tag := _TAG.search(torch.text)) is not None:
        return f"{tag[1][:-1]}.{tag[1][-1]}", torch
    for event in events.of_kind("package"):
        if _RUNTIME_PACKAGE.fullmatch(event.name) and len(parts := _version(event.text)) > 1:
            return f"{parts[0]}.{parts[1]}", event
    return None


def versions(events: EventTable) -> Iterator[Fact]:
    """Which PyTorch, for which CUDA, with which Python?"""
    torch = _package(events, "torch")
    if torch is not None:
        yield from emit("env.torch", torch.text, f"PyTorch {torch.text} is installed.", events=[torch.event_id])
    build = cuda_build(events)
    if build is not None and _version(build[0]):
        says = f"PyTorch was built for CUDA {build[0]}."
        yield from emit("env.cuda_build", build[0], says, events=[build[1].event_id])
    cpu_only = torch is not None and "+cpu" in torch.text
    without = build is not None and build[0].lower() == "none"
    if torch is not None and (cpu_only or without or build is not None):
        shown = torch if cpu_only or build is None else build[1]
        says = "The installed PyTorch is a build without CUDA." if cpu_only or without else "PyTorch has CUDA support."
        yield from emit("env.cpu_only_torch", cpu_only or without, says, events=[shown.event_id])
    available = _said(events, "cuda_available")
    if available is not None:
        value = str(available.attr("cuda_available")).lower() == "true"
        says = f"torch.cuda.is_available() said {value}."
        yield from emit("env.cuda_available", value, says, events=[available.event_id])
    python = _said(events, "python")
    if python is not None:
        yield from emit("env.python", python.text.split(" ")[0], f"Python {python.text}.", events=[python.event_id])


def driver(events: EventTable) -> Iterator[Fact]:
    """Which driver, and is it new enough for the build?"""
    shown = [event for event in (*events.named("system.driver"), *events.named("system.gpu")) if event.attr("driver")]
    event = shown[-1] if shown else _said(events, "driver")
    if event is None:
        return
    version = str(event.attr("driver"))
    yield from emit("env.driver", version, f"The NVIDIA driver is {version}.", events=[event.event_id])
    highest = event.attr("cuda") or (said.attr("driver_cuda") if (said := _said(events, "driver_cuda")) else None)
    if highest:
        says = f"The driver supports CUDA up to {highest}."
        yield from emit("env.driver_cuda", str(highest), says, events=[event.event_id])
    build = cuda_build(events)
    needed = MINIMUM_DRIVER.get(_version(build[0])[0]) if build is not None and _version(build[0]) else None
    if build is not None and needed is not None and _version(version):
        old = _version(version)[:2] < needed
        words = f"CUDA {build[0]} needs driver {needed[0]}.{needed[1]:02d} or newer, the driver is {version}."
        yield from emit("env.driver_too_old", old, words, events=[event.event_id, build[1].event_id])


def devices(events: EventTable) -> Iterator[Fact]:
    """Which devices, how many, and does the build have code for them?"""
    shown = [event for event in events.named("system.gpu") if event.attr("name")]
    said = _said(events, "gpu_name")
    name = Counter(str(event.attr("name")) for event in shown).most_common(1)[0][0] if shown else None
    name = name or (said.text if said is not None else None)
    seen = [shown[0].event_id] if shown else [said.event_id] if said is not None else []
    if name:
        yield from emit("env.gpu_name", name, f"The device is a {name}.", events=seen)
    if shown:
        by_source: dict[str, set[object]] = {}
        for event in shown:
            by_source.setdefault(event.source, set()).add(event.attr("index"))
        count = max(len(indexes) for indexes in by_source.values())
        yield from emit("env.gpu_count", count, f"One host shows {count} devices.", events=seen)
        sizes = [int(event.attr("memory_total_bytes")) for event in shown if event.attr("memory_total_bytes")]
        if sizes:
            size = max(sizes) / 1024**3
            says = f"A device has {size:.1f} GiB."
            yield from emit("env.gpu_memory_gib", round(size, 2), says, unit="GiB", events=seen)
    yield from _architectures(events, name, seen)


def _architectures(events: EventTable, name: str | None, seen: list[int]) -> Iterator[Fact]:
    told = _said(events, "compute_capability")
    capability = str(told.attr("compute_capability")) if told is not None else None
    shown = next((event for event in events.named("system.gpu") if event.attr("compute_capability")), None)
    if capability is None and shown is not None:
        told, capability = shown, str(shown.attr("compute_capability"))
    if capability is None and name:
        capability = capability_of(name)
    places = [told.event_id] if told is not None else seen
    if capability and re.fullmatch(r"[0-9]{1,2}\.[0-9]", capability):
        says = f"The device has compute capability {capability}."
        yield from emit("env.compute_capability", capability, says, events=places)
    listed = _said(events, "arch_list")
    if listed is None:
        return
    archs = str(listed.attr("arch_list"))
    yield from emit("env.arch_list", archs, f"The build has code for {archs}.", events=[listed.event_id])
    if capability and re.fullmatch(r"[0-9]{1,2}\.[0-9]", capability):
        fits = runs_on(archs, capability)
        says = f"The build has {'' if fits else 'no '}code for compute capability {capability}: {archs}."
        yield from emit("env.arch_supported", fits, says, events=[listed.event_id, *places])


def requirements(events: EventTable) -> Iterator[Fact]:
    """Do the installed packages meet the requirements that lie beside them?"""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    installed = {event.name: event for event in events.of_kind("package") if event.attr("installed")}
    wanted = [
        (event.name, f"=={event.text}", event)
        for event in events.of_kind("package")
        if event.attr("origin") in {"requirements", "environment", "lock"}
    ]
    wanted += [
        (str(event.attr("package")), str(event.attr("specifier")), event)
        for event in events.named("package.requirement", kind="artifact")
        if event.attr("specifier")
    ]
    if not installed or not wanted:
        return
    conflicts: list[tuple[str, Event, Event]] = []
    compared: list[Event] = []
    for name, specifier, event in wanted:
        present = installed.get(name)
        if present is None:
            continue
        try:
            fits = Version(present.text) in SpecifierSet(specifier, prereleases=True)
        except (InvalidSpecifier, InvalidVersion):
            continue
        compared.append(event)
        if not fits:
            conflicts.append((f"{name} {present.text} is installed, {specifier} is required", event, present))
    if compared:
        says = f"{len(conflicts)} installed packages do not meet the requirements."
        shown = [item.event_id for _text, *pair in conflicts for item in pair] or [compared[0].event_id]
        yield from emit("env.requirement_conflicts", len(conflicts), says, events=shown)
    if conflicts:
        yield from emit("env.requirement_conflict", conflicts[0][0], f"{conflicts[0][0]}.", events=shown)


FACTS: tuple[FactFunction, ...] = (versions, driver, devices, requirements)
