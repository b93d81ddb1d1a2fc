"""Small runs to compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rca.compare.interface import Side
from rca.events import EventBuilder, EventTable
from rca.facts.registry import extract
from rca.ingest.interface import Source


class Made:
    """Builds one run in memory."""

    def __init__(self, name: str = "run") -> None:
        self.name = name
        self._out = EventBuilder("train.log")
        self._logs: list[Source] = []

    def config(self, role: str = "training", **settings: Any) -> Made:
        for key, value in settings.items():
            number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
            self._out.add(
                kind="config", name=key, value=number, text=str(value), line=1, attrs={"key": key, "file_role": role}
            )
        return self

    def packages(self, **versions: str) -> Made:
        for name, version in versions.items():
            self._out.add(kind="package", name=name, text=version)
        return self

    def gpu(self, **attrs: Any) -> Made:
        self._out.add(kind="system", name="system.gpu", attrs={"index": 0, **attrs})
        return self

    def curve(
        self, name: str, values: list[float], *, start: int = 0, every: int = 1, steps: bool = True, unit: str = ""
    ) -> Made:
        for index, value in enumerate(values):
            step = start + index * every if steps else None
            self._out.add(kind="metric", name=name, value=value, step=step, line=index + 1, unit=unit or None)
        return self

    def says(self, name: str, text: str, *, kind: str = "log", severity: str | None = "error", count: int = 1) -> Made:
        role = None if kind == "exception" else "initiating"
        for index in range(count):
            self._out.add(kind=kind, name=name, text=text, severity=severity, role=role, line=index + 1)
        return self

    def log(self, folder: Path, text: str) -> Made:
        file = folder / f"{self.name}.log"
        file.write_text(text, encoding="utf-8")
        self._logs.append(Source(path="train.log", file=file, size=len(text)))
        return self

    def side(self, *, doubts: tuple[str, ...] = ()) -> Side:
        events = EventTable.from_parts([self._out.build()], text_sources=1)
        return Side(
            name=self.name, path=self.name, events=events, facts=extract(events), logs=self._logs, doubts=doubts
        )
