"""Reads the metrics of one text source line by line and gives each point its step."""

from __future__ import annotations

import re
from typing import NamedTuple

from rca.events import EventBuilder
from rca.ingest.text_document import TextDocument
from rca.ingest.training_metrics.bars import Bar, bar
from rca.ingest.training_metrics.columns import MetricColumns
from rca.ingest.training_metrics.counters import StepCounter, position
from rca.ingest.training_metrics.dicts import is_summary, logged_steps, metric_dict
from rca.ingest.training_metrics.pairs import Pair, pairs, plain, rate

TRIGGERS = (
    r"(?i)(?:loss|\bsteps?|iter(?:ation)?s?|epoch|\bep|\btrl|\btel|\bs|ppl|updates?|batch)[\w()]{0,12}['\"]?[ \t:=#|\[(]{0,16}['\"(\[]{0,2}"
    r"(?:(?:np\.)?float\d\d\()?[-+]?(?:\d|nan|inf)",
    r"\d%(?: Completed)? ?\|",
    r"(?i)\d[ =:>]{0,3}\[?[ \d/]{0,12}\]? ?\|?loss",
    r"(?i)(?:reducing|reduce)\b.{0,40}loss scale|loss scale: [0-9.]+, (?:reducing|but)",
)
"""Patterns of lines that may hold metrics."""

