"""The lines that stand out: loud ones that no rule knows, and rare ones where the run ended."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rca.ingest.interface import Source
from rca.ingest.logs.prefixes import PrefixParser, label_of, strip_colours
from rca.ingest.logs.timestamps import Clock, first_full_date
from rca.templates.drain import Drain
from rca.templates.masking import masked
from rca.unexplained.excerpts import Excerpt, Place
from rca.unexplained.marks import LOUDNESS, Mark, is_frame, mark

CANDIDATES = 120
"""Templates that are looked up by line number among what is known."""
QUIET = 3
"""Most lines shown that stand out by nothing but their rarity."""
SHAPES = 4000
"""Lines that differ in more than digits and are put to the template tree; those near the failure go first."""
NEAR = 32 << 10
"""Bytes before the end of a log, or around the failure, that count as near; a quarter of a short log."""
COMMON = 0.02
"""Share of the lines from which a message is what the job says all the time (and at least ten times)."""
_DIGITS = b"0123456789"
_PLACES = 16


class Spot(NamedTuple):
    """One line of one source."""

    source: int
    """Index among the excerpts."""
    place: Place


@dataclass
class Kind:
    """Lines of one template."""

    mark: Mark
    count: int = 0
    first: dict[int, Spot] = field(default_factory=dict)
    """The first of each source."""
    nearby: dict[int, Spot] = field(default_factory=dict)
    """The first of each source that stands where the run failed or ended."""
    shape: str = ""

    @property
    def near(self) -> bool:
        """Whether one of them stands where the run failed or ended."""
        return bool(self.nearby)

    @property
    def spots(self) -> Mapping[int, Spot]:
        """Those to show: what is loud by its first, what is only rare by those that are near."""
        return self.first if self.mark else self.nearby


@dataclass(frozen=True)
class Odd:
    """A line that stands out, with the others like it."""

    source: Source
    offset: int
    text: str
    message: str
    """The line without what loggers and launchers put in front of it."""
    mark: Mark
    near: bool
    count: int
    template: str
    time: int | None = None
    rank: int | None = None
    host: str | None = None
    ranks: tuple[int, ...] = ()


class Looked(NamedTuple):
    """Everything that was seen in the excerpts."""

    kinds: list[Kind]
    lines: int


def look(excerpts: Sequence[Excerpt], *, around: Mapping[str, int], told: AbstractSet[tuple[str, int]]) -> Looked:
    """Group the lines of the excerpts by template; `told` are (source, offset) of exceptions whatever their words."""
    shapes: dict[bytes, Kind] = {}
    lines = 0
    for index, excerpt in enumerate(excerpts):
        window = min(NEAR, max(2048, excerpt.size // 4))
        failed = around.get(excerpt.source.path)
        for place in excerpt.places:
            lines += 1
            shape = place.raw.translate(None, _DIGITS)[:1024]
            kind = shapes.get(shape)
            if kind is None:
                kind = shapes[shape] = Kind(mark="")
            kind.count += 1
            near = excerpt.size - place.offset <= window or (
                failed is not None and abs(place.offset - failed) <= window
            )
            for spots in (kind.first, kind.nearby) if near else (kind.first,):
                if index not in spots and len(spots) < _PLACES:
                    spots[index] = Spot(index, place)
    told_shapes = {
        place.raw.translate(None, _DIGITS)[:1024]
        for excerpt in excerpts
        for place in excerpt.places
        if (excerpt.source.path, place.offset) in told
    }
    return Looked(_joined(shapes, told_shapes), lines)


def _joined(shapes: Mapping[bytes, Kind], told: AbstractSet[bytes]) -> list[Kind]:
    """Join shapes of the same template; those near the failure found the templates."""
    drain, parser = Drain(), PrefixParser(Clock(None))
    joined: dict[int | bytes, Kind] = {}
    order = sorted(shapes.items(), key=lambda item: not item[1].near)
    for shape, kind in order[:SHAPES]:
        text = decoded(next(iter(kind.first.values())).place.raw)
        group = drain.add(masked(parser.parse(text, 0).message))
        loud: Mark = "exception" if shape in told else mark(text)
        same = joined.setdefault(shape if group is None else group.number, Kind(mark=loud))
        same.mark = max(same.mark, loud, key=LOUDNESS.__getitem__)
        same.shape = "" if group is None else group.text
        same.count += kind.count
        for mine, theirs in ((same.first, kind.first), (same.nearby, kind.nearby)):
            for index, spot in theirs.items():
                if index not in mine or spot.place.offset < mine[index].place.offset:
                    mine[index] = spot
    return list(joined.values())


def candidates(looked: Looked) -> list[Kind]:
    """Return the templates that may matter, loudest, rarest and nearest first."""
    found = [kind for kind in looked.kinds if kind.mark or (kind.near and not _common(kind, looked.lines))]
    found.sort(key=lambda kind: (-_tier(kind, looked.lines), _rarity(kind), min(kind.first)))
    return found[:CANDIDATES]


def _tier(kind: Kind, lines: int) -> int:
    return LOUDNESS[kind.mark] - (not kind.near) - _common(kind, lines)


def _common(kind: Kind, lines: int) -> bool:
    return kind.count >= 10 and kind.count >= COMMON * lines


def _rarity(kind: Kind) -> int:
    """0 for a line that stands there once, 1 for a few, 2 from ten on, and so forth by powers of ten."""
    return 0 if kind.count == 1 else 1 + int(math.log10(kind.count))


def odd_lines(
    looked: Looked,
    kinds: Sequence[Kind],
    excerpts: Sequence[Excerpt],
    *,
    unknown: AbstractSet[tuple[str, int]],
    first: str,
    most: int,
) -> list[Odd]:
    """Return the lines to show: by loudness and rarity, then those of the source that failed first, then by time.

    `unknown` holds (source, offset) of the lines that no rule knows; `first` is the path of that source.
    """
    parsers: dict[int, PrefixParser] = {}
    ranked: list[tuple[tuple[float, ...], Odd]] = []
    for kind in kinds:
        spots = [
            spot
            for spot in kind.spots.values()
            if (excerpts[spot.source].source.path, spot.place.offset) in unknown
            and not is_frame(decoded(spot.place.raw), decoded(spot.place.before))
        ]
        if not spots:
            continue
        found = [_odd(kind, spot, excerpts, parsers) for spot in spots]
        found.sort(key=lambda odd: (odd.source.path != first, odd.time is None, odd.time or 0))
        ranks = {odd.rank for odd in found if odd.rank is not None}
        lead = replace(found[0], ranks=tuple(sorted(ranks)))
        when = math.inf if lead.time is None else float(lead.time)
        quiet = not kind.mark
        key = (
            -_tier(kind, looked.lines),
            _rarity(kind),
            lead.source.path != first,
            0.0 if quiet else when,
            spots[0].source,
            -lead.offset if quiet else lead.offset,
        )
        ranked.append((key, lead))
    return list(_few_quiet([odd for _, odd in sorted(ranked, key=lambda item: item[0])], most))


def _few_quiet(ranked: Sequence[Odd], most: int) -> Iterator[Odd]:
    quiet = shown = 0
    for odd in ranked:
        if shown < most and (odd.mark or quiet < QUIET):
            quiet += not odd.mark
            shown += 1
            yield odd


def _odd(kind: Kind, spot: Spot, excerpts: Sequence[Excerpt], parsers: dict[int, PrefixParser]) -> Odd:
    excerpt = excerpts[spot.source]
    parser = parsers.get(spot.source)
    if parser is None:
        clock = Clock(first_full_date(excerpt.head), year_from=excerpt.source.known_time)
        sample = [decoded(place.raw) for place in excerpt.places[:200]]
        parser = parsers[spot.source] = PrefixParser(clock, label=label_of(sample))
    text = decoded(spot.place.raw)
    prefix = parser.parse(text, 0)
    return Odd(
        source=excerpt.source,
        offset=spot.place.offset,
        text=text.rstrip(),
        message=prefix.message.strip(),
        mark=kind.mark,
        near=kind.near,
        count=kind.count,
        template=kind.shape,
        time=prefix.time,
        rank=excerpt.source.rank if prefix.rank is None else prefix.rank,
        host=prefix.host or excerpt.source.host,
    )


def decoded(raw: bytes) -> str:
    """Return bytes of one line as text without colours."""
    return strip_colours(raw.decode("utf-8", errors="replace")).replace("\0", "")
