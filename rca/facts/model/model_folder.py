"""Weight files as they lie in the run directory: missing, truncated, pointers, wrappers in key names, shapes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rca.events import Event, EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction
from rca.facts.memo import once_per_table

CATALOGUE: Mapping[str, str] = {
    "model.index_missing_files": "weight files that an index or a shard numbering names and the folder lacks",
    "model.index_missing_keys": "tensors that an index assigns to a file that does not hold them",
    "model.lfs_pointers": "files that are git-lfs pointers instead of the real file",
    "model.truncated_files": "weight files that are empty, cut off or have an unreadable header",
    "model.broken_files": "files of a model folder, such as tokenizer.json, that are cut off or no JSON",
    "model.zero_size_tensors": "tensors without elements in the weight files",
    "model.key_prefix": "wrapper prefix that the parameter names carry, e.g. `_orig_mod.`",
    "model.shape_conflicts": "sizes in the weight files that contradict config.json",
    "model.shape_conflict": "the first of them, in words",
    "model.hash_mismatches": "files that differ from their checksum",
    "model.stored_parameters": "parameters in the weight files, where all files are whole",
    "model.stored_dtype": "data type of most tensors in the weight files",
    "model.pickle_calls": "callables in a checkpoint's pickle that are not part of PyTorch or NumPy",
    "model.gguf_no_pre_tokenizer": "a GGUF with a byte-pair tokenizer does not name its pre-tokenizer",
}

WEIGHTS = ("weights.shard", "weights.checkpoint", "weights.gguf", "weights.lfs_pointer")
_BROKEN = frozenset({"empty", "too_short", "truncated", "header_too_large", "header_incomplete", "header_invalid"})
_NUMBERED = re.compile(
    r"(?P<stem>.{1,150})-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})\.(?P<suffix>safetensors|bin|gguf)$"
)
_WEIGHT_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf")
_PROJECTED = ("embedding_size", "word_embed_proj_dim", "d_embed", "emb_dim")
"""Keys of models whose embedding is narrower than their hidden size (ALBERT, OPT, Transformer-XL, XLM)."""


def folder_of(event: Event) -> str:
    """Return the folder that an event's file lies in."""
    return event.source.rpartition("/")[0]


@once_per_table
def artifacts(events: EventTable) -> Mapping[str, tuple[Event, ...]]:
    """Return the events about weight and tokenizer files by name."""
    found: dict[str, list[Event]] = defaultdict(list)
    for event in events.of_kind("artifact"):
        found[event.name].append(event)
    return {name: tuple(items) for name, items in found.items()}


def model_settings(events: EventTable) -> Mapping[str, Mapping[str, Event]]:
    """Return, for each folder with a model's config.json, its settings by common name."""
    found: dict[str, dict[str, Event]] = defaultdict(dict)
    for event in events.of_kind("config"):
        if event.attr("file_role") == "model":
            found[folder_of(event)][event.name] = event
    return found


def files(events: EventTable) -> Iterator[Fact]:
    """Which weight files are not what they should be?"""
    known = artifacts(events)
    weights = [event for name in WEIGHTS for event in known.get(name, ())]
    pointers = known.get("weights.lfs_pointer", ())
    if weights:
        names = ", ".join(str(event.attr("file")) for event in pointers[:2])
        yield from emit(
            "model.lfs_pointers",
            len(pointers),
            f"{len(pointers)} weight files are git-lfs pointers, a few lines of text each ({names}): never fetched."
            if pointers
            else "No weight file is a git-lfs pointer.",
            events=_ids(pointers or weights),
        )
    real = [event for event in weights if event.name != "weights.lfs_pointer"]
    broken = [event for event in real if event.attr("status") in _BROKEN]
    listed = [
        (event, name)
        for event in known.get("files.listing", ())
        for name in event.attr("empty", ())
        if str(name).endswith(_WEIGHT_SUFFIXES)
    ]
    if real or listed:
        first = _broken_words(broken[0]) if broken else f"{listed[0][1]} is listed with 0 bytes" if listed else ""
        yield from emit(
            "model.truncated_files",
            len(broken) + len(listed),
            f"{len(broken) + len(listed)} weight files are cut off or unreadable: {first}."
            if first
            else "No weight file is cut off or unreadable.",
            events=_ids([*broken, *(event for event, _name in listed)] or real),
        )


def unparsable(events: EventTable) -> Iterator[Fact]:
    """Are the files beside the weights whole?"""
    broken = [event for event in artifacts(events).get("model.file", ()) if event.attr("status") == "broken"]
    if broken:
        count = "One file" if len(broken) == 1 else f"{len(broken)} files"
        says = f"{count} of the model cannot be parsed: {broken[0].text}"
        yield from emit("model.broken_files", len(broken), says, events=_ids(broken))


