"""Small event tables for the tests of facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rca.events import EventBuilder, EventTable
from rca.facts.interface import Fact
from rca.facts.registry import extract

SECOND = 1_000_000
START = 1_700_000_000 * SECOND


class Run:
    """Collects sources and joins them to an event table."""

    def __init__(self) -> None:
        self._builders: dict[tuple[str, int | None], EventBuilder] = {}
        self._lines: dict[str, int] = {}

    def source(self, name: str, rank: int | None = None) -> EventBuilder:
        return self._builders.setdefault((name, rank), EventBuilder(name, rank=rank))

    def line(self, name: str) -> int:
        self._lines[name] = self._lines.get(name, 0) + 1
        return self._lines[name]

    def curves(
        self,
        curves: Mapping[str, Sequence[float]],
        *,
        every: int = 1,
        start: int = 0,
        source: str = "train.log",
        rank: int | None = None,
        seconds: float | None = None,
        steps: bool = True,
    ) -> Run:
        """Add metrics, one log line a point; `seconds` between the lines gives them times."""
        builder = self.source(source, rank)
        for index in range(max(len(values) for values in curves.values())):
            line = self.line(source)
            time = None if seconds is None else START + int(index * seconds * SECOND)
            for metric, values in curves.items():
                if index < len(values) and values[index] is not None:
                    step = start + index * every if steps else None
                    builder.add(kind="metric", name=metric, value=float(values[index]), step=step, line=line, time=time)
        return self

    def config(self, source: str = "config.json", **settings: Any) -> Run:
        builder = self.source(source)
        for key, value in settings.items():
            plain = isinstance(value, (int, float)) and not isinstance(value, bool)
            builder.add(
                kind="config",
                name=key,
                value=float(value) if plain else None,
                text=str(value).lower() if isinstance(value, bool) else str(value),
                line=self.line(source),
                attrs={"key": key, "value": value},
            )
        return self

    def log(
        self,
        name: str,
        text: str = "",
        *,
        role: str | None = "initiating",
        severity: str = "error",
        source: str = "train.log",
        rank: int | None = None,
        after: float | None = None,
        **attrs: Any,
    ) -> Run:
        """Add a signature event, `after` seconds after the start."""
        self.source(source, rank).add(
            kind="log",
            name=name,
            text=text or name,
            role=role,
            severity=severity,
            line=self.line(source),
            time=None if after is None else START + int(after * SECOND),
            attrs=attrs,
        )
        return self

    def raised(
        self,
        name: str,
        text: str = "",
        *,
        frames: Sequence[tuple[str, str]] = (),
        source: str = "train.log",
        rank: int | None = None,
        after: float | None = None,
    ) -> Run:
        """Add an exception whose frames are (function, code), outermost first."""
        stack = [
            {"file": f"/app/part{index}.py", "line": index + 1, "function": function, "code": code}
            for index, (function, code) in enumerate(frames)
        ]
        self.source(source, rank).add(
            kind="exception",
            name=name,
            text=text,
            severity="error",
            line=self.line(source),
            time=None if after is None else START + int(after * SECOND),
            attrs={"frames": stack, "type": name, "message": text, "user_frame": stack[0] if stack else None},
        )
        return self

    def exited(
        self,
        code: int,
        *,
        source: str = "launcher.log",
        rank: int | None = None,
        after: float | None = None,
        **attrs: Any,
    ) -> Run:
        self.source(source, rank).add(
            kind="process",
            name="process.exit",
            value=float(code),
            severity="info" if code == 0 else "error",
            line=self.line(source),
            time=None if after is None else START + int(after * SECOND),
            attrs=attrs,
        )
        return self

    def table(self, *, text_sources: int = 1) -> EventTable:
        parts = [builder.build() for builder in self._builders.values()]
        return EventTable.from_parts(parts, text_sources=text_sources)

    def facts(self, *, text_sources: int = 1) -> dict[str, Fact]:
        return dict(extract(self.table(text_sources=text_sources)))

    def values(self, *, text_sources: int = 1) -> dict[str, Any]:
        return {name: fact.value for name, fact in self.facts(text_sources=text_sources).items()}


def decay(count: int = 200, start: float = 4.0, end: float = 2.0, noise: float = 0.03, seed: int = 0) -> np.ndarray:
    """A healthy loss curve."""
    progress = np.linspace(0, 1, count)
    return end + (start - end) * np.exp(-5 * progress) + np.random.default_rng(seed).normal(0, noise, count)


def around(level: float, count: int = 200, noise: float = 0.03, seed: int = 1) -> np.ndarray:
    """A flat curve with relative noise."""
    return level * (1 + np.random.default_rng(seed).normal(0, noise, count))


def joined(*parts: Sequence[float]) -> list[float]:
    return [float(value) for part in parts for value in part]
