"""Takes every rule of the causes away in turn: a rule that no case misses is not held by any test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rca.hypotheses.match import View, met_rules
from rca.pipeline import observe, order
from rca.rules.load import Knowledge
from rca.rules.schema import Cause, EvidenceRule
from rca.rules.testing import NamedCase, cases_of


@dataclass(frozen=True)
class ObservedCase:
    """A case whose run was read once, so that many variants of the rules can judge it."""

    named: NamedCase
    view: View
    met: Mapping[str, frozenset[str]]
    """Cause -> ids of its rules that are met."""
    supported: frozenset[str]
    """Causes for which some evidence is met: the others stay out of the ranking whatever is taken away."""

    def passes(self, knowledge: Knowledge, *, changed: Mapping[str, Cause]) -> bool:
        """Say whether the case comes out as it should when some causes are changed."""
        causes = {name: cause for name, cause in knowledge.causes.items() if name in self.supported}
        variant = replace(knowledge, causes={**causes, **changed})
        own = changed.get(self.named.cause)
        met = self.met[self.named.cause] if own is None else met_rules(own, self.view)
        return not self.named.faults(order(self.view, variant), met)

    def concerned(self, cause: Cause, rule: EvidenceRule) -> bool:
        """Say whether the rule can make a difference here: it is met, or required and so keeps its cause away."""
        return rule.required or rule.id in self.met[cause.id]


@dataclass(frozen=True)
class Unheld:
    """A rule that can be taken away, or an exchange of two causes, without a case that fails."""

    cause: str
    what: str
    """`evidence <id>`, `contradicts <id>` or `exchange with <cause>`."""


def observed_cases(knowledge: Knowledge, causes: Iterable[Cause] | None = None) -> tuple[ObservedCase, ...]:
    """Read the cases of causes (all, where none are given) once; those that fail with the rules as they are go."""
    found = []
    for cause in knowledge.causes.values() if causes is None else causes:
        for named in cases_of(cause, knowledge):
            with named.folder() as run:
                view = observe(run, knowledge)
            met = {name: met_rules(other, view) for name, other in knowledge.causes.items()}
            supported = frozenset(
                name for name, other in knowledge.causes.items() if any(rule.id in met[name] for rule in other.evidence)
            )
            case = ObservedCase(named=named, view=view, met=met, supported=supported)
            if case.passes(knowledge, changed={}):
                found.append(case)
    return tuple(found)


def unheld_rules(cause: Cause, knowledge: Knowledge, cases: Sequence[ObservedCase]) -> Iterator[Unheld]:
    """Yield the rules of a cause that can be taken away without a case of any cause that fails."""
    near = sorted(cases, key=lambda case: case.named.cause != cause.id)
    for side in ("evidence", "contradicts"):
        rules: tuple[EvidenceRule, ...] = getattr(cause, side)
        for rule in rules:
            rest = tuple(other for other in rules if other is not rule)
            changed = {cause.id: cause.model_copy(update={side: rest})}
            if all(case.passes(knowledge, changed=changed) for case in near if case.concerned(cause, rule)):
                yield Unheld(cause.id, f"{side} {rule.id}")


def unheld_exchanges(cause: Cause, knowledge: Knowledge, cases: Sequence[ObservedCase]) -> Iterator[Unheld]:
    """Yield the causes that can exchange files with this one without a case of the two that fails."""
    for other in knowledge.causes.values():
        if other.id <= cause.id:
            continue
        changed = {
            cause.id: other.model_copy(update={"id": cause.id}),
            other.id: cause.model_copy(update={"id": other.id}),
        }
        theirs = (case for case in cases if case.named.cause in changed)
        if all(case.passes(knowledge, changed=changed) for case in theirs):
            yield Unheld(cause.id, f"exchange with {other.id}")
