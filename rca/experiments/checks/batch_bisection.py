"""`batch_bisection`: which samples are guilty: a direct look at each, and halving where only a batch shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rca.diagnosis import ExperimentVerdict
from rca.errors import ExperimentError
from rca.experiments.checks.check import Asked, Check, Found, Outcome
from rca.experiments.checks.files import sample_root
from rca.experiments.twin.config import ENCODERS, SEQ2SEQ, twin_of

FEW = 0.01
"""Share of samples up to which values beyond fp16 are corrupt samples and not the scale of the data."""
MANY = 0.05
"""Share of samples with missing values from which they are a property of the data (empty cells of a table)."""
_NOT_FINITE = frozenset({"nan_at_start", "nan_abrupt", "nan_after_growth", "nan_isolated", "skipping"})
_SCOPE = "the samples that were left, each looked at; whether the run saw others, or changed these, is not known"


def read(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Look at the samples below `root`; with `bisect` also pass them through a twin."""
    from rca.experiments.checks.bisection import through_twin
    from rca.experiments.checks.media import read_media
    from rca.experiments.checks.sample_lengths import spread
    from rca.experiments.checks.sample_scan import Limits, scan
    from rca.experiments.checks.samples import read_samples

    reading = read_samples(Path(settings["root"]), named=settings["named"])
    tables = reading.tables
    found: dict[str, Any] = {
        "tables": [[table.file, table.rows, table.whole] for table in tables],
        "unread": [list(item) for item in reading.unread[:20]],
        "damaged": [list(item) for item in reading.damaged[:20]],
    }
    if settings.get("bisect"):
        found["bisected"] = [
            {
                "file": table.file,
                "samples": min(table.rows, 4096),
                "rows": [table.number(row) for row in guilty.rows[:20]],
                "count": len(guilty.rows),
                "batches": [table.number(row) for row in guilty.batches[:20]],
                "forwards": guilty.forwards,
            }
            for table in tables[:4]
            if (guilty := through_twin(table, settings["bisect"])) is not None
        ]
        return found
    media = read_media(Path(settings["root"]), named=settings["named"])
    seen = scan(tables, Limits(**settings["limits"]))
    return found | {
        "hits": {kind: [list(hit) for hit in hits] for kind, hits in seen.hits.items()},
        "counts": seen.counts,
        "media": {"count": media.files, "bad": [list(item) for item in media.bad], "bad_count": media.damaged},
        "looked_at": {kind: sum(files.values()) for kind, files in seen.looked_at.items()},
        "spread": {name: list(row) for name, row in spread(tables).items()},
    }


def judge(asked: Asked) -> Outcome:
    """Measure and judge what the rule's metric names."""
    place = sample_root(asked.material)
    if place is None:
        raise ExperimentError("there is neither a run directory nor --data")
    profile = asked.profile
    tokens = profile.num_labels if profile.family in ENCODERS else profile.vocab_size
    base = {"root": str(place[0]), "named": place[1]}
    view = asked.view(_VIEWS)
    found = asked.measure(
        {
            **base,
            "limits": {
                "vocabulary": profile.vocab_size,
                "classes": profile.num_labels,
                "token_classes": tokens,
                "positions": profile.max_position_embeddings,
                "same_length": profile.family is not None and profile.family not in SEQ2SEQ,
            },
        }
    )
    if not found["tables"] and not found["damaged"] and not found["media"]["count"]:
        why = f": {found['unread'][0][0]}: {found['unread'][0][1]}" if found["unread"] else ""
        raise ExperimentError(f"no file with samples could be read{why}")
    outcome = view(asked, found)
    if asked.rule.metric == "nonfinite" and outcome.verdict == "refuted" and _NOT_FINITE & set(profile.symptoms):
        twin = twin_of(profile).config.model_dump(mode="json")
        settings = {"twin": twin, "precision": profile.precision or "fp32", "batch": profile.batch_size or 8}
        return _bisected(outcome, asked.measure({**base, "bisect": settings}))
    return outcome


