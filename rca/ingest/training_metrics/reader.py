"""Reads the metrics of one text source line by line and gives each point its step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rca.events import EventBuilder
from rca.ingest.logs.prefixes import PrefixForm
from rca.ingest.logs.text_document import TextDocument
from rca.ingest.training_metrics.alike import Lines, Look
from rca.ingest.training_metrics.bar_states import BarStates
from rca.ingest.training_metrics.bar_template import BarTemplate, BarTemplates
from rca.ingest.training_metrics.bars import Bar, bar
from rca.ingest.training_metrics.columns import Kind, MetricColumns
from rca.ingest.training_metrics.counters import Position, position
from rca.ingest.training_metrics.dicts import is_summary, logged_steps, metric_dict
from rca.ingest.training_metrics.epoch_titles import EpochTitles
from rca.ingest.training_metrics.line_template import LineTemplate, LineTemplates
from rca.ingest.training_metrics.memory_lines import memory_lines
from rca.ingest.training_metrics.pairs import Pair, Reading, entry, of_epochs, pairs, rate, slots
from rca.ingest.training_metrics.serving import serving
from rca.ingest.training_metrics.step_counter import StepCounter
from rca.ingest.training_metrics.time_left import TimeLeft
from rca.ingest.training_metrics.timers import timers

_SCALE = r"\d{1,20}(?:\.\d{0,20})?(?:e[+-]?\d{1,3})?"
_LOSS_SCALE = re.compile(
    rf"Attempted loss scale: (?P<tried>{_SCALE})(?:, reducing to (?P<now>{_SCALE}))?"
    rf"|[Rr]educ\w+ (?:dynamic )?loss scale (?:from {_SCALE} )?to (?P<to>{_SCALE})"
)
_ALONE = re.compile(
    r"\W{0,8}(?:(?:train(?:ing)?|val(?:id(?:ation)?)?\.?|eval|test|avg|mean|epoch)[ _/-])?"
    r"(?:loss|ppl|perplexity)\b",
    re.I,
)
_REPR = re.compile(r"(?:^|[\s=:])[A-Za-z_][\w.]{0,60}\([A-Za-z_]\w{0,60}=")
"""A printed object or call (`Namespace(lr=0.1`): settings, not measurements."""
_PERPLEXITY = re.compile(r"\W{0,8}(?:ppl|perplexity)\b", re.I)
_REACHED = re.compile(r"'(?P<name>[\w/.-]{1,80})' reached (?P<value>-?[\d.]{1,20}|nan|inf)")
"""The message of Lightning's checkpoint callback."""
_COUNTED = frozenset({"num_updates", "step", "global_step"})
_DIGITS = str.maketrans("123456789", "000000000")
_SHAPE = 160
_BARREN = 4096
"""Shapes of lines without metrics that are remembered, by their first 160 characters."""
_EVAL_NAMES = {"loss": "eval_loss", "accuracy": "eval_accuracy"}

Place = tuple[int, int]
"""Line number and byte offset."""


@lru_cache(maxsize=256)
def _kinds(readings: Sequence[Reading], phase: str, rank: int | None) -> tuple[list[Kind], list[int]]:
    """Return what the numbers of alike lines are, the first of each name, and which columns these are."""
    kinds: dict[str, Kind] = {}
    kept: list[int] = []
    for column, reading in enumerate(readings):
        name = _EVAL_NAMES.get(reading.name, reading.name) if phase == "eval" else reading.name
        if name not in kinds:
            kept.append(column)
            kinds[name] = name, reading.unit, "eval" if name.startswith("eval_") else phase, rank
    return list(kinds.values()), kept


def _sized(place: Position) -> bool:
    """Say whether the only counter is a batch without an end: `batch 32 lr 1e-3` are settings and no progress."""
    counted = place.step if place.batch is None else place.batch
    return counted is not None and not (place.strong or place.total or place.length or place.epoch is not None)


class Segment(NamedTuple):
    """One line, or one state of a progress bar, with its prefix taken apart."""

    message: str
    line: int
    offset: int
    time: int | None
    rank: int | None


