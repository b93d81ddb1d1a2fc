"""Ranks of files whose names alone do not tell them.

`pretrain_812345_17.out` of `srun --output=%x_%j_%t.out` is rank 17, but the number may as well be that of an array
task, a restart or an epoch. So it counts as the rank only where the files say so themselves: some files of the family
are looked into, and each must name its own number as its rank. `attempt_0/3/stderr.log` of torchrun is local rank 3:
where the folders of several nodes lie beside each other, the rank is the one that the file names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rca.ingest.file_names import is_code_name
from rca.ingest.interface import Source
from rca.ingest.places.content import open_source

_NUMBER = re.compile(r"(\d{1,6})(\D{0,12})$")
_SAID = re.compile(rb"(?:(?<![A-Za-z_])|global_)rank[ =:]{0,2}(\d{1,6})(?!\d)", re.I)
"""`RANK=17`, `[rank17]:`, `global_rank: 17`, `rank 17 nranks 64`; a local rank is none."""
_ATTEMPT = re.compile(r"(?:^|/)attempt_\d{1,5}/\d{1,5}/[^/]+$")
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
        if all(_said(sources[index]) == number for number, index in probes):
            for number, index in members:
                ranked[index] = replace(sources[index], rank=number)
    return _global(ranked)


def _global(sources: list[Source]) -> list[Source]:
    """Return the sources with global ranks for the local ones by which launchers of several nodes name folders."""
    nodes: dict[int, str] = {}
    for index, source in enumerate(sources):
        match = _ATTEMPT.search(source.path)
        if match is not None and source.rank is not None:
            nodes[index] = source.path[: match.start()]
    if len(set(nodes.values())) < 2:
        return sources
    said: dict[str, int] = {}
    for index in nodes:
        rank = _said(sources[index])
        if rank is not None:
            said.setdefault(_folder(sources[index]), rank)
    for index in nodes:
        sources[index] = replace(sources[index], rank=said.get(_folder(sources[index])))
    return sources


def _folder(source: Source) -> str:
    return source.path.rpartition("/")[0]


def _said(source: Source) -> int | None:
    """Return the rank that the head of a file names more often than any other; its end where the head names none."""
    try:
        with open_source(source.file) as file:
            found = _SAID.findall(file.read(_HEAD))
            if not found:
                file.seek(max(0, file.seek(0, 2) - _HEAD))
                found = _SAID.findall(file.read(_HEAD))
    except (OSError, ValueError):
        return None
    said = Counter(int(rank) for rank in found).most_common(2)
    return None if not said or (len(said) == 2 and said[0][1] == said[1][1]) else said[0][0]
