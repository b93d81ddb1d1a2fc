"""The report as one self-contained HTML file that reads without scripts."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from rca.diagnosis import Diagnosis, Evidence
from rca.leads import OddLine
from rca.report import measures, words
from rca.report import outline as plan
from rca.report.charts import figures
from rca.report.chronology import FAILURE_ID, Moment, chronology
from rca.report.findings import found, risk, told_once
from rca.report.json_report import DATA_ID, embedded
from rca.report.markdown import summary
from rca.report.scripts import script_place
from rca.report.tables import arm_figures, figure_columns, first_with
from rca.report.translation import translated
from rca.report.trim import fit_to

if TYPE_CHECKING:
    from jinja2 import Environment, FileSystemBytecodeCache, Template

_CODE = re.compile(r"`([^`\n]{1,200})`")
_GAP = re.compile(r"\S {2,}(?=\S)")
TEMPLATES = Path(__file__).parent / "templates"
GENERATOR = "rca"
"""Content of the generator meta tag; a file that carries it may be replaced without asking."""


class HtmlReport:
    """One page: the answer first, then what to change, why, and everything it rests on."""

    name = "html"
    suffix = ".html"

    def render(self, diagnosis: Diagnosis) -> str:
        """The page; shortened, with a notice in it, where it would be too large."""
        spoken = copy_context()
        with words.speaking(words.ENGLISH):  # the notice of what was cut belongs to the data of the page
            return fit_to(diagnosis, lambda version: spoken.run(_page, version))


def _page(saved: Diagnosis) -> str:
    diagnosis = translated(saved)
    script = _asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    with ThreadPoolExecutor(max_workers=1) as beside:
        # in a child process; templates are compiled meanwhile
        charts = beside.submit(copy_context().run, figures, diagnosis)
        template = _templates()
        drawn = charts.result()
    moments = chronology(diagnosis)
    text: str = template.render(
        d=diagnosis,
        plan=plan.outline(diagnosis),
        figures=drawn,
        moments=moments,
        seen_at=_seen_at(diagnosis, moments),
        anchors=Anchors(diagnosis),
        style=Markup(_asset("style.css")),
        script=Markup(script),
        script_hash=digest,
        data=Markup(embedded(saved)),
        data_id=DATA_ID,
        generator=GENERATOR,
        summary=summary(diagnosis),
    )
    return text


def _seen_at(diagnosis: Diagnosis, moments: Sequence[Moment]) -> str:
    """Id of the evidence or of the row of the timeline that shows the failure; nothing where there is none."""
    failure = diagnosis.failure
    if failure is None:
        return ""
    lead = next((h for h in diagnosis.hypotheses if h.cause == diagnosis.verdict.cause), None)
    shown = [item for item in told_once(lead.evidence_for) if item.source] if lead is not None else []
    spots = [(item.id, item.source, item.line) for item in shown]
    spots += [(key, moment.entry.source, moment.entry.line) for moment in moments for key in moment.ids]
    by_id = next((key for key, _, _ in spots if key == failure.evidence), "")
    return by_id or next((key for key, *spot in spots if spot == [failure.source, failure.line]), "")


class Anchors:
    """Ids of evidence and timeline entries, each given out once, so that every link lands."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        self._ids: dict[str, str] = {}
        self._placed: set[str] = set()
        taken: set[str] = set()
        for prefix, key in _anchored(diagnosis):
            if key not in self._ids:
                slug = re.sub(r"[^A-Za-z0-9_-]+", "-", key)[:80]
                slug = slug if slug.startswith(f"{prefix}-") else f"{prefix}-{slug}"
                while slug in taken:
                    slug += "-"
                taken.add(slug)
                self._ids[key] = slug

    def place(self, key: str) -> str:
        """The id for an element, or nothing when it stands on the page already."""
        if key in self._placed:
            return ""
        self._placed.add(key)
        return self._ids.get(key, "")

    def link(self, key: str) -> str:
        """`#ev-...` for something that is on the page, else nothing."""
        return f"#{self._ids[key]}" if key in self._ids else ""


def _anchored(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    for hypothesis in diagnosis.hypotheses:
        for item in (*hypothesis.evidence_for, *hypothesis.evidence_against, *hypothesis.no_data):
            yield "ev", item.id
    for item in diagnosis.verdict.reasons:
        yield "ev", item.id
    for entry in diagnosis.timeline:
        yield "tl", entry.id
    yield "tl", FAILURE_ID


def context_lines(item: Evidence | OddLine) -> list[tuple[int | None, str, bool]]:
    """The lines to show for a piece of evidence: (line number, text, whether it is the line itself)."""
    if item.context:
        return [(line.line, line.text, line.line == item.line) for line in item.context]
    return [(item.line if number == 0 else None, text, True) for number, text in enumerate(item.text.splitlines()[:20])]


def prose(text: str) -> Markup:
    """A sentence with what stands between backticks as code, everything else escaped."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(measures.clean(text)))))


def is_tabular(text: str) -> bool:
    """Whether a line is a row of a table, which must not be broken: three gaps of two or more blanks."""
    return len(_GAP.findall(text[:1_000])) >= 3


@cache
def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _templates() -> Template:
    """The page, with all its parts compiled."""
    environment = _environment()
    for part in environment.list_templates(extensions=["html"]):
        environment.get_template(part)
    return environment.get_template("report.html")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
        bytecode_cache=_cache(),
    )
    environment.filters.update(
        percent=measures.percent,
        number=measures.number,
        signed=measures.signed,
        seconds=measures.seconds,
        size=measures.size,
        moment=measures.moment,
        clock=measures.clock,
        relative=measures.relative,
        ranks=measures.numbers_list,
        one_line=measures.one_line,
        place=plan.place,
        circumstances=plan.circumstances,
        pager=plan.pager_command,
        once=told_once,
        found=found,
        risk=risk,
        context=context_lines,
        strength=words.strength,
        level=words.level,
        prose=prose,
        figure_columns=figure_columns,
        first_with=first_with,
        arm_figures=arm_figures,
        script_place=lambda experiment, diagnosis: script_place(diagnosis, experiment),
    )
    environment.tests.update(command=measures.is_command, tabular=is_tabular)
    environment.globals.update(
        say=words.say,
        word=words.word,
        shown=words.shown,
        count=words.count,
        collect=words.what_to_collect,
        script_words=words.script_words,
        reading_summary=plan.reading_summary,
        redaction=plan.redaction,
        odd_intro=plan.odd_intro,
    )
    return environment


def _cache() -> FileSystemBytecodeCache | None:
    """Compiled templates beside Python's own compiled files, where those may be written: compiling takes 0.3 s."""
    from jinja2 import FileSystemBytecodeCache

    folder = Path(__file__).parent / "__pycache__"
    if sys.dont_write_bytecode or not folder.is_dir() or not os.access(folder, os.W_OK):
        return None
    return FileSystemBytecodeCache(str(folder))


def _shown(value: Any) -> Any:
    """What a template prints: text without control characters; markup is made by us and stays."""
    return measures.clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
