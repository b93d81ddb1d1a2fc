"""Links between devices: `nvidia-smi nvlink -s` and `-e`, and the matrix of `nvidia-smi topo -m`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_line, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.tables.cells import whole

_GPU = re2.compile(r"GPU (\d{1,3}): (\S.*?) \(UUID: ([^)\s]+)\)")
_SPEED = re2.compile(r"\s*Link (\d{1,2}): (?:([\d.]+) GB/s|<(inactive)>)\s*")
_ERRORS = re2.compile(r"\s*Link (\d{1,2}): (Replay|Recovery|CRC(?: FLIT| Data)?) Errors?: (\d{1,15})\s*")
_LOOK_BACK = 60
_GPU_HEAD = re2.compile(r"GPU\d{1,3}")
_KINDS = ("SYS", "NODE", "PHB", "PXB", "PIX")
"""Links without NVLink, slowest first (legend of `nvidia-smi topo -m`)."""


class NvlinkParser:
    """Adds one `system.nvlink` a device: how many of its links are active, and the errors they counted."""

    name = "nvidia-smi nvlink"
    triggers: tuple[str, ...] = (
        r"^\s*Link \d{1,2}: (?:[\d.]+ GB/s|<inactive>)\s*$",
        r"^\s*Link \d{1,2}: (?:Replay|Recovery|CRC[\w ]*) Errors?: \d",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the links of the device that is named above `line`."""
        owner = next(
            (found for place in range(line, max(0, line - _LOOK_BACK), -1) if (found := _owner(document, place))), {}
        )
        active: set[int] = set()
        inactive: set[int] = set()
        errors: Counter[str] = Counter()
        worst: dict[str, int] = {}
        end = line + 1
        for place, text in table_lines(document, line, most=400):
            if (speed := _SPEED.fullmatch(text)) is not None:
                (inactive if speed[3] else active).add(whole(speed[1]) or 0)
            elif (error := _ERRORS.fullmatch(text)) is not None:
                kind = f"{error[2].split(' ')[0].lower()}_errors"
                errors[kind] += whole(error[3]) or 0
                worst[error[1]] = worst.get(error[1], 0) + (whole(error[3]) or 0)
            elif text.strip():
                break
            end = place + 1
        attrs: dict[str, Any] = {**owner, **errors}
        if active or inactive:
            attrs |= {"active": len(active), "inactive": len(inactive), "inactive_links": sorted(inactive)}
        if any(errors.values()):
            attrs["worst_link"] = whole(max(worst, key=lambda link: worst[link]))
        value = float(len(active)) if active or inactive else None
        add_system(out, document, line, name="system.nvlink", value=value, attrs=attrs)
        return claim(document, line, end)


def _owner(document: Document, place: int) -> dict[str, Any]:
    match = _GPU.match(table_line(document, place).strip())
    return {} if match is None else {"gpu": whole(match[1]), "name": match[2], "uuid": match[3]}


class TopologyParser:
    """Adds `system.topology`: what joins the devices of a host, and the pairs that are joined worse than the rest."""

    name = "nvidia-smi topo"
    triggers: tuple[str, ...] = (r"^\s+GPU0\s+(?:GPU1|NIC0|mlx5_0|CPU Affinity)",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the matrix whose head stands at `line`."""
        heads = table_line(document, line).split()
        pairs: dict[str, str] = {}
        gpus: list[str] = []
        end = line + 1
        for place, text in table_lines(document, line + 1, most=200):
            words = text.split()
            if not words or not _GPU_HEAD.fullmatch(words[0]):
                break
            gpus.append(words[0])
            for head, cell in zip(heads, words[1:], strict=False):
                if _GPU_HEAD.fullmatch(head) and head not in gpus:
                    pairs[f"{words[0]}-{head}"] = cell
            end = place + 1
        if not gpus:
            return line
        kinds = Counter(pairs.values())
        usual = kinds.most_common(1)[0][0] if kinds else None
        worse = [pair for pair, kind in pairs.items() if usual is not None and _speed(kind) < _speed(usual)]
        attrs: dict[str, Any] = {"gpus": len(gpus), "links": dict(kinds), "usual": usual, "worse": worse[:20]}
        add_system(out, document, line, name="system.topology", text=usual, attrs=attrs)
        return claim(document, line, end)


def _speed(kind: str) -> int:
    """Return a number that is larger for a faster link."""
    if kind.startswith("NV"):
        return len(_KINDS) + (whole(kind.removeprefix("NV")) or 0)
    return _KINDS.index(kind) if kind in _KINDS else 0