def _bisected(clean: Outcome, found: Found) -> Outcome:
    """No sample is bad by itself to the eye: does one make the loss of a batch not finite?"""
    tried = found["bisected"]
    details = (
        *clean.details,
        *(
            (f"passed through the twin: {one['file']}", f"{one['samples']} samples, {one['forwards']} forwards")
            for one in tried
        ),
    )
    scope = f"{clean.scope}; the loss is that of a tiny stand-in with random weights in the run's precision"
    for one in tried:
        if one["count"]:
            rows = _rows(one["rows"], one["count"])
            said = f"{rows} of {one['file']} make the loss of a batch not finite"
            if one["count"] > max(1, FEW * one["samples"]):
                return Outcome("inconclusive", f"{said}: so many that it is the scale of the data.", scope, details)
            found_by = f"found by halving in {one['forwards']} forwards; no value there is unusual by itself"
            return Outcome("confirmed", f"{said}, {found_by}.", scope, details)
        if one["batches"]:
            said = (
                f"The batch from row {one['batches'][0]} of {one['file']} has no finite loss, each of its samples has"
            )
            return Outcome("inconclusive", f"{said}.", scope, details)
    return clean._replace(scope=scope if tried else clean.scope, details=details)


def _kind(kind: str, clean: str) -> Callable[[Asked, Found], Outcome]:
    """Return the judgement by one kind of hit; `clean` says what it means that there is none."""

    def view(_asked: Asked, found: Found) -> Outcome:
        count = found["counts"].get(kind, 0)
        details = _details(found, kind)
        if count:
            file, _row, column, says = found["hits"][kind][0]
            rows = _rows([hit[1] for hit in found["hits"][kind] if hit[0] == file], count)
            return Outcome("confirmed", f"{rows} of {file}: {column} {says}.", _SCOPE, details)
        looked = found["looked_at"].get(kind, 0)
        if not looked:
            raise ExperimentError(_UNKNOWN.get(kind, "the samples that were left have nothing of the kind to look at"))
        if not _whole(found):
            return Outcome(
                "inconclusive", f"None of {looked:,} samples that were read, but not all were.", _SCOPE, details
            )
        return Outcome("refuted", f"{clean.format(samples=f'{looked:,}')}.", _SCOPE, details)

    return view


def _nonfinite(asked: Asked, found: Found) -> Outcome:
    """Values that are not finite, or cannot be in the run's precision."""
    counts, looked = found["counts"], found["looked_at"].get("nonfinite", 0)
    details = tuple(row for kind in ("nonfinite", "beyond_fp16", "extreme") for row in _details(found, kind))
    if not counts.get("nonfinite") and asked.profile.precision == "fp16" and counts.get("beyond_fp16"):
        file, row, column, says = found["hits"]["beyond_fp16"][0]
        said = f"{counts['beyond_fp16']} of {looked:,} samples exceed fp16, e.g. row {row} of {file}: {column} {says}"
        few = counts["beyond_fp16"] <= max(1, FEW * looked)
        return Outcome("confirmed" if few else "inconclusive", f"{said}.", _SCOPE, details)
    outcome = _kind("nonfinite", "All {samples} samples hold finite values only")(asked, found)
    if outcome.verdict == "confirmed" and looked >= 100 and counts["nonfinite"] > MANY * looked:
        said = f"{counts['nonfinite']:,} of {looked:,} samples hold values that are missing or not finite"
        why = "so many that the run has dealt with them or would not have started"
        outcome = outcome._replace(verdict="inconclusive", reason=f"{said}: {why}.")
    if outcome.verdict == "refuted" and counts.get("extreme"):
        file, row, column, says = found["hits"]["extreme"][0]
        said = f"Every value is finite, but row {row} of {file} stands out: {column} {says}"
        outcome = outcome._replace(verdict="inconclusive", reason=f"{said}.")
    return outcome._replace(details=details)


def _unlabelled(asked: Asked, found: Found) -> Outcome:
    """Samples without a single label: does a whole batch of them come about?"""
    outcome = _kind("unlabelled", "Each of {samples} samples has a label that counts")(asked, found)
    batch = asked.profile.batch_size
    if outcome.verdict != "confirmed" or batch is None:
        return outcome
    samples = found["looked_at"]["unlabelled"]
    expected = samples / batch * (found["counts"]["unlabelled"] / samples) ** batch
    said = f"{outcome.reason[:-1]}; in batches of {batch} some {expected:.2g} in a pass hold nothing else"
    verdict: ExperimentVerdict = "confirmed" if expected >= 0.5 else "inconclusive"
    return outcome._replace(verdict=verdict, reason=f"{said}.")


