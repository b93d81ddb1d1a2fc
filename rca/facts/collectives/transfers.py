"""Sends and receives between pairs of ranks: which of them found no partner, or one that expects something else?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rca.facts.collectives.matching import OTHER_DTYPE, OTHER_SIZE, TRANSFER, Match
from rca.facts.collectives.recorded_calls import Group, Recorded
from rca.recording import COMPLETED, LEFT, Transfer

MAX_PAIRS = 200_000


def unmatched(group: Group, dumped: Mapping[int, bool]) -> Match | None:
    """Return the first pair of ranks in a group whose sends and receives do not fit, in the order of the sources.

    The k-th send from one rank to another meets the k-th receive there. Where a ring was full the beginnings are gone,
    so only what is still open is compared.
    """
    for (source, destination), (sent, received) in sorted(_pairs(group).items())[:MAX_PAIRS]:
        ends = (_global(group, source), _global(group, destination))
        if not all(end in dumped for end in ends):
            continue
        full = any(dumped[end] for end in ends)
        found = _compared(
            group, ends, *([item for item in side if not full or _open(item)] for side in (sent, received))
        )
        if found is not None:
            return found
    return None


def _pairs(group: Group) -> Mapping[tuple[int, int], tuple[list[Transfer], list[Transfer]]]:
    """Return sends and receives for each (source, destination); each side as its own rank recorded it."""
    pairs: dict[tuple[int, int], tuple[list[Transfer], list[Transfer]]] = {}
    for item in group.by_rank.values():
        for transfer in _own(group, item):
            sides = pairs.setdefault((transfer.source, transfer.destination), ([], []))
            sides[0 if transfer.sends else 1].append(transfer)
    return pairs


def _own(group: Group, item: Recorded) -> Iterator[Transfer]:
    for transfer in item.recording.transfers:
        end = transfer.source if transfer.sends else transfer.destination
        if _global(group, end) == item.rank:
            yield transfer


def _global(group: Group, number: int) -> int:
    """Translate a number within the group into a global rank."""
    if not group.members:
        return number
    return group.members[number] if number < len(group.members) else -1


def _compared(
    group: Group, ends: tuple[int, int], sent: Sequence[Transfer], received: Sequence[Transfer]
) -> Match | None:
    source, destination = ends
    for send, receive in zip(sent, received, strict=False):
        for state, a, b in (
            (OTHER_SIZE, send.numel, receive.numel),
            (OTHER_DTYPE, send.dtype, receive.dtype),
        ):
            if a != b:
                unit = " elements" if state == OTHER_SIZE else ""
                says = f"In {group.title}, rank {source} sends {a}{unit}{_at(send)}; rank {destination} "
                says += f"receives {b}{unit}{_at(receive)}."
                return Match(group, state, waiting=ends, says=says)
    common = min(len(sent), len(received))
    left = next((item for item in [*sent[common:], *received[common:]] if _open(item)), None)
    if left is None:
        return None
    waiting, absent = (source, destination) if left.sends else (destination, source)
    did, missing = ("sends to", "receive") if left.sends else ("receives from", "send")
    says = f"In {group.title}, rank {waiting} {did} rank {absent}{_at(left)}, which made no such {missing}."
    return Match(group, TRANSFER, odd=(absent,), waiting=(waiting,), says=says)


def _open(transfer: Transfer) -> bool:
    return transfer.state not in (COMPLETED, LEFT)


def _at(transfer: Transfer) -> str:
    return f" at {transfer.where}" if transfer.where else ""
