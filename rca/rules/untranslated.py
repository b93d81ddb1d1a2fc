"""The texts of the knowledge base in other languages: what is translated, what is not yet, what no longer stands there.

`python -m rca.rules.untranslated zh [KIND]` counts the texts by kind and lists those without a translation.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rca.rules.advice_schema import Remedy
from rca.rules.languages import translations
from rca.rules.load import Knowledge, load, remedies
from rca.rules.schema import Cause, ExperimentRule

_KEPT = re.compile(
    r"`[^`]*`|\{[a-zA-Z0-9_.]+\}|https?://[^\s)]+|--[a-z][a-z0-9-]*|[A-Za-z0-9.]*[A-Za-z0-9]_[A-Za-z0-9_.]*[A-Za-z0-9]"
)
_FILLED_ONLY = re.compile(r"(?:\{[a-zA-Z0-9_.]+\}|[\s\W])*")


@dataclass(frozen=True)
class Text:
    """One text of the knowledge base as a reader meets it."""

    kind: str
    """Where it stands: `cause.title`, `fix.action`, `experiment.question`, ..."""
    area: str
    """Name of the file that translates it: the domain of its cause, or the kind of file."""
    text: str


def texts(knowledge: Knowledge, advice: Iterable[Remedy]) -> Iterator[Text]:
    """Yield every text once, in the order of the files; what is nothing but names in braces has no words."""
    seen = set()
    for item in _all(knowledge, advice):
        if item.text not in seen and not _FILLED_ONLY.fullmatch(item.text):
            seen.add(item.text)
            yield item


def kept_parts(text: str) -> Counter[str]:
    """Count what no translation may change: names in braces, code in backticks, addresses, options, identifiers."""
    return Counter(_KEPT.findall(text))


def untranslated(wanted: Iterable[Text], translated: Mapping[str, str]) -> list[Text]:
    """Return the texts that have no translation."""
    return [item for item in wanted if not translated.get(item.text)]


def stale(wanted: Iterable[Text], translated: Mapping[str, str]) -> list[str]:
    """Return the English texts that are translated and no longer stand in the knowledge base."""
    return sorted(translated.keys() - {item.text for item in wanted})


def _all(knowledge: Knowledge, advice: Iterable[Remedy]) -> Iterator[Text]:
    for cause in knowledge.causes.values():
        for kind, text in _cause_texts(cause):
            yield Text(kind, cause.domain, text)
    for experiment in knowledge.experiments.values():
        for kind, text in _experiment_texts(experiment):
            yield Text(kind, "experiments", text)
    for record in knowledge.records.values():
        yield Text("record.says", "records", record.says)
    for remedy in advice:
        yield Text("remedy.title", "remedies", remedy.title)
        yield Text("remedy.costs", "remedies", remedy.costs)
    for reason in knowledge.untestable.values():
        yield Text("untestable", "taxonomy", reason)
    for signature in knowledge.signatures.values():
        yield Text("signature.says", "signatures", signature.says)


def _cause_texts(cause: Cause) -> Iterator[tuple[str, str]]:
    yield "cause.title", cause.title
    yield "cause.sentence", cause.sentence
    yield "cause.summary", cause.summary
    for rule in (*cause.evidence, *cause.contradicts):
        yield "evidence.says", rule.says
    for fix in cause.fixes:
        for name in ("action", "why", "risk", "verify"):
            yield f"fix.{name}", getattr(fix, name)
    for text in cause.decide:
        yield "cause.decide", text
    for text in cause.falsepositives:
        yield "cause.falsepositive", text


def _experiment_texts(rule: ExperimentRule) -> Iterator[tuple[str, str]]:
    for name in ("title", "question", "says", "treatment", "planted"):
        yield f"experiment.{name}", getattr(rule, name)
    if rule.loop is not None:
        yield "experiment.figure", rule.loop.figure


def _print_open(language: str, kinds: Sequence[str]) -> None:
    wanted = list(texts(load(), remedies()))
    translated = translations(language)
    missing = untranslated(wanted, translated)
    total, absent = (Counter(item.kind for item in items) for items in (wanted, missing))
    for kind in total:
        print(f"{kind:22} {total[kind] - absent[kind]:5} of {total[kind]:5}")
    for item in missing:
        if not kinds or item.kind in kinds:
            print(f"{item.area}: {item.kind}: {item.text}")
    for text in stale(wanted, translated):
        print(f"no longer in the knowledge base: {text}")


if __name__ == "__main__":
    _print_open(sys.argv[1], sys.argv[2:])