def missing(events: EventTable) -> Iterator[Fact]:
    """Which files or keys does an index name that are not there?

    An index whose files are all absent says nothing: the weights were not copied into the run directory.
    """
    known = artifacts(events)
    indexes = [
        event for event in known.get("weights.index", ()) if event.attr("missing_count", 0) < event.attr("files", 0)
    ]
    counts = [(int(event.attr("missing_count", 0)), event, event.attr("missing_files", ())) for event in indexes]
    counts.extend(_numbering_gaps(events))
    if counts:
        count, event, names = max(counts, key=lambda item: item[0])
        yield from emit(
            "model.index_missing_files",
            count,
            f"{count} weight files that belong to the model are not in the folder: {', '.join(names[:4])}."
            if count
            else "Every file that the weight index names is in the folder.",
            events=[event.event_id],
        )
    checked = [event for event in indexes if event.attr("checked_files", 0)]
    if checked:
        worst = max(checked, key=lambda event: int(event.attr("missing_key_count", 0)))
        lost = int(worst.attr("missing_key_count", 0))
        yield from emit(
            "model.index_missing_keys",
            lost,
            f"{lost} tensors are not in the file that the index names for them, e.g. {worst.attr('missing_keys')[0]}."
            if lost
            else "Every tensor of the index is in its file.",
            events=[worst.event_id],
        )


def _numbering_gaps(events: EventTable) -> Iterator[tuple[int, Event, list[str]]]:
    """Yield the gaps in names like `model-00001-of-00004.safetensors`, in the folder and in printed listings."""
    groups: dict[tuple[str, str, str, int], dict[int, Event]] = defaultdict(dict)
    for name in WEIGHTS:
        for event in artifacts(events).get(name, ()):
            _sort_in(groups, folder_of(event), str(event.attr("file", "")), event)
    for event in artifacts(events).get("files.listing", ()):
        for file in event.attr("files", {}):
            _sort_in(groups, f"listing:{event.event_id}:{file.rpartition('/')[0]}", file.rpartition("/")[2], event)
    for (_folder, stem, suffix, count), present in groups.items():
        absent = [number for number in range(1, count + 1) if number not in present]
        names = [f"{stem}-{number:05d}-of-{count:05d}.{suffix}" for number in absent]
        yield len(absent), next(iter(present.values())), names


def _sort_in(groups: dict[tuple[str, str, str, int], dict[int, Event]], folder: str, name: str, event: Event) -> None:
    match = _NUMBERED.fullmatch(name)
    if match is not None and 0 < int(match["count"]) <= 10_000:
        groups[folder, match["stem"], match["suffix"], int(match["count"])][int(match["number"])] = event


def tensors(events: EventTable) -> Iterator[Fact]:
    """What do the headers say of names, sizes and types?"""
    described = [
        event for name in WEIGHTS for event in artifacts(events).get(name, ()) if event.attr("tensors") and event.attrs
    ]
    if not described:
        return
    empty = [event for event in described if event.attr("zero_size_tensors", 0)]
    total = sum(int(event.attr("zero_size_tensors", 0)) for event in described)
    yield from emit(
        "model.zero_size_tensors",
        total,
        f"{total} tensors in the weight files have no elements, e.g. {empty[0].attr('zero_size_sample', ['?'])[0]}."
        if empty
        else "No tensor in the weight files is empty.",
        events=_ids(empty or described),
    )
    wrapped = [event for event in described if event.attr("key_prefix")]
    if wrapped:
        prefix = str(wrapped[0].attr("key_prefix"))
        says = f"The parameter names in {wrapped[0].attr('file')} carry the prefix `{prefix}` of a wrapper."
        yield from emit("model.key_prefix", prefix, says, events=_ids(wrapped))
    votes: dict[str, int] = defaultdict(int)
    for event in described:
        for dtype, count in event.attr("dtypes", {}).items():
            votes[dtype] += int(count)
    if votes:
        common = max(votes, key=lambda dtype: votes[dtype])
        yield from emit("model.stored_dtype", common, f"Most stored tensors are {common}.", events=_ids(described))
    calls = [event for event in described if event.attr("unusual_calls")]
    if calls:
        named = ", ".join(calls[0].attr("unusual_calls")[:4])
        says = f"The pickle in {calls[0].attr('file')} would call {named} when loaded."
        yield from emit("model.pickle_calls", named, says, events=_ids(calls))


