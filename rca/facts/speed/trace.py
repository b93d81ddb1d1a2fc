"""What profiler traces show: where the step time goes, how the devices are fed, and the breakdown for the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rca.diagnosis import Breakdown
from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.speed.trace_figures import Sums, Total, Trace, totals, traces

CATALOGUE: Mapping[str, str] = {
    "trace.steps": "profiled steps over all traces",
    "trace.step_s": "mean duration of a profiled step (s)",
    "trace.kernel_share": "share of the step in which kernels compute",
    "trace.memcpy_share": "share in which only copies run on the device",
    "trace.communication_share": "share of the step in which collectives run and nothing computes",
    "trace.runtime_share": "share in which the device is idle and the host is inside the device runtime",
    "trace.dataloader_share": "share in which the device is idle and the loop waits for the data loader",
    "trace.cpu_share": "share in which the device is idle and the host executes operators",
    "trace.other_share": "share in which nothing that is recorded happens",
    "trace.idle_share": "share of the marked steps in which the device does nothing",
    "trace.communication_overlap": "share of the collectives' time that is hidden behind computation",
    "trace.mean_kernel_us": "mean duration of a kernel (us)",
    "trace.kernels_per_step": "kernels a step",
    "trace.launches_per_step": "kernel launches a step",
    "trace.graph_launches": "kernels are launched through graphs",
    "trace.syncs_per_step": "calls a step in which the host waits for the device",
    "trace.sync_share": "share of the host's step in which it waits for the device",
    "trace.items_per_step": "reads of single elements (.item()) a step",
    "trace.copies_to_host_per_step": "copies from the device to the host a step",
    "trace.copy_share": "share of the step time that copies between host and device take, hidden or not",
    "trace.tensor_core_share": "share of the kernel time on tensor cores or other matrix units",
    "trace.matmul_share": "share of the kernel time in matrix products and convolutions",
    "trace.tensor_core_of_matmul": "share of the time of matrix products and convolutions that runs on matrix units",
    "trace.host_wait_share": "share of the step in which the device idles because its next work was not launched yet",
    "trace.launch_delay_us": "time from a launch to the begin of its work on the device (median, us)",
    "trace.compilations_per_step": "frames that torch.compile compiled, a step",
    "trace.compile_share": "share of the host's step in which torch.compile works",
    "trace.slow_steps": "profiled steps that last more than 1.5 times the median",
    "trace.slow_step_ratio": "longest profiled step over the median one",
    "trace.slow_step_part": "part of the breakdown that makes the longest step longer",
    "trace.memory_peak_gib": "highest allocated device memory in the profiled steps (GiB)",
    "trace.memory_peak_reserved_gib": "highest reserved device memory in the profiled steps (GiB)",
    "trace.memory_gib_per_step": "slope of the allocated device memory over the profiled steps (GiB a step)",
    "trace.top_kernel": "kernel with the longest total time",
    "trace.top_operator": "operator with the longest own time on the host",
    "trace.top_device_operator": "operator whose own kernels take longest on the device",
    "trace.top_device_operator_share": "share of that operator in the device time of all listed operators",
    "trace.top_input_shapes": "input shapes with which that operator takes longest",
    "trace.recommendations": "what torch-tb-profiler recommends, topics first",
    "trace.ranks": "ranks of which a trace was read",
    "trace.single_step": "one step was profiled, which may be the first one with its start-up work",
    "trace.thin": "a single operation was profiled, not a model",
}

PARTS = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu", "other")
_IN_WORDS: Mapping[str, str] = {
    "kernel": "Kernels compute in",
    "memcpy": "Only copies run on the device in",
    "communication": "Collectives run and nothing computes in",
    "runtime": "The device waits for the host inside its runtime in",
    "dataloader": "The loop waits for the data loader and the device does nothing in",
    "cpu": "The host executes operators and the device does nothing in",
    "other": "Nothing that is recorded happens in",
}
ADVICE = "torch_tb_profiler.advice"
MOST_BREAKDOWNS = 16
TOP = 12
MIN_SLOPE = 4
SLOW_STEP = 1.5
"""Times the median step; profiled steps of a training loop differ by a tenth, a step that saves or compiles by more."""
FEWEST_KERNELS = 50
"""Kernels a step below which a trace shows a single operation, not a model."""


def shares(events: EventTable) -> Iterator[Fact]:
    """Where does the step time go?"""
    found = traces(events)
    if not found:
        return
    sums = Sums(found)
    where = "of the marked steps" if found[0].marked else "of the whole trace (no step is marked)"
    steps = sum(len(item.figures["step_us"]) for item in found)
    if found[0].marked:
        says = f"{steps} steps were profiled in {len(found)} trace{'s' * (len(found) > 1)}."
        yield from emit("trace.steps", steps, says, events=sums.ids)
    ranks = {item.rank for item in found if item.rank is not None}
    if ranks:
        says = f"Traces of {len(ranks)} rank{'s' * (len(ranks) > 1)} were read."
        yield from emit("trace.ranks", len(ranks), says, events=sums.ids)
    mean = sums.each_step("step_us")
    if mean is not None and found[0].marked:
        says = f"A profiled step lasts {number(mean / 1e6)} s."
        yield from emit("trace.step_s", mean / 1e6, says, unit="s", events=sums.ids)
    for part, words in _IN_WORDS.items():
        share = sums.ratio(f"{part}_us", "step_us")
        says = "" if share is None else f"{words} {percent(share)} {where}."
        yield from emit(f"trace.{part}_share", share, says, events=sums.ids)
    busy = sums.ratio("busy_us", "step_us")
    if busy is not None and found[0].marked:
        says = f"The device is idle in {percent(1 - busy)} {where}."
        yield from emit("trace.idle_share", max(1 - busy, 0.0), says, events=sums.ids)
    exposed = sums.ratio("exposed_collective_us", "collective_us")
    if exposed is not None:
        says = f"{percent(1 - exposed)} of the collectives' time is hidden behind computation."
        yield from emit("trace.communication_overlap", 1 - exposed, says, events=sums.ids)


def feeding(events: EventTable) -> Iterator[Fact]:
    """How is the device fed: launches, waits, copies, and on which units does it compute?"""
    sums = Sums(traces(events))
    if not sums.items:
        return
    for name, figure, words in (
        ("trace.kernels_per_step", "kernels", "kernels"),
        ("trace.launches_per_step", "launches", "kernel launches"),
        ("trace.syncs_per_step", "syncs", "waits for the device"),
        ("trace.items_per_step", "items", "reads of single elements"),
        ("trace.copies_to_host_per_step", "copies_to_host", "copies to the host"),
    ):
        value = sums.each_step(figure)
        says = "" if value is None else f"A step has {number(value)} {words}."
        yield from emit(name, value, says, events=sums.ids)
    kernels = sums.each_step("kernels")
    marked = [item for item in sums.items if item.marked]
    steps = sum(len(item.figures["step_us"]) for item in marked)
    if marked:
        says = "One step was profiled." if steps == 1 else f"{steps} steps were profiled."
        yield from emit("trace.single_step", steps == 1, says, events=sums.ids)
    if kernels is not None:
        says = f"{number(kernels)} kernels were profiled{' a step' if marked else ''}."
        yield from emit("trace.thin", kernels < FEWEST_KERNELS, says, events=sums.ids)
    graphs = sums.each_step("graph_launches")
    if graphs is not None:
        says = "Kernels are launched through graphs." if graphs else "Kernels are launched one by one."
        yield from emit("trace.graph_launches", graphs > 0, says, events=sums.ids)
    marked_sums = Sums(tuple(marked))
    for name, figure, words in (
        ("trace.host_wait_share", "host_wait_us", "of the step the device waits for the host to launch its next work"),
        ("trace.compile_share", "compile_us", "of the step the host is busy compiling"),
    ):
        share = marked_sums.ratio(figure, "step_us")
        says = "" if share is None else f"{percent(share)} {words}."
        yield from emit(name, share, says, events=marked_sums.ids)
    compiled = marked_sums.each_step("compilations")
    if compiled is not None:
        says = f"{number(compiled)} frames are compiled a step."
        yield from emit("trace.compilations_per_step", compiled, says, events=marked_sums.ids)
    delays = [item.figures["launch_delay_us"] for item in sums.having("launch_delay_us")]
    if delays and np.isfinite(every := np.concatenate(delays)).any():
        delay = float(np.nanmedian(every))
        says = f"A kernel begins {number(delay)} us after its launch (median)."
        yield from emit("trace.launch_delay_us", delay, says, unit="us", events=sums.ids)
    mean = sums.ratio("kernel_sum_us", "kernels")
    if mean is not None:
        says = f"A kernel lasts {number(mean)} us in the mean."
        yield from emit("trace.mean_kernel_us", mean, says, unit="us", events=sums.ids)
    copies = [sums.ratio(name, "step_us") for name in ("copies_to_host_us", "copies_to_device_us")]
    if None not in copies:
        share = sum(item for item in copies if item is not None)
        says = f"Copies between host and device take {percent(share)} of the step time."
        yield from emit("trace.copy_share", share, says, events=sums.ids)
    for name, part, whole, words in (
        ("trace.sync_share", "sync_us", "step_us", "of the step the host waits for the device"),
        ("trace.tensor_core_share", "tensor_core_sum_us", "kernel_sum_us", "of the kernel time runs on matrix units"),
        ("trace.matmul_share", "matmul_sum_us", "kernel_sum_us", "of the kernel time is matrix products"),
        (
            "trace.tensor_core_of_matmul",
            "tensor_core_sum_us",
            "matmul_sum_us",
            "of the time of matrix products runs on matrix units",
        ),
    ):
        value = sums.ratio(part, whole)
        says = "" if value is None else f"{percent(value)} {words}."
        yield from emit(name, value, says, events=sums.ids)


def uneven(events: EventTable) -> Iterator[Fact]:
    """Are single profiled steps much longer than the rest, and in which part?"""
    worst: tuple[float, Trace, int] | None = None
    slow = 0
    for item in traces(events):
        steps = item.figures["step_us"]
        if not item.marked or len(steps) < MIN_SLOPE:
            continue
        ratio = steps / np.median(steps)
        slow += int(np.count_nonzero(ratio > SLOW_STEP))
        place = int(np.argmax(ratio))
        if worst is None or ratio[place] > worst[0]:
            worst = float(ratio[place]), item, place
    if worst is None:
        return
    longest_by, item, place = worst
    ids = [int(item.event_id[place])]
    says = f"{slow} profiled steps last more than {SLOW_STEP} times the median."
    yield from emit("trace.slow_steps", slow, says, events=ids)
    says = f"The longest profiled step lasts {number(longest_by)} times the median one."
    yield from emit("trace.slow_step_ratio", longest_by, says, events=ids)
    if slow:
        parts = {part: item.figures[f"{part}_us"] for part in PARTS if f"{part}_us" in item.figures}
        excess = {part: float(values[place] - np.median(values)) for part, values in parts.items()}
        part = max(excess, key=lambda name: excess[name])
        says = f"The longest profiled step has {number(excess[part] / 1e6)} s more than usual in the part '{part}'."
        yield from emit("trace.slow_step_part", part, says, events=ids)


def growth(events: EventTable) -> Iterator[Fact]:
    """How much device memory is held at most, and does it grow from step to step?"""
    for name, figure, word in (
        ("trace.memory_peak_gib", "memory_peak_allocated", "allocated"),
        ("trace.memory_peak_reserved_gib", "memory_peak_reserved", "reserved"),
    ):
        peaks = [
            (float(np.nanmax(values)), int(item.event_id[0]))
            for item in traces(events)
            if np.isfinite(values := item.figures.get(figure, np.empty(0))).any()
        ]
        if peaks:
            peak, event_id = max(peaks)
            says = f"At most {number(peak)} GiB of device memory are {word}."
            yield from emit(name, peak, says, unit="GiB", events=[event_id])
    slopes = [
        (float(np.polyfit(np.arange(len(values)), values, 1)[0]), int(item.event_id[-1]))
        for item in traces(events)
        if item.marked
        and len(values := item.figures.get("memory_allocated", np.empty(0))) >= MIN_SLOPE
        and np.isfinite(values).all()
    ]
    if slopes:
        slope, event_id = max(slopes)
        says = f"Allocated device memory changes by {number(slope)} GiB a step."
        yield from emit("trace.memory_gib_per_step", slope, says, unit="GiB", events=[event_id])


def longest(events: EventTable) -> Iterator[Fact]:
    """Which kernel and which operator take most of the time, and what is recommended?"""
    spans = totals(events)
    for name, category in (("trace.top_kernel", "kernel"), ("trace.top_operator", "operator")):
        spent: dict[str, float] = {}
        ids: dict[str, int] = {}
        for span in spans:
            if span.category == category:
                spent[span.name] = spent.get(span.name, 0.0) + span.duration
                ids.setdefault(span.name, span.event_id)
        if spent:
            top = max(spent, key=lambda item: spent[item])
            says = f"The {category} {top[:120]} takes {number(spent[top] / 1e3)} ms in total."
            yield from emit(name, top, says, events=[ids[top]])
    yield from _device_operator([span for span in spans if span.category == "operator"])
    advice = events.named(ADVICE)
    if advice:
        unique = {str(event.attr("topic", "other")): event for event in reversed(advice)}
        text = "; ".join(f"{topic}: {event.text}" for topic, event in sorted(unique.items()))
        says = f"torch-tb-profiler recommends: {', '.join(sorted(unique))}."
        yield from emit("trace.recommendations", text, says, events=[event.event_id for event in unique.values()])


def _device_operator(spans: Sequence[Total]) -> Iterator[Fact]:
    """Name the operator whose own kernels take longest, and its input shapes."""
    spent: dict[str, float] = {}
    for span in spans:
        spent[span.name] = spent.get(span.name, 0.0) + span.device
    top = max(spent, key=lambda name: spent[name], default=None)
    if top is None or not spent[top]:
        return
    rows = [span for span in spans if span.name == top]
    ids = [rows[0].event_id]
    says = f"The kernels of {top[:120]} take {number(spent[top] / 1e3)} ms on the device."
    yield from emit("trace.top_device_operator", top, says, events=ids)
    share = spent[top] / sum(spent.values())
    says = f"{percent(share)} of the device time that operators launched belongs to {top[:120]}."
    yield from emit("trace.top_device_operator_share", share, says, events=ids)
    shapes = next((span.shapes for span in rows if span.shapes), "")
    if shapes:
        yield from emit("trace.top_input_shapes", shapes, f"Its heaviest inputs are {shapes[:200]}.", events=ids)


def breakdowns(events: EventTable) -> tuple[Breakdown, ...]:
    """Return where the step time went, one view a trace, at most `MOST_BREAKDOWNS`."""
    spans = totals(events)
    return tuple(_breakdown(item, spans) for item in traces(events)[:MOST_BREAKDOWNS])


def _breakdown(item: Trace, spans: Sequence[Total]) -> Breakdown:
    total = item.total("step_us")
    steps = len(item.figures["step_us"])
    own = [span for span in spans if span.source == item.source and span.rank == item.rank]
    device = [span for span in own if span.category in {"kernel", "copy", "collective"}]
    top = sorted(device or own, key=lambda span: -span.duration)[:TOP]
    notes = [f"Mean of {steps} steps." if item.marked else "No step is marked, so this is the whole trace."]
    if item.total("graph_launches"):
        notes.append("Kernels were launched through graphs, so gaps between kernels are not told apart.")
    if not device:
        notes.append("No device took part; operators are listed with their own time on the host.")
    return Breakdown(
        source=item.source,
        rank=item.rank,
        step_us=total / steps,
        shares=tuple((part, item.total(f"{part}_us") / total) for part in PARTS if f"{part}_us" in item.figures),
        top=tuple((span.name, span.duration, span.calls) for span in top),
        notes=tuple(notes),
    )


FACTS: tuple[FactFunction, ...] = (shares, feeding, uneven, growth, longest)
