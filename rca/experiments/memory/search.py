"""The remedies for a step that does not fit, alone and combined, until the cheapest combination that fits is found.

What is cheap is data: `knowledge/remedies.yaml` ranks each change by what it asks of the user, and the prices of a
combination add up. A trace costs about a second, so combinations that cannot fit by arithmetic are not traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import NamedTuple

from rca.errors import ExperimentError
from rca.experiments.memory.arithmetic import Peak, least, peak_of, room
from rca.experiments.memory.question import MemoryQuestion, apply, traced
from rca.rules.advice_schema import Remedy

MOST = 3
"""Changes in one combination; with more, a user chooses another model or card."""
MORE_ROWS = 2
"""Combinations that fit, shown beside the cheapest."""
TRACES = 24
"""Traces of one search at most: about as many CPU seconds."""
AT_ONCE = 2
"""Traces that the child carries out at the same time."""

Trace = Mapping[str, float]
Tracer = Callable[[Sequence[MemoryQuestion]], Sequence[Trace]]
"""Traces steps; raises ExperimentError where one cannot be traced."""


class Choice(NamedTuple):
    """Changes that are made together."""

    remedies: tuple[tuple[Remedy, int], ...]
    """Each with how often it is made."""
    question: MemoryQuestion

    @property
    def price(self) -> float:
        """What it asks of the user."""
        return sum(remedy.price + times - 1 for remedy, times in self.remedies)

    @property
    def label(self) -> str:
        """The changes in words."""
        return " + ".join(fill(remedy.title, self.question) for remedy, _ in self.remedies)

    @property
    def ids(self) -> frozenset[tuple[str, int]]:
        """What tells two choices apart."""
        return frozenset((remedy.id, times) for remedy, times in self.remedies)

    @property
    def costs(self) -> str:
        """Their price in words."""
        return "; ".join(remedy.costs for remedy, _ in self.remedies)

    @property
    def paste(self) -> str:
        """The lines to paste, one a change."""
        return "\n".join(fill(remedy.paste, self.question) for remedy, _ in self.remedies)


class Row(NamedTuple):
    """One way to run the step."""

    choice: Choice
    peak: Peak
    fits: bool


@dataclass
class Search:
    """What is known of the steps while the cheapest choice that fits is looked for."""

    base: MemoryQuestion
    capacity: float
    tracer: Tracer
    remedies: Sequence[Remedy]
    known: dict[MemoryQuestion, Trace] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """Return the run's own step, each remedy alone, and the cheapest combinations that fit, in order of price."""
        base = Choice((), self.base)
        self._learn([self.base])
        options = self._options()
        # All halvings are options; as rows of their own the first and the last say enough.
        alone = [option for option in options if option[1] == 1 or self._last(option, options)]
        alone = [option for option in alone if option[1] <= 2 or not self._hopeless(self._choice([option]))]
        singles = [Choice((option,), question) for option in alone if (question := self._apply([option]))]
        self._learn([choice.question for choice in singles])
        found = [self._row(choice) for choice in (base, *singles)]
        fitting = [row for row in found if row.fits]
        limit = min((row.choice.price for row in fitting), default=float("inf"))
        if not found[0].fits:
            shown = {row.choice.ids for row in found}
            found += self._combined(options, limit, shown)
        return sorted(found, key=lambda row: (row.choice.price, len(row.choice.remedies)))

    def _combined(
        self, options: Sequence[tuple[Remedy, int]], limit: float, shown: Set[frozenset[tuple[str, int]]]
    ) -> list[Row]:
        """The first combinations (and repetitions of one remedy) that fit, none dearer than what is known to fit."""
        found: list[Row] = []
        waiting: list[Choice] = []
        for choice in self._combinations(options):
            if choice.price >= limit or len(found) > MORE_ROWS:
                break
            if choice.ids in shown or any(row.choice.ids <= choice.ids for row in found) or self._hopeless(choice):
                continue
            if traced(choice.question) in self.known:
                found += self._fitting([choice])
                continue
            if found or len(self.known) >= TRACES:
                continue  # beside the first, only what needs no further trace
            waiting.append(choice)
            if len(waiting) >= AT_ONCE:
                found += self._fitting(waiting)
                waiting = []
        if not found:
            found += self._fitting(waiting)
        return sorted(found, key=lambda row: row.choice.price)[: MORE_ROWS + 1]

    def _fitting(self, choices: Sequence[Choice]) -> list[Row]:
        self._learn([choice.question for choice in choices])
        return [row for row in map(self._row, choices) if row.fits]

    def _combinations(self, options: Sequence[tuple[Remedy, int]]) -> list[Choice]:
        made = list(self._products(options))
        return sorted(made, key=lambda choice: (choice.price, len(choice.remedies)))

    def _products(self, options: Sequence[tuple[Remedy, int]]) -> Iterator[Choice]:
        by_remedy: dict[str, list[tuple[Remedy, int]]] = {}
        for option in options:
            by_remedy.setdefault(option[0].id, []).append(option)
        for size in range(1, MOST + 1):
            for names in combinations(by_remedy, size):
                changed = [name for key in names for name in by_remedy[key][0][0].change]
                if len(changed) != len(set(changed)):
                    continue
                for picked in product(*(by_remedy[key] for key in names)):
                    question = self._apply(picked)
                    if question is not None:
                        yield Choice(tuple(picked), question)

    def _options(self) -> list[tuple[Remedy, int]]:
        """Return every remedy that the run can take, as often as it can be made."""
        return [
            (remedy, times)
            for remedy in self.remedies
            if self.base.task in remedy.tasks and applies(remedy, self.base)
            for times in range(1, remedy.repeat + 1)
            if self._apply([(remedy, times)]) is not None
        ]

    def _last(self, option: tuple[Remedy, int], options: Sequence[tuple[Remedy, int]]) -> bool:
        return option[1] == max(times for remedy, times in options if remedy.id == option[0].id)

    def _choice(self, picked: Sequence[tuple[Remedy, int]]) -> Choice:
        return Choice(tuple(picked), self._apply(picked) or self.base)

    def _apply(self, picked: Sequence[tuple[Remedy, int]]) -> MemoryQuestion | None:
        """Return the step with these changes; None where one of them changes nothing or makes no step."""
        question = self.base
        for remedy, times in picked:
            for _ in range(times):
                try:
                    following = apply(question, dict(remedy.change))
                except ExperimentError:
                    return None
                if any(getattr(following, name) == getattr(question, name) for name in _factors(remedy)):
                    return None
                if following == question:
                    return None
                question = following
        return question

    def _row(self, choice: Choice) -> Row:
        peak = peak_of(choice.question, self.known[traced(choice.question)])
        return Row(choice, peak, peak.total <= room(choice.question, self.capacity))

    def _learn(self, questions: Sequence[MemoryQuestion]) -> None:
        new = [key for key in dict.fromkeys(map(traced, questions)) if key not in self.known]
        self.known |= dict(zip(new, self.tracer(new), strict=True)) if new else {}

    def _hopeless(self, choice: Choice) -> bool:
        """Whether arithmetic alone shows that the choice cannot fit."""
        question, limit = choice.question, room(choice.question, self.capacity)
        if least(question, self.known[traced(self.base)]) > limit:
            return True
        key = traced(question)
        for other, trace in self.known.items():
            tokens, more = key.batch * key.seq, other.batch * other.seq
            same = key.model_copy(update={"batch": other.batch, "seq": other.seq}) == other
            if not same or tokens >= more or key.batch > other.batch or key.seq > other.seq:
                continue
            # What is not fixed is a sum of parts that shrink at most like the number of tokens, or, where attention
            # keeps its scores, like the number of tokens times the length.
            share = tokens / more * (key.seq / other.seq if key.attention == "eager" else 1.0)
            peak = peak_of(question.model_copy(update={"batch": other.batch, "seq": other.seq}), trace)
            fixed = peak.weights + peak.optimizer
            if fixed + (peak.total - fixed) * share > limit:
                return True
        return False


def applies(remedy: Remedy, question: MemoryQuestion) -> bool:
    """Whether the change makes sense for the run."""
    return all(any(_meets(getattr(question, name), want) for want in wanted) for name, wanted in remedy.when.items())


def fill(text: str, question: MemoryQuestion) -> str:
    """Return the text with the sizes of the step in place of their names in braces; other braces stay."""
    for name, value in question.model_dump().items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def _meets(value: object, wanted: object) -> bool:
    if isinstance(wanted, str) and wanted[:1] in "<>" and isinstance(value, (int, float)):
        limit = float(wanted[1:])
        return value > limit if wanted[0] == ">" else value < limit
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def _factors(remedy: Remedy) -> list[str]:
    return [name for name, value in remedy.change.items() if isinstance(value, str) and value[:1] == "x"]