def _unreadable(_asked: Asked, found: Found) -> Outcome:
    """Files or rows that cannot be read."""
    media = found["media"]
    details = (
        *((file, why) for file, why in [*found["damaged"][:6], *media["bad"][:6]]),
        *((("images and sounds", f"{media['bad_count']:,} of {media['count']:,} damaged"),) if media["count"] else ()),
        *_details(found, "unreadable"),
    )
    if found["damaged"]:
        file, why = found["damaged"][0]
        return Outcome("confirmed", f"{file} cannot be read: {why}.", _SCOPE, details)
    if media["bad_count"]:
        file, why = media["bad"][0]
        more = f" ({media['bad_count'] - 1:,} more files are damaged)" if media["bad_count"] > 1 else ""
        return Outcome("confirmed", f"{file} {why}{more}.", _SCOPE, details)
    if media["count"] and not found["tables"]:
        said = f"All {media['count']:,} images and sounds begin and end as they should"
        return Outcome("refuted", f"{said}; damage in between does not show.", _SCOPE, details)
    return _kind("unreadable", "All {samples} samples can be read")(_asked, found)._replace(details=details)


def _ragged(_asked: Asked, found: Found) -> Outcome:
    """Would samples stack without padding?"""
    if found["counts"].get("lengths"):
        return _kind("lengths", "")(_asked, found)
    rows = found["spread"]
    if not rows:
        raise ExperimentError("the samples that were left are no sequences")
    details = tuple((name, f"{low} to {high}, median {middle:g}") for name, (low, middle, high, _n) in rows.items())[:6]
    uneven = [name for name, (low, _middle, high, _n) in rows.items() if low != high]
    if uneven:
        low, _middle, high, samples = rows[uneven[0]]
        said = f"{uneven[0]} has {low} to {high} elements over {samples:,} samples: they stack only after padding"
        return Outcome("inconclusive", f"{said}; whether the run padded them is not in the samples.", _SCOPE, details)
    if not _whole(found):
        return Outcome(
            "inconclusive", "All samples that were read have one length, but not all were read.", _SCOPE, details
        )
    return Outcome("refuted", "All samples of a column have one length: they stack as they are.", _SCOPE, details)


def _empty_set(_asked: Asked, found: Found) -> Outcome:
    """A file of samples without samples?"""
    details = tuple((file, f"{rows:,} samples") for file, rows, _whole in found["tables"][:8])
    empty = [file for file, rows, whole in found["tables"] if rows == 0 and whole]
    if empty:
        return Outcome("confirmed", f"{empty[0]} holds no sample.", _SCOPE, details)
    if not found["tables"]:
        raise ExperimentError("no file with samples could be read")
    unclear = [file for file, rows, _whole in found["tables"] if rows == 0]
    if unclear:
        return Outcome("inconclusive", f"No sample in what was read of {unclear[0]}, which is a part.", _SCOPE, details)
    said = f"Each of {len(found['tables'])} files holds samples"
    return Outcome(
        "inconclusive", f"{said}; a filter or an iterator that ends too soon is not in the files.", _SCOPE, details
    )


def _whole(found: Found) -> bool:
    return all(whole for _file, _rows, whole in found["tables"]) and not found["unread"]


def _details(found: Found, kind: str) -> tuple[tuple[str, str], ...]:
    hits = [
        (f"{file}, row {row}", f"{column} {says}".strip()) for file, row, column, says in found["hits"].get(kind, [])
    ]
    looked = found["looked_at"].get(kind, 0)
    total = f"{found['counts'].get(kind, 0):,} of {looked:,} samples"
    return ((f"{kind.replace('_', ' ')}", total), *hits[:8]) if looked or hits else ()


def _rows(rows: list[int], count: int) -> str:
    shown = ", ".join(map(str, rows[:6]))
    return (
        f"Row {shown}"
        if count == 1
        else f"Rows {shown}{f' and others, {count} in all,' if count > len(rows[:6]) else ''}"
    )


_UNKNOWN = {
    "token_range": "the samples hold no token ids, or the size of the vocabulary is not recorded",
    "label_range": "the samples hold no labels, or the number of classes is not recorded",
    "unlabelled": "the samples hold no labels",
    "long": "the samples hold no token ids, or fewer than eight of them",
}
_VIEWS: Mapping[str, Callable[[Asked, Found], Outcome]] = {
    "nonfinite": _nonfinite,
    "token_range": _kind("token_range", "Every id in {samples} samples has a row in the embedding"),
    "label_range": _kind("label_range", "Every label in {samples} samples is in range"),
    "unlabelled": _unlabelled,
    "unreadable": _unreadable,
    "long": _kind("long", "None of {samples} samples is far longer than the others"),
    "ragged": _ragged,
    "empty_set": _empty_set,
}
CHECK = Check(judge, read)
