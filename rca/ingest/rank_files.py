"""Ranks of files that only carry a number: `pretrain_812345_17.out` of `srun --output=%x_%j_%t.out` is rank 17.

The number may as well be that of an array task, a restart or an epoch, so it counts as the rank only where the files
say so themselves: some files of the family are looked into, and each must name its own number as its rank.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rca.ingest.content import open_source
from rca.ingest.file_names import is_code_name
from rca.ingest.interface import Source

_NUMBER = re.compile(r"(\d{1,6})(\D{0,12})$")
_SAID = re.compile(rb"(?:(?<![A-Za-z_])|global_)rank[ =:]{0,2}(\d{1,6})(?!\d)", re.I)
"""`RANK=17`, `[rank17]:`, `global_rank: 17`, `rank 17 nranks 64`; a local rank is none."""
_HEAD = 1 << 16


def with_ranks(sources: Sequence[Source]) -> list[Source]:
    """Return the sources, with the rank of those whose number in the name is one by their own words."""
    families: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for index, source in enumerate(sources):
        match = _NUMBER.search(source.path)
        if source.rank is None and match is not None and not is_code_name(source.path):
            family = (source.path[: match.start()], match[2])
            families.setdefault(family, []).append((int(match[1]), index))
    ranked = list(sources)
    for members in families.values():
        members.sort()
        numbers = [number for number, _ in members]
        if len(members) < 2 or len(set(numbers)) < len(members):
            continue
        probes = {members[0], members[len(members) // 2], members[-1]}
        if all(_says(sources[index], number) for number, index in probes):
            for number, index in members:
                ranked[index] = replace(sources[index], rank=number)
    return ranked


def _says(source: Source, number: int) -> bool:
    """Say whether the head of a file names this rank more often than any other."""
    try:
        with open_source(source.file) as file:
            said = Counter(int(rank) for rank in _SAID.findall(file.read(_HEAD)))
    except (OSError, ValueError):
        return False
    most = max(said.values(), default=0)
    return most > 0 and said[number] == most and list(said.values()).count(most) == 1