_LOSS_SCALE = re.compile(
    r"Attempted loss scale: (?P<tried>[\d.e+]{1,20})(?:, reducing to (?P<now>[\d.e+]{1,20}))?"
    r"|[Rr]educ\w+ (?:dynamic )?loss scale (?:from [\d.e+-]{1,20} )?to (?P<to>[\d.e+-]{1,20})"
)
_ALONE = re.compile(
    r"\W{0,8}(?:(?:train(?:ing)?|val(?:id(?:ation)?)?|eval|test|avg|mean|epoch)[ _/-])?(?:loss|ppl|perplexity)\b", re.I
)
_REPR = re.compile(r"(?:^|[\s=:])[A-Za-z_][\w.]{0,60}\([A-Za-z_]\w{0,60}=")
"""A printed object or call (`Namespace(lr=0.1`): settings, not measurements."""
_EVAL_NAMES = {"loss": "eval_loss", "accuracy": "eval_accuracy"}


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
        self._bar_total: int | None = None
        self._bar_done: tuple[str, int, int] | None = None
        self._bar_times: list[tuple[Segment, Pair, int | None]] = []
        self._bars: list[tuple[int, int]] = []
        self._dict_rows: list[list[int]] = []
        self._unstepped = 0
        self._plan: tuple[int, Segment] | None = None
        self._epochs: tuple[int, Segment] | None = None
        self._direct_step_time = False

    def read(self, segment: Segment) -> bool:
        """Take the metrics of one line; False when it holds none."""
        message = segment.message
        if "%" in message and "|" in message:
            drawn = bar(message)
            if drawn is not None:
                return self._bar(segment, drawn)
        found = metric_dict(message)
        if found is not None:
            return self._dict(segment, found)
        scale = _LOSS_SCALE.search(message[:600])
        if scale is not None:
            value = scale["now"] or scale["to"] or scale["tried"]
            self._add(segment, plain("loss_scale", float(value.rstrip("."))), self._counter.last_step, phase="train")
            return True
        return self._line(segment)

    def finish(self, out: EventBuilder) -> None:
        """Settle the steps that become known only at the end and hand everything over."""
        steps = logged_steps(self._bars, len(self._dict_rows)) if self._unstepped else None
        if steps is not None:
            for rows, step in zip(self._dict_rows, steps, strict=True):
                self.columns.set_steps(rows, [step] * len(rows))
        if not self._direct_step_time:
            for segment, pair, step in self._bar_times:
                self._add(segment, pair, step, phase="train")
        self.columns.flush(out, rank=self._document.rank)
        planned = self._counter.planned() or (self._plan[0] if self._plan else None)
        for name, value, segment in (
            ("max_steps", planned, self._plan and self._plan[1]),
            ("num_epochs", self._counter.epochs, self._epochs and self._epochs[1]),
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

    def _line(self, segment: Segment) -> bool:
        message = segment.message
        if _REPR.search(message):
            return False
        place = position(message)
        alone = not place.own
        if alone and not _ALONE.match(message):
            return False
        found = list(pairs(message))
        if not found or not (any(pair.known for pair in found) or len(found) > 2):
            return False
        step = self._counter.step(place)
        if place.own:
            self._remember(segment, place.total or place.length, place.epochs)
        if step is not None and not place.evaluation and (place.step is not None or place.batch is not None):
            self._document.note_step(segment.line, step)
        evaluation = place.evaluation
        phase = "eval" if evaluation else "train"
        self._document.note_phase(segment.line, phase)
        seen: set[str] = set()
        for pair in found:
            name = _EVAL_NAMES.get(pair.name, pair.name) if evaluation else pair.name
            if name in seen:
                continue
            seen.add(name)
            self._direct_step_time |= name == "step_time"
            self._add(segment, pair._replace(name=name), None if alone and not evaluation else step, phase=phase)
        return True

    def _dict(self, segment: Segment, found: dict[str, float]) -> bool:
        summary = is_summary(found)
        step_of = found.get("num_updates", found.get("step", found.get("global_step")))
        counter = self._counter
        if step_of is not None and step_of == step_of and abs(step_of) < 2**53:
            step: int | None = int(step_of)
            counter.last_step = step
            counter.steps_seen = True
            self._document.note_step(segment.line, int(step_of))
        else:
            step = counter.last_step
        evaluation = any(key.startswith("eval_") for key in found)
        phase = "eval" if evaluation else "train"
        self._document.note_phase(segment.line, phase)
        first = len(self.columns)
        for key, value in found.items():
            if key in {"num_updates", "step", "global_step"}:
                continue
            pair = plain(key, value)
            if summary and not key.startswith("eval_"):
                pair = pair._replace(name=f"summary.{key}" if key.endswith("loss") else key)
            self._add(segment, pair, step, phase=phase)
        if step_of is None and not summary and not evaluation:
            self._dict_rows.append(list(range(first, len(self.columns))))
            self._unstepped += 1
        return True

    def _bar(self, segment: Segment, drawn: Bar) -> bool:
        if drawn.kind == "train" and not drawn.description:
            # A bar without a name that counts to another number than the training bar is the evaluation inside it.
            if self._bar_total is None or (self._bar_done is not None and self._bar_done[1] >= self._bar_done[2]):
                self._bar_total = drawn.total
            if drawn.total != self._bar_total:
                drawn = drawn._replace(kind="eval")
        if drawn.kind == "eval":
            self._document.note_phase(segment.line, "eval")
        if drawn.kind != "train":
            return False
        key = (drawn.description, drawn.done, drawn.total)
        if key == self._bar_done:
            return False
        self._bar_done = key
        counter = self._counter
        epoch = drawn.epoch
        if epoch is not None and counter.first_epoch is None:
            counter.first_epoch = epoch
        if drawn.step is not None:
            step = drawn.step
        elif epoch is not None:
            base = 0 if counter.first_epoch == 0 else 1
            step = max(epoch - base, 0) * drawn.total + drawn.done
        else:
            step = drawn.done
            self._bars.append((len(self._dict_rows), drawn.done))
        counter.last_step = step
        counter.steps_seen = True
        if drawn.done or epoch:
            self._document.note_step(segment.line, step)
            self._document.note_phase(segment.line, "train")
        if epoch is not None:
            counter.length = drawn.total
        counter.epochs = drawn.epochs or counter.epochs
        self._remember(segment, drawn.total, drawn.epochs)
        if epoch is None:
            counter.total = drawn.total
        if drawn.rate:
            self._bar_times.append((segment, rate(drawn.rate, drawn.unit or "it/s"), step))
        seen: set[str] = set()
        for pair in pairs(drawn.postfix):
            if pair.name not in seen:
                seen.add(pair.name)
                self._direct_step_time |= pair.name == "step_time"
                self._add(segment, pair, step, phase="eval" if pair.name.startswith("eval_") else "train")
        return True

    def _remember(self, segment: Segment, total: int | None, epochs: int | None) -> None:
        if total and self._plan is None:
            self._plan = (total, segment)
        if epochs and self._epochs is None:
            self._epochs = (epochs, segment)

    def _add(self, segment: Segment, pair: Pair, step: int | None, *, phase: str) -> None:
        self.columns.add(
            pair.name,
            pair.value,
            line=segment.line,
            offset=segment.offset,
            time=segment.time,
            step=step,
            rank=segment.rank,
            unit=pair.unit,
            phase=phase,
        )
