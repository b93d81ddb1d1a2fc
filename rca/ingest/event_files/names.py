"""What the tags of an event file are called in the event table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rca.ingest.metric_units import meaning
from rca.ingest.metric_words import worded_names
from rca.ingest.names import METRIC_NAMES, canonical_metric

_EVALUATION = frozenset({"validation", "valid", "val", "eval", "evaluation", "test", "dev"})


def series_names(tags: Sequence[str], counts: Sequence[int], *, path: str) -> list[str]:
    """Name the metric of each tag; of several tags with one common name the one with the most points has it.

    Two curves under one name would be read as one curve that jumps.
    """
    evaluated = _evaluates(path)
    taken: set[str] = set()
    again: Counter[str] = Counter()
    names = [""] * len(tags)
    known = {tag: name for tag in tags if (name := meaning(tag).name) in METRIC_NAMES}
    worded = worded_names([tag for tag in tags if tag not in known], known.values())
    for place in sorted(range(len(tags)), key=lambda place: (-counts[place], tags[place])):
        tag = tags[place]
        raw = tag.strip().lower()
        common = canonical_metric(raw.removeprefix("epoch_"))
        common = common if common in METRIC_NAMES else worded.get(tag) or meaning(tag).name
        if evaluated and f"eval_{common}" in METRIC_NAMES:
            common = f"eval_{common}"
        name = common if common not in taken else raw
        while name in taken:
            again[raw] += 1
            name = f"{raw}#{again[raw] + 1}"
        names[place] = name
        taken.add(name)
    return names


def _evaluates(path: str) -> bool:
    """Say whether a writer named its folder after evaluation (Keras: `train/` and `validation/`, both `epoch_loss`)."""
    return not _EVALUATION.isdisjoint(path.lower().split("/")[:-1])