def shapes(events: EventTable) -> Iterator[Fact]:
    """Do the sizes in the headers agree with config.json in the same folder?"""
    conflicts: list[tuple[str, Event]] = []
    compared: list[Event] = []
    configs = model_settings(events)
    by_folder: dict[str, list[Event]] = defaultdict(list)
    for event in artifacts(events).get("weights.shard", ()):
        if event.attr("tensors"):
            by_folder[folder_of(event)].append(event)
    for folder, shards in by_folder.items():
        settings = configs.get(folder)
        if settings is None:
            continue
        compared.extend(shards)
        conflicts.extend(_conflicts(settings, shards))
    if compared:
        yield from emit(
            "model.shape_conflicts",
            len(conflicts),
            f"The weight files contradict config.json: {conflicts[0][0]}."
            if conflicts
            else "The sizes in the weight files agree with config.json.",
            events=_ids([event for _text, event in conflicts] or compared),
        )
    if conflicts:
        yield from emit(
            "model.shape_conflict",
            conflicts[0][0],
            f"In the weight files {conflicts[0][0]}.",
            events=[conflicts[0][1].event_id],
        )


def _conflicts(settings: Mapping[str, Event], shards: Sequence[Event]) -> Iterator[tuple[str, Event]]:
    vocabulary, width = _whole(settings, "vocab_size"), _whole(settings, "hidden_size")
    labels, depth = _whole(settings, "num_labels"), _whole(settings, "num_layers")
    for event in shards:
        embedding, head = event.attr("embedding_shape"), event.attr("head_shape")
        if embedding and vocabulary and embedding[0] != vocabulary:
            yield f"the token embedding has {embedding[0]} rows and vocab_size is {vocabulary}", event
        if embedding and width and len(embedding) > 1 and embedding[1] != width and not set(_PROJECTED) & set(settings):
            yield f"the token embedding is {embedding[1]} wide and hidden_size is {width}", event
        if head and labels and len(head) > 1 and head[0] not in {labels, vocabulary}:
            yield f"the head has {head[0]} outputs and the config has {labels} labels", event
    whole = all(event.attr("status") == "ok" for event in shards)
    layers = max((int(event.attr("layers", 0)) for event in shards), default=0)
    if whole and depth and 0 < layers < depth and len(shards) == 1:
        yield f"there are {layers} layers and the config has {depth}", shards[0]


def checksums(events: EventTable) -> Iterator[Fact]:
    """Do the files agree with the checksums that lie beside them?"""
    lists = [event for event in artifacts(events).get("weights.manifest", ()) if event.attr("compared", 0)]
    if lists:
        worst = max(lists, key=lambda event: int(event.attr("mismatched_count", 0)))
        count = sum(int(event.attr("mismatched_count", 0)) for event in lists)
        yield from emit(
            "model.hash_mismatches",
            count,
            f"{count} files differ from their checksum, first {worst.attr('mismatched', ['?'])[0]}."
            if count
            else f"All {worst.attr('compared')} files that were compared agree with their checksum.",
            events=_ids(lists),
        )


def parameters(events: EventTable) -> Iterator[Fact]:
    """How many parameters do the weight files hold, where nothing is missing?"""
    shards = [event for event in artifacts(events).get("weights.shard", ()) if event.attr("parameters")]
    folders = {folder_of(event) for event in shards}
    gaps = sum(count for count, _event, _names in _numbering_gaps(events))
    if len(folders) == 1 and not gaps and all(event.attr("status") == "ok" for event in shards):
        total = sum(int(event.attr("parameters")) for event in shards)
        says = f"The weight files hold {total:,} parameters."
        yield from emit("model.stored_parameters", total, says, events=_ids(shards))


def gguf(events: EventTable) -> Iterator[Fact]:
    """Does a GGUF with a byte-pair tokenizer name its pre-tokenizer?"""
    found = [
        event for event in artifacts(events).get("weights.gguf", ()) if event.attr("tokenizer_model") in {"gpt2", "bpe"}
    ]
    if found:
        without = [event for event in found if not event.attr("pre_tokenizer")]
        yield from emit(
            "model.gguf_no_pre_tokenizer",
            bool(without),
            "The GGUF has no tokenizer.ggml.pre: text is split by the default rules, not by those of the training."
            if without
            else f"The GGUF names its pre-tokenizer ({found[0].attr('pre_tokenizer')}).",
            events=_ids(without or found),
        )


def _broken_words(event: Event) -> str:
    status, size, expected = event.attr("status"), event.attr("size"), event.attr("expected_size")
    short = f", {size:,} of {expected:,} bytes" if isinstance(size, int) and isinstance(expected, int) else ""
    return f"{event.attr('file')} ({str(status).replace('_', ' ')}{short})"


def _whole(settings: Mapping[str, Event], name: str) -> int | None:
    event = settings.get(name)
    value: Any = None if event is None else event.value
    return int(value) if isinstance(value, float) and 0 < value < 2**40 else None


def _ids(events: Sequence[Event]) -> list[int]:
    return [event.event_id for event in events]


FACTS: tuple[FactFunction, ...] = (files, unparsable, missing, tensors, shapes, checksums, parameters, gguf)
