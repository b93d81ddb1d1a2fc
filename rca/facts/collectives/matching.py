"""One process group over its ranks: at which collective do they part, who is the odd one, and how far did it come?"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from rca.facts.collectives.recorded_calls import DEFAULT, Group, Recorded
from rca.recording import COMPLETED, LEFT, SCHEDULED, STARTED, Call, Shapes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

NOT_JOINED, OTHER_OPERATION, OTHER_SIZE, OTHER_DTYPE = "not_joined", "other_operation", "other_size", "other_dtype"
NOT_STARTED, NOT_COMPLETED, NOT_DUMPED, COMPLETE = "not_started", "not_completed", "not_dumped", "completed"
TRANSFER, CROSSED = "unmatched_transfer", "crossed_groups"
MISMATCHES = (OTHER_OPERATION, OTHER_SIZE, OTHER_DTYPE)

_UNEVEN = ("all_to_all", "alltoall", "all_gather_v", "reduce_scatter_v", "allgatherv", "reduce_scatterv")
"""Operations in which ranks may bring and take different numbers of elements."""


@dataclass(frozen=True)
class Match:
    """How the ranks of one group stand to each other at the first collective at which they part."""

    group: Group
    state: str
    seq: int | None = None
    call: Call | None = None
    """What the majority called."""
    odd: tuple[int, ...] = ()
    """Ranks that differ from the majority, have not joined, or are named by an unmatched transfer."""
    odd_call: Call | None = None
    waiting: tuple[int, ...] = ()
    """Ranks that are in the collective."""
    undumped: tuple[int, ...] = ()
    """Members without a dump."""
    spread: int = 0
    """Difference of the newest sequence numbers of the ranks."""
    says: str = ""

    @property
    def blames(self) -> tuple[int, ...]:
        """Ranks on which the others depend here."""
        return self.undumped if self.state == NOT_DUMPED else self.odd


def match(group: Group, dumped: Mapping[int, bool]) -> Match | None:
    """Match one group; `dumped` says for each rank with a dump whether its ring was full. None without collectives."""
    members = group.members or (tuple(sorted(dumped)) if group.description == DEFAULT else tuple(sorted(group.by_rank)))
    recorded = {rank: item for rank, item in group.by_rank.items() if item.recording.seq}
    if not recorded:
        return None
    # A rank that recorded nothing here never joined, unless its ring was full and the entries are gone.
    never = [rank for rank in members if rank in dumped and rank not in recorded and not dumped[rank]]
    undumped = tuple(rank for rank in members if rank not in dumped)
    start = max(item.recording.seq[0] for item in recorded.values()) if not never else 0
    ends = [item.recording.seq[-1] for item in recorded.values()]
    spread = max(ends) - (min(ends) if not never else 0)
    parted = _parted(recorded, start)
    absent = _first_absent(recorded, never, start)
    pending = min((item.pending for item in recorded.values() if item.pending is not None), default=None)
    if parted is not None and (absent is None or parted < absent):
        found = _mismatch(group, recorded, parted)
    elif absent is not None:
        found = _not_joined(group, recorded, never, absent)
    elif pending is not None and pending >= start:
        found = _in_flight(group, recorded, pending, undumped)
    else:
        newest = max(recorded.values(), key=lambda item: item.recording.seq[-1])
        says = f"All collectives of {group.title} that were recorded are over."
        found = Match(group, COMPLETE, newest.last, newest.call_at(newest.last), says=says)
    return Match(**{**found.__dict__, "undumped": undumped, "spread": spread})


def _columns(recorded: Mapping[int, Recorded], start: int, key: Callable[[Call], object]) -> tuple[Integers, Integers]:
    """Return sequence numbers and the code of `key` of the call for all different entries from `start` on.

    Ranks that recorded the same share one recording, which is looked at once.
    """
    import numpy as np

    codes: dict[object, int] = {}
    seqs, values = [], []
    for recording in {id(item.recording): item.recording for item in recorded.values()}.values():
        table = np.array([codes.setdefault(key(call), len(codes)) for call in recording.calls], dtype=np.int32)
        seq = np.array(recording.seq, dtype=np.int64)
        keep = seq >= start
        seqs.append(seq[keep])
        values.append(table[np.array(recording.call, dtype=np.int64)[keep]])
    return np.concatenate(seqs), np.concatenate(values)


def _parted(recorded: Mapping[int, Recorded], start: int) -> int | None:
    """Return the first sequence number at which ranks made different calls."""
    import numpy as np

    seq, code = _columns(recorded, start, signature)
    if not len(seq):
        return None
    order = np.argsort(seq, kind="stable")
    seq, code = seq[order], code[order]
    first = np.flatnonzero(np.r_[True, seq[1:] != seq[:-1]])
    differs = np.minimum.reduceat(code, first) != np.maximum.reduceat(code, first)
    return int(seq[first[differs][0]]) if differs.any() else None


def _first_absent(recorded: Mapping[int, Recorded], never: Sequence[int], start: int) -> int | None:
    """Return the first collective that a rank has not joined and that nobody has completed.

    One that others completed was joined after the dump of the rank was taken.
    """
    low = 0 if never else min(item.recording.seq[-1] for item in recorded.values())
    ahead = [item for item in recorded.values() if item.recording.seq[-1] > low]
    done = max((_completed(item) for item in ahead), default=-1)
    after = max(low, done, start - 1)
    places = [(item.recording.seq, bisect_right(item.recording.seq, after)) for item in ahead]
    return min((seq[place] for seq, place in places if place < len(seq)), default=None)


def _completed(item: Recorded) -> int:
    position = item.recording.state.rfind(COMPLETED)
    return item.recording.seq[position] if position >= 0 else -1


def _mismatch(group: Group, recorded: Mapping[int, Recorded], seq: int) -> Match:
    calls = {rank: call for rank, item in recorded.items() if (call := item.call_at(seq)) is not None}
    votes = Counter(signature(call) for call in calls.values())
    key, count = votes.most_common(1)[0]
    clear = count > len(calls) / 2
    odd = tuple(sorted(rank for rank, call in calls.items() if signature(call) != key)) if clear else ()
    usual = next(call for call in calls.values() if signature(call) == key)
    other = next(call for call in calls.values() if signature(call) != key)
    state = next(
        state
        for state, part in zip(MISMATCHES, range(3), strict=True)
        if signature(usual)[part] != signature(other)[part]
    )
    rest = [rank for rank in calls if signature(calls[rank]) == key]
    them = odd if clear else [rank for rank, call in calls.items() if call == other]
    says = f"In {group.title}, collective #{seq} is {describe(usual)} on {ranks_of(rest)} "
    says += f"and {describe(other)} on {ranks_of(them)}" + (f", called at {other.where}." if other.where else ".")
    return Match(group, state, seq, usual, odd, other, tuple(sorted(rest)), says=says)


def _not_joined(group: Group, recorded: Mapping[int, Recorded], never: Sequence[int], seq: int) -> Match:
    present = [rank for rank, item in recorded.items() if item.call_at(seq) is not None]
    odd = tuple(sorted([*never, *(rank for rank, item in recorded.items() if item.recording.seq[-1] < seq)]))
    call = recorded[present[0]].call_at(seq)
    first = recorded.get(odd[0]) if odd else None
    last = None if first is None else first.call_at(first.last)
    what = f"{call.op if call is not None else 'collective'} #{seq}"
    wait = "waits" if len(present) == 1 else "wait"
    says = f"In {group.title}, {ranks_of(odd)} did not join {what}, in which {ranks_of(present)} {wait}."
    if last is not None and first is not None:
        says += f" The last call of rank {first.rank} there was {last.op} #{first.last}"
        says += f" at {last.where}." if last.where else "."
    return Match(group, NOT_JOINED, seq, call, odd, last, tuple(sorted(present)), says=says)


def _in_flight(group: Group, recorded: Mapping[int, Recorded], seq: int, undumped: Sequence[int]) -> Match:
    """All ranks with a dump are in the same collective; it did not end."""
    states = {rank: _state(item, seq) for rank, item in recorded.items()}
    waiting = tuple(sorted(rank for rank, state in states.items() if state in (SCHEDULED, STARTED)))
    call = recorded[waiting[0]].call_at(seq) if waiting else None
    what = f"{describe(call)} #{seq}" if call is not None else f"collective #{seq}"
    if undumped:
        says = f"In {group.title}, all ranks with a dump are in {what}; {ranks_of(undumped)} left no dump."
        return Match(group, NOT_DUMPED, seq, call, (), None, waiting, says=says)
    if call is not None and _uneven_totals(recorded, seq, call):
        says = f"In {group.title}, the ranks send and expect different numbers of elements in {what}."
        return Match(group, OTHER_SIZE, seq, call, (), call, waiting, says=says)
    queued = [rank for rank in waiting if states[rank] == SCHEDULED]
    if queued and len(queued) < len(states):
        says = (
            f"In {group.title}, {what} has started on other ranks; on {ranks_of(queued)} the device is not there yet."
        )
        minority = tuple(queued) if len(queued) * 2 < len(states) else ()
        return Match(group, NOT_STARTED, seq, call, minority, call, waiting, says=says)
    says = f"In {group.title}, all ranks are in {what} with the same arguments and it did not complete."
    return Match(group, NOT_COMPLETED, seq, call, (), None, waiting, says=says)


def _state(item: Recorded, seq: int) -> str:
    if _completed(item) >= seq:
        return COMPLETED
    if seq not in item.recording.seq:
        return LEFT
    return item.recording.state[item.recording.seq.index(seq)]


def _uneven_totals(recorded: Mapping[int, Recorded], seq: int, call: Call) -> bool:
    """What all ranks send in an exchange must be what all ranks expect."""
    if not call.op.startswith(("all_to_all", "alltoall")):
        return False
    calls = [found for item in recorded.values() if (found := item.call_at(seq)) is not None]
    sent, expected = sum(_numel(found.inputs) for found in calls), sum(_numel(found.outputs) for found in calls)
    return sent != expected and all(found.inputs and found.outputs for found in calls)


@lru_cache(maxsize=65_536)
def signature(call: Call) -> tuple[str, object, object]:
    """Return what must be alike on all ranks: operation, number of elements, and type of the elements."""
    op = call.op
    inputs: object = tuple(_numel((shape,)) for shape in call.inputs)
    outputs: object = tuple(_numel((shape,)) for shape in call.outputs)
    types_in, types_out = frozenset(call.input_dtypes), frozenset(call.output_dtypes)
    if op.startswith("barrier"):
        return op, None, None
    if op.startswith(_UNEVEN) or "_v" in op:
        return op, None, types_in | types_out
    if op.startswith("scatter"):  # only the root brings something
        return op, outputs, types_out
    if op.startswith("gather"):  # only the root receives something
        return op, inputs, types_in
    return op, (inputs, outputs), (types_in, types_out)


def describe(call: Call) -> str:
    """Write a call as `all_reduce of [10] Float`."""
    shapes = call.inputs or call.outputs
    if not shapes:
        return call.op
    shown = ", ".join(str(list(shape)) for shape in shapes[:3]) + (", ..." if len(shapes) > 3 else "")
    return f"{call.op} of {shown} {'/'.join(sorted(set(call.input_dtypes or call.output_dtypes))[:3])}".rstrip()


def _numel(shapes: Shapes) -> int:
    return sum(math.prod(shape) for shape in shapes)


def ranks_of(ranks: Iterable[int]) -> str:
    """Write ranks as `rank 3` or `ranks 0, 1`, at most eight of them."""
    found = sorted(ranks)
    return f"rank {found[0]}" if len(found) == 1 else f"ranks {_listing(found)}"


def _listing(ranks: Sequence[int]) -> str:
    shown = ", ".join(str(rank) for rank in sorted(ranks)[:8])
    return shown if len(ranks) <= 8 else f"{shown} and {len(ranks) - 8} more"
