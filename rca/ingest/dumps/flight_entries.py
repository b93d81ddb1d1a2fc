"""Entries of a flight-recorder dump by process group: what was called, in which order, how far it came."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from rca.ingest.dumps.recorded_stacks import Frame, Places, whole, words
from rca.recording import COMPLETED, LEFT, MAX_RANKS, SCHEDULED, STARTED, Call, Recording, Shapes, Transfer

MAX_ENTRIES = 20_000
"""Entries kept of one process group, the newest; the recorder keeps 2,000 unless it is told otherwise."""
MAX_LISTED = 200_000
"""Entries of one dump that are looked at, the newest."""
MAX_GROUPS = 256
MAX_MEMBERS = 1 << 21
"""Ranks of all groups of one dump together."""
MAX_CALLS = 2_000
"""Different calls of one group; a run whose shapes never repeat keeps its newest ones."""
_TENSORS, _DIMENSIONS, _WORDS = 64, 8, 200
_ORDER = {SCHEDULED: 0, STARTED: 1, LEFT: 2, COMPLETED: 3}
_STATES = {"completed": COMPLETED, "started": STARTED, "scheduled": SCHEDULED}
_COALESCED = "coalesced"
_WHOLE, _TEXT = frozenset({int}), frozenset({str})


@dataclass
class GroupEntries:
    """What one rank recorded of one process group."""

    name: str
    description: str
    number: int | None
    """Number of the group on that rank (`PG ID` in the messages of the watchdog)."""
    collectives: dict[int, tuple[Call, str]] = field(default_factory=dict)
    transfers: list[Transfer] = field(default_factory=list)
    stacks: dict[int, list[Frame]] = field(default_factory=dict)
    """Frames by sequence number, innermost first, as they were recorded."""
    created: dict[int, int] = field(default_factory=dict)
    """Nanoseconds since the epoch at which a call was made, by sequence number."""
    timeout_ms: int | None = None

    @property
    def pending(self) -> int | None:
        """Sequence number of the oldest call that is not over; what is older than a completed one is over as well."""
        done = max((seq for seq, (_, state) in self.collectives.items() if state == COMPLETED), default=-1)
        waiting = (seq for seq, (_, state) in self.collectives.items() if state in (SCHEDULED, STARTED) and seq > done)
        return min(waiting, default=None)

    def recording(self) -> Recording:
        """Return the newest entries in the order of their sequence numbers."""
        table: dict[Call, int] = {}
        kept: list[tuple[int, int, str]] = []
        for seq in sorted(self.collectives, reverse=True)[:MAX_ENTRIES]:
            call, state = self.collectives[seq]
            index = table.setdefault(call, len(table))
            if index >= MAX_CALLS:
                break
            kept.append((seq, index, state))
        kept.reverse()
        return Recording(
            calls=tuple(table)[:MAX_CALLS],
            seq=tuple(seq for seq, _, _ in kept),
            call=tuple(index for _, index, _ in kept),
            state="".join(state for _, _, state in kept),
            transfers=tuple(self.transfers[-MAX_ENTRIES:]),
        )


def by_group(entries: Sequence[Any]) -> list[GroupEntries]:
    """Sort the entries of a dump by process group. What is no entry is left out."""
    groups: dict[tuple[str, str], GroupEntries] = {}
    places = Places()
    seen: set[int] = set()
    for entry in entries[-MAX_LISTED:]:
        if id(entry) in seen:  # a pickle may list one entry a million times
            continue
        seen.add(id(entry))
        if not isinstance(entry, dict):
            continue
        name, description = _group(entry)
        group = groups.get((name, description))
        if group is None:
            if len(groups) >= MAX_GROUPS:
                continue
            group = groups[name, description] = GroupEntries(name, description, whole(entry.get("pg_id")))
        _add(group, entry, places)
    return list(groups.values())


def _add(group: GroupEntries, entry: Mapping[str, Any], places: Places) -> None:
    backend, op, pair = _named(words(entry.get("profiling_name")))
    frames, where = places.stack(entry)
    call = Call(
        op,
        _shapes(entry.get("input_sizes")),
        _shapes(entry.get("output_sizes")),
        _names(entry.get("input_dtypes")),
        _names(entry.get("output_dtypes")),
        where,
    )
    state = _state(entry, backend)
    if pair is not None:
        sizes, dtypes = (call.inputs, call.input_dtypes) if pair[0] else (call.outputs, call.output_dtypes)
        group.transfers.append(Transfer(*pair, _numel(sizes), ",".join(dtypes), state, call.where))
        return
    seq = whole(entry.get("collective_seq_id", entry.get("seq_id")))
    if seq is None or (entry.get("is_p2p") is True):
        return
    known = group.collectives.get(seq)
    group.collectives[seq] = (call, state) if known is None else _merged(known, call, state)
    if known is None or op != _COALESCED:
        group.stacks[seq] = frames
    made = whole(entry.get("time_created_ns"))
    if made is not None:
        group.created.setdefault(seq, made)
    group.timeout_ms = whole(entry.get("timeout_ms")) or group.timeout_ms


def _merged(known: tuple[Call, str], call: Call, state: str) -> tuple[Call, str]:
    """Join calls that were coalesced into one: they share a sequence number and complete together."""
    first, before = known
    joined = Call(
        op=first.op
        if call.op in (_COALESCED, first.op)
        else call.op
        if first.op == _COALESCED
        else f"{first.op}+{call.op}",
        inputs=(*first.inputs, *call.inputs)[:_TENSORS],
        outputs=(*first.outputs, *call.outputs)[:_TENSORS],
        input_dtypes=(*first.input_dtypes, *call.input_dtypes)[:_TENSORS],
        output_dtypes=(*first.output_dtypes, *call.output_dtypes)[:_TENSORS],
        where=first.where or call.where,
    )
    return joined._replace(op=joined.op[:_WORDS]), min(before, state, key=_ORDER.__getitem__)


def _group(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Name and description; versions before 2.0 give only a number."""
    named = entry.get("process_group")
    if isinstance(named, (tuple, list)) and named:
        description = words(named[1]) if len(named) > 1 else ""
        return words(named[0]), "" if description == "undefined" else description
    return words(named) or str(whole(entry.get("pg_id")) or 0), ""