class MetricReader:
    """Collects the metrics of one source."""

    def __init__(self, document: TextDocument) -> None:
        self._document = document
        self.columns = MetricColumns()
        self._counter = StepCounter()
        self._speeds = MetricColumns()
        """Step times of progress bars, which are means: they count where no line states the time of a step."""
        self._bars = BarStates(self._counter)
        self._bar_templates = BarTemplates()
        self._dict_rows: list[list[int]] = []
        self._plan: Segment | None = None
        self._epochs: Segment | None = None
        self._direct_step_time = False
        self._templates = LineTemplates()
        self._last: LineTemplate | BarTemplate | None = None
        self._barren: set[str] = set()
        self._titles = EpochTitles()
        self._left = TimeLeft()
        self.idle = False
        """Whether the line that was read last said nothing, and no line of its shape will."""

    def read(self, segment: Segment) -> bool:
        """Take the metrics of one line; False when it holds none."""
        message = segment.message
        self.idle = False
        like = self._templates.read(message)
        self._last = None if like is None or "eta" in message or "ETA" in message else self._templates.latest
        if like is not None:
            return self._line(segment, *like)
        if "%" in message and "|" in message:
            drawn = bar(message)
            if drawn is not None:
                return self._bar(segment, drawn)
        found = metric_dict(message)
        if found is not None:
            return self._dict(segment, found)
        scale = _LOSS_SCALE.search(message[:600])
        if scale is not None:
            value = float(scale["now"] or scale["to"] or scale["tried"])
            self._add(segment, "loss_scale", value, None, self._counter.last_step, phase="train")
            return True
        reached = _REACHED.search(message)
        if reached is not None:
            return self._reached(segment, reached)
        served = serving(message)
        if served:
            for pair in served:
                self._add(segment, pair.name, pair.value, pair.unit, None, phase="inference")
            return True
        timed = timers(message) or memory_lines(message)
        if timed:
            self._pairs(segment, timed, self._counter.last_step, phase="train")
            return True
        return self._first_of_its_shape(segment)

    def look(self, form: PrefixForm | None) -> Look | None:
        """Return the look of the line that was just read, with the form of its prefix, if such can be read together."""
        template = self._last
        if form is None or template is None:
            return None
        if isinstance(template, BarTemplate):
            return Look(template, form)
        if self._titles.seen or template is not self._templates.latest:
            return None
        counters = [part for part in template.parts if isinstance(part, str)]
        if not {"step", "batch"} & set(counters):
            return None
        return Look(template, form) if len(set(counters)) == len(counters) else None

    def read_alike(
        self, lines: Lines, *, places: Sequence[Place], times: Sequence[int | None], rank: int | None
    ) -> None:
        """Take the metrics of many alike lines or states of a bar."""
        if isinstance(lines.template, BarTemplate):
            self._bars_alike(lines.template.bar, lines, places=places, times=times, rank=rank)
            return
        place = lines.template.place()
        numbers = [line for line, _ in places]
        steps = self._counter.steps(place, lines.counters)
        phase = "eval" if place.evaluation else "train"
        self._document.note_phase(numbers[0], phase)
        if phase == "train":
            self._document.note_steps(numbers, steps)
        self._extend(lines, places=places, times=times, steps=steps, phase=phase, rank=rank)

    def _bars_alike(
        self, drawn: Bar, lines: Lines, *, places: Sequence[Place], times: Sequence[int | None], rank: int | None
    ) -> None:
        drawn = self._bars.placed(drawn)
        if drawn.kind == "eval":
            self._document.note_phase(places[0][0], "eval")
            return
        new, steps = self._bars.steps(drawn, lines.counters, len(self._dict_rows))
        if not new:
            return
        if len(new) < len(places):
            lines, places, times = lines.rows(new), [places[row] for row in new], [times[row] for row in new]
        begun = np.flatnonzero(lines.counters["done"] + lines.counters.get("epoch", 0)).tolist()
        self._document.note_steps([places[row][0] for row in begun], [steps[row] for row in begun])
        if begun and (drawn.description or self.columns.has("loss")):
            self._document.note_phase(places[begun[0]][0], "train")
        (speed, *others), pace = lines.readings, lines.values[:, 0]
        moved = np.flatnonzero(np.isfinite(pace) & (pace != 0)).tolist()
        self._speeds.extend(
            [(speed.name, speed.unit, "train", rank)],
            pace[moved, None],
            lines=[places[row][0] for row in moved],
            offsets=[places[row][1] for row in moved],
            times=[times[row] for row in moved],
            steps=[steps[row] for row in moved],
        )
        lines = lines._replace(readings=tuple(others), values=lines.values[:, 1:])
        self._extend(lines, places=places, times=times, steps=steps, phase="train", rank=rank)

    def _extend(
        self,
        lines: Lines,
        *,
        places: Sequence[Place],
        times: Sequence[int | None],
        steps: Sequence[int | None],
        phase: str,
        rank: int | None,
    ) -> None:
        kinds, kept = _kinds(lines.readings, phase, rank)
        self._direct_step_time |= any(kind[0] == "step_time" for kind in kinds)
        self.columns.extend(
            kinds,
            lines.values if len(kept) == len(lines.readings) else lines.values[:, kept],
            lines=[line for line, _ in places],
            offsets=[offset for _, offset in places],
            times=times,
            steps=steps,
        )

    def finish(self, out: EventBuilder) -> None:
        """Settle the steps that become known only at the end and hand everything over."""
        known = self.columns.steps([rows[0] for rows in self._dict_rows if rows])
        rising = all(a is not None and b is not None and a < b for a, b in pairwise(known))
        steps = None if rising and len(known) > 1 else logged_steps(self._bars.marks, len(self._dict_rows))
        for rows, step in zip(self._dict_rows, steps or (), strict=False):
            for row in rows:
                self.columns.set_step(row, step)
        trained = self._bars.described or self.columns.has("loss")
        self.columns.flush(out, rank=self._document.rank)
        if not self._direct_step_time and trained:
            self._speeds.flush(out, rank=self._document.rank)
            self.columns.dropped += self._speeds.dropped
        self._plans(out, trained=trained)

    def _plans(self, out: EventBuilder, *, trained: bool) -> None:
        """What the counters say the run was to do, as settings."""
        counter = self._counter
        for name, value, segment in (
            ("max_steps", (counter.planned() or self._left.planned()) if trained else None, self._plan),
            ("steps_per_epoch", counter.length, self._plan),
            ("epochs", counter.epochs, self._epochs),
        ):
            if value and segment:
                out.add(
                    kind="config",
                    name=name,
                    line=segment.line,
                    offset=segment.offset,
                    time=segment.time,
                    rank=segment.rank,
                    value=float(value),
                    text=str(value),
                    attrs={"key": name, "value": value, "from": "progress"},
                )

    def _first_of_its_shape(self, segment: Segment) -> bool:
        """Look at a line that is like none before it; learn its shape when it holds metrics."""
        message = segment.message
        if self._titles.note(message):
            return False
        shape = message[:_SHAPE].translate(_DIGITS)
        self.idle = shape in self._barren
        if self.idle:
            return False
        if not _REPR.search(message) and self._holds_metrics(segment):
            return True
        if len(self._barren) < _BARREN:
            self._barren.add(shape)
        return False

    def _holds_metrics(self, segment: Segment) -> bool:
        message = segment.message
        place = position(message)
        if not place.own and not _ALONE.match(message):
            return False
        found = slots(message) if place.step is not None or place.batch is not None else of_epochs(slots(message))
        if not any(slot.reading.known for slot in found) and not (len(found) > 1 and place.strong):
            return False
        if _sized(place) and {slot.reading.name for slot in found if slot.reading.known} == {"learning_rate"}:
            return False
        values = [slot.reading.pair(message[slot.start : slot.end]) for slot in found]
        self._templates.learn(message, place, found)
        return self._line(segment, place, [pair for pair in values if pair is not None])

    def _line(self, segment: Segment, place: Position, found: list[Pair]) -> bool:
        place = self._titles.placed(segment.message, place)
        step = self._counter.step(place)
        evaluation = place.evaluation
        bare_epoch = place.epoch is not None and place.step is None and place.batch is None
        if bare_epoch and not evaluation and not self._counter.steps_seen:
            self._add(segment, "epoch", float(place.epoch or 0), None, step, phase="train")
        if place.own:
            self._remember(segment, place.total or place.length, place.epochs)
            if step is not None and not evaluation and (place.step is not None or place.batch is not None):
                self._document.note_step(segment.line, step)
                self._left.note(segment.message, step)
                self._plan = self._plan or segment
        elif _PERPLEXITY.match(segment.message):
            evaluation = True
        elif not evaluation:
            step = None
        phase = "eval" if evaluation else "train"
        self._document.note_phase(segment.line, phase)
        self._pairs(segment, found, step, phase=phase)
        return True

    def _pairs(self, segment: Segment, found: list[Pair], step: int | None, *, phase: str) -> None:
        """Add the metrics of one line, the first of each name."""
        seen: set[str] = set()
        for name, value, unit, _known in found:
            if phase == "eval":
                name = _EVAL_NAMES.get(name, name)  # noqa: PLW2901
            if name in seen:
                continue
            seen.add(name)
            if name == "step_time":
                self._direct_step_time = True
            of_eval = name.startswith("eval_")
            self._add(segment, name, value, unit, step, phase="eval" if of_eval else phase)

    def _reached(self, segment: Segment, found: re.Match[str]) -> bool:
        step = self._counter.step(position(segment.message))
        pair = entry(found["name"]).pair(found["value"].rstrip("."))
        if pair is not None:
            self._pairs(segment, [pair], step, phase="eval" if pair.name.startswith("eval_") else "train")
        return pair is not None

    def _dict(self, segment: Segment, found: dict[str, float]) -> bool:
        summary = is_summary(found)
        counted = found.get("num_updates", found.get("step", found.get("global_step")))
        counter = self._counter
        if counted is not None and abs(counted) < 2**53:
            counter.last_step = int(counted)
            counter.steps_seen = True
            self._document.note_step(segment.line, int(counted))
        evaluation = any(key.startswith("eval_") for key in found)
        phase = "eval" if evaluation else "train"
        self._document.note_phase(segment.line, phase)
        first = len(self.columns)
        for key, value in found.items():
            if key in _COUNTED:
                continue
            reading = entry(key)
            if summary and not key.startswith("eval_"):
                name = f"summary.{key}" if key.endswith("loss") else key
                self._add(segment, name, value, None, counter.last_step, phase=phase)
            else:
                pair = reading.pair(repr(value))
                if pair is not None:
                    self._add(segment, pair.name, pair.value, pair.unit, counter.last_step, phase=phase)
        if counted is None and not summary and not evaluation:
            self._dict_rows.append(list(range(first, len(self.columns))))
        return True

    def _bar(self, segment: Segment, drawn: Bar) -> bool:
        drawn = self._bars.placed(drawn)
        if drawn.kind == "eval":
            self._document.note_phase(segment.line, "eval")
        step = self._bars.step(drawn, len(self._dict_rows)) if drawn.kind == "train" else None
        if step is None:
            return False
        self._last = self._bar_templates.of(segment.message, drawn)
        self._drawn(segment, drawn, step)
        if drawn.rate:
            reading = rate(drawn.unit or "it/s")
            pair = reading.pair(str(drawn.rate))
            if pair is not None:
                self._speeds.add((pair.name, pair.unit, "train", segment.rank), pair.value, segment, step)
        self._pairs(segment, pairs(drawn.postfix), step, phase="train")
        return True

    def _drawn(self, segment: Segment, drawn: Bar, step: int) -> None:
        """Note where training is, as a state of its bar says."""
        if drawn.done or drawn.epoch:
            self._document.note_step(segment.line, step)
            if drawn.description or self.columns.has("loss"):
                self._document.note_phase(segment.line, "train")
        self._remember(segment, drawn.total, drawn.epochs)

    def _remember(self, segment: Segment, total: int | None, epochs: int | None) -> None:
        if total and self._plan is None:
            self._plan = segment
        if epochs and self._epochs is None:
            self._epochs = segment

    def _add(
        self, segment: Segment, name: str, value: float, unit: str | None, step: int | None, *, phase: str
    ) -> None:
        self.columns.add((name, unit, phase, segment.rank), value, segment, step)
