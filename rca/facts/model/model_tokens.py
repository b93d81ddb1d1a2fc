"""Tokens of a model folder: does the tokenizer fit the embedding, and do the special tokens agree?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from rca.events import Event, EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction
from rca.facts.model.model_folder import artifacts, folder_of, model_settings

CATALOGUE: Mapping[str, str] = {
    "model.vocab_rows": "rows of the token embedding, from the weight files or config.json",
    "model.vocab_tokenizer": "highest id of the tokenizer plus one",
    "model.vocab_excess": "tokenizer ids that have no row in the token embedding",
    "model.special_token_conflict": "the end-of-sequence ids of the model's files that do not agree, in words",
    "model.pad_token_conflict": "the padding ids of the model's files that do not agree, in words",
    "model.turn_end_not_eos": "the token that the chat template closes a turn with, where no file names it as an end",
    "model.no_pad_token": "neither the tokenizer nor the config names a padding token",
    "model.pad_is_eos": "padding and end of sequence are the same token",
    "model.chat_template": "the tokenizer file holds a chat template",
    "model.use_cache_off": "config.json or generation_config.json switches the key-value cache off",
    "model.tokenizer_merges": "how tokenizer.json stores merges: pairs (tokenizers 0.20 on) or strings",
    "model.tokenizer_padding_side": "left or right, where the tokenizer says",
}
_TOKENIZER_FILES = ("tokenizer.vocabulary", "tokenizer.added_tokens", "tokenizer.config")


def vocabulary(events: EventTable) -> Iterator[Fact]:
    """Does every id of the tokenizer have a row in the embedding? Compared in one folder, or between the only two."""
    highest = _highest_ids(events)
    rows = _rows(events)
    pairs = [(highest[folder], rows[folder]) for folder in highest.keys() & rows.keys()]
    if not pairs and len(highest) == 1 and len(rows) == 1:
        pairs = [(next(iter(highest.values())), next(iter(rows.values())))]
    if rows:
        count, event = max(rows.values(), key=lambda item: item[0])
        says = f"The token embedding has {count:,} rows."
        yield from emit("model.vocab_rows", pairs[0][1][0] if pairs else count, says, events=[event.event_id])
    if highest:
        top, event = max(highest.values(), key=lambda item: item[0])
        yield from emit(
            "model.vocab_tokenizer", top + 1, f"The tokenizer's highest id is {top:,}.", events=[event.event_id]
        )
    if pairs:
        (top, file), (count, source) = max(pairs, key=lambda pair: pair[0][0] - pair[1][0])
        excess = max(0, top + 1 - count)
        yield from emit(
            "model.vocab_excess",
            excess,
            f"The tokenizer's ids reach {top:,}, the token embedding has {count:,} rows: {excess:,} ids are outside."
            if excess
            else f"Every id of the tokenizer (up to {top:,}) has a row in the token embedding ({count:,} rows).",
            events=[file.event_id, source.event_id],
        )


def _highest_ids(events: EventTable) -> dict[str, tuple[int, Event]]:
    found: dict[str, tuple[int, Event]] = {}
    for name in _TOKENIZER_FILES:
        for event in artifacts(events).get(name, ()):
            top = event.attr("max_id")
            folder = folder_of(event)
            if isinstance(top, int) and top >= 0 and (folder not in found or top > found[folder][0]):
                found[folder] = (top, event)
    return found


def _rows(events: EventTable) -> dict[str, tuple[int, Event]]:
    """Return the embedding rows of each folder; the weight files know better than the config."""
    found: dict[str, tuple[int, Event]] = {}
    for folder, settings in model_settings(events).items():
        event = settings.get("vocab_size")
        if event is not None and event.value is not None and 0 < event.value < 2**40:
            found[folder] = (int(event.value), event)
    for event in artifacts(events).get("weights.shard", ()):
        shape = event.attr("embedding_shape")
        if shape and len(shape) > 1 and shape[0] > 0:
            found[folder_of(event)] = (int(shape[0]), event)
    return found


def special_tokens(events: EventTable) -> Iterator[Fact]:
    """Do config.json, generation_config.json and the tokenizer mean the same end-of-sequence and padding ids?"""
    for role, fact in (("eos", "model.special_token_conflict"), ("pad", "model.pad_token_conflict")):
        for said in _said(events, role).values():
            files = list(said.items())
            clash = [
                (one, other)
                for place, one in enumerate(files)
                for other in files[place + 1 :]
                if not one[1][0] & other[1][0]
            ]
            if clash:
                (name, (ids, event)), (other_name, (other_ids, other_event)) = clash[0]
                words = f"{role}: {name} says {_list(ids)}, {other_name} says {_list(other_ids)}"
                says = f"The files of the model do not agree on the {role} token: {words}."
                yield from emit(fact, words, says, events=[event.event_id, other_event.event_id])
                break


def _said(events: EventTable, role: str) -> dict[str, dict[str, tuple[set[int], Event]]]:
    """Return, by folder and file, the ids that each file gives a role."""
    found: dict[str, dict[str, tuple[set[int], Event]]] = defaultdict(dict)
    for event in events.named(f"{role}_token_id", kind="config"):
        ids = _ids(event.attr("value"))
        if ids and event.attr("file_role") in {"model", "generation"} and event.attr("key") == f"{role}_token_id":
            found[folder_of(event)][event.source.rpartition("/")[2]] = (ids, event)
    tables = artifacts(events).get("tokenizer.vocabulary", ())
    for event in artifacts(events).get("tokenizer.config", ()):
        folder = folder_of(event)
        token = event.attr("tokens", {}).get(f"{role}_token")
        known: dict[str, Any] = dict(event.attr("ids", {}))
        for table in tables:
            if folder_of(table) == folder:
                known = {**table.attr("special_ids", {}), **known}
        if isinstance(known.get(token), int):
            found[folder][str(event.attr("file"))] = ({known[token]}, event)
    return found


def turn_end(events: EventTable) -> Iterator[Fact]:
    """Does generation stop at the token with which the chat template closes a turn?"""
    stops = {event.text for name in ("stop", "stop_tokens", "stop_token_ids") for event in events.named(name)}
    for event in artifacts(events).get("tokenizer.config", ()):
        token = event.attr("turn_end")
        known: dict[str, Any] = dict(event.attr("ids", {}))
        for table in artifacts(events).get("tokenizer.vocabulary", ()):
            if folder_of(table) == folder_of(event):
                known = {**table.attr("special_ids", {}), **known}
        ends = _said(events, "eos").get(folder_of(event), {})
        named = set().union(*(ids for ids, _event in ends.values()))
        own = event.attr("tokens", {}).get("eos_token")
        if isinstance(token, str) and token not in known and own not in {None, token} and len(named) == 1:
            # Without a table of ids: the one id is that of the token which the tokenizer calls its end.
            known[token] = -1
        if not isinstance(known.get(token), int) or not ends:
            continue
        if known[token] not in named and not any(str(token) in text or str(known[token]) in text for text in stops):
            number = f" ({known[token]})" if known[token] >= 0 else ""
            words = f"{token}{number} is not among {_list(named)}"
            says = (
                f"The chat template closes a turn with {token}, and generation stops only at {_list(named)}: {words}."
            )
            shown = [event.event_id, *(one.event_id for _ids_of, one in ends.values())]
            yield from emit("model.turn_end_not_eos", words, says, events=shown)
            return


def padding(events: EventTable) -> Iterator[Fact]:
    """Is there a padding token, and is it the end of sequence?"""
    for event in artifacts(events).get("tokenizer.config", ()):
        if event.attr("file") != "tokenizer_config.json":
            continue
        tokens = event.attr("tokens", {})
        folder = folder_of(event)
        configured = [item for item in events.named("pad_token_id", kind="config") if folder_of(item) == folder]
        none = "pad_token" not in tokens and not configured
        says = "No file of the model names a padding token." if none else "The model has a padding token."
        yield from emit("model.no_pad_token", none, says, events=[event.event_id])
        same = tokens.get("pad_token") is not None and tokens.get("pad_token") == tokens.get("eos_token")
        says = (
            f"Padding uses the end-of-sequence token {tokens.get('eos_token')}."
            if same
            else "Padding has its own token."
        )
        if not none:
            yield from emit("model.pad_is_eos", same, says, events=[event.event_id])
        template = bool(event.attr("chat_template"))
        says = f"The tokenizer has {'a' if template else 'no'} chat template."
        yield from emit("model.chat_template", template, says, events=[event.event_id])
        side = event.attr("padding_side")
        if side in {"left", "right"}:
            yield from emit(
                "model.tokenizer_padding_side", side, f"The tokenizer pads on the {side}.", events=[event.event_id]
            )
        return


def cache(events: EventTable) -> Iterator[Fact]:
    """Do the model's files switch the key-value cache off?"""
    said = [
        event
        for event in events.named("use_cache", kind="config")
        if event.attr("file_role") in {"model", "generation"} and event.attr("value") in {True, False}
    ]
    if said:
        off = [event for event in said if event.attr("value") is False]
        yield from emit(
            "model.use_cache_off",
            bool(off),
            f"{off[0].source} says use_cache: false." if off else "The model's files leave the key-value cache on.",
            events=[event.event_id for event in off or said],
        )


def merges(events: EventTable) -> Iterator[Fact]:
    """In which form does tokenizer.json store its merges?"""
    for event in artifacts(events).get("tokenizer.vocabulary", ()):
        form = event.attr("merges_format")
        if form:
            says = f"{event.source} stores its merges as {form}."
            yield from emit("model.tokenizer_merges", str(form), says, events=[event.event_id])
            return


def _ids(value: Any) -> set[int]:
    items = value if isinstance(value, list) else [value]
    return {int(item) for item in items if isinstance(item, (int, float)) and not isinstance(item, bool)}


def _list(ids: set[int]) -> str:
    return ", ".join(str(item) for item in sorted(ids)[:6])


FACTS: tuple[FactFunction, ...] = (vocabulary, special_tokens, turn_end, padding, cache, merges)