def _state(entry: Mapping[str, Any], backend: str) -> str:
    """How far a call came. Gloo's recorder tells no state and marks a call as retired when it is over."""
    if backend == "gloo":
        return LEFT if entry.get("retired") is True else SCHEDULED
    return _STATES.get(words(entry.get("state")), SCHEDULED)


@lru_cache(maxsize=4096)
def _named(name: str) -> tuple[str, str, tuple[bool, int, int] | None]:
    """Read `nccl:send 0->1` as backend, operation, and who sends to whom."""
    backend, _, op = name.partition(":")
    return backend, op or backend, _pair(op or backend)


def _pair(op: str) -> tuple[bool, int, int] | None:
    """Read `send 0->1` or `recv 1<-0` as (sends, source, destination)."""
    kind, _, ends = op.partition(" ")
    if kind == "send" and "->" in ends:
        source, destination = ends.split("->", 1)
    elif kind == "recv" and "<-" in ends:
        destination, source = ends.split("<-", 1)
    else:
        return None
    if not all(end.isascii() and end.isdigit() and len(end) < 8 for end in (source, destination)):
        return None
    return kind == "send", int(source), int(destination)


def _shapes(sizes: Any) -> Shapes:
    if not isinstance(sizes, (list, tuple)):
        return ()
    shapes = []
    for shape in sizes[:_TENSORS]:
        if isinstance(shape, (list, tuple)):
            found = tuple(shape[:_DIMENSIONS])
            if not _WHOLE.issuperset(map(type, found)) or (found and not 0 <= min(found) <= max(found) < 1 << 62):
                found = tuple(size for size in found if type(size) is int and 0 <= size < 1 << 62)
            shapes.append(found)
    return tuple(shapes)


def _names(dtypes: Any) -> tuple[str, ...]:
    if not isinstance(dtypes, (list, tuple)):
        return ()
    found = tuple(dtypes[:_TENSORS])
    short = _TEXT.issuperset(map(type, found)) and max(map(len, found), default=0) <= _WORDS
    return found if short else tuple(words(item) for item in found)


def _numel(shapes: Shapes) -> int:
    return min(sum(math.prod(shape) for shape in shapes), 1 << 62)


def members(config: Any) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Yield name, description and global ranks of the groups that `pg_config` lists."""
    left = MAX_MEMBERS
    for key, group in list(config.items())[:MAX_GROUPS] if isinstance(config, dict) else ():
        if isinstance(group, dict):
            description = words(group.get("desc"))
            ranks = _listed(group.get("ranks"), min(left, MAX_RANKS))
            left -= len(ranks)
            yield words(group.get("name")) or words(key), "" if description == "undefined" else description, ranks


def _listed(ranks: Any, most: int) -> tuple[int, ...]:
    """Ranks of a group: a list, or its text `[0, 1, 2]`. Empty where there are more than `most`."""
    if isinstance(ranks, str):
        ranks = ranks.strip("[] ").split(",") if len(ranks) <= 8 * most else ()
    if not isinstance(ranks, (list, tuple)) or len(ranks) > most:
        return ()
    found = [whole(item.strip() if isinstance(item, str) else item) for item in ranks]
    return tuple(rank for rank in found if rank is not None and rank < MAX_RANKS)
