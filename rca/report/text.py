"""The summary for the terminal, in the shape of compiler messages."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator

from rca.baseline import Baseline
from rca.diagnosis import Diagnosis, Evidence, Fix
from rca.report.colour import paint
from rca.report.findings import told_once, verdict_words
from rca.report.measures import clean, one_line, percent, seconds
from rca.report.outline import Candidate, Outline, circumstance_list, outline, place, reading_summary
from rca.report.scripts import script_place
from rca.report.tables import first_with
from rca.report.text_more import about, more, said
from rca.report.translation import translated
from rca.report.words import count, say, what_to_collect
from rca.report.wrapping import columns, cut, wrapped

LEVELS = {"confirmed": "error", "suspected": "error", "unknown": "unknown", "none": "ok"}
REASONS = 3
"""Reasons shown; the report holds all."""
_COMMAND = re.compile(r"(?P<says>[^`]+[.。])\s*`(?P<command>[^`]+)`")
"""A step that ends in the command that takes it, which no line may break."""
WINDOW = 4
"""Rows of what was observed."""
DIFFERENCES = 4
"""Differences from a healthy run shown."""


class TextReport:
    """Plain text of at most `width` columns; only snippets and commands, which are for copying, may be longer."""

    name = "text"
    suffix = ".txt"

    def __init__(self, *, colour: bool = False, width: int = 80, verbose: int = 0, folder: str = "") -> None:
        self.colour = colour
        self.width = max(40, width)
        self.verbose = verbose
        """1: all evidence, fixes, candidates and warnings; 2: also the log of the rounds, the files and the times."""
        self.folder = folder
        """Folder of the report, as seen from where the summary is read: the scripts lie there."""

    def render(self, diagnosis: Diagnosis) -> str:
        """The verdict, where it showed, why, and what to do."""
        diagnosis = translated(diagnosis)
        plan = outline(diagnosis)
        blocks = [
            *self._headline(diagnosis),
            *self._window(diagnosis, plan),
            *self._reasons(plan),
            *self._unlike(diagnosis.baseline),
            *self._experiments(diagnosis, plan),
            *self._untested(diagnosis, plan),
            *self._odd(diagnosis),
            *self._fixes(plan),
            *(line for label, text in more(diagnosis, plan, self.verbose) for line in self._note(label, text)),
            *self._closing(diagnosis, plan),
        ]
        return "\n".join(line.rstrip() for line in blocks) + "\n"

    def _headline(self, diagnosis: Diagnosis) -> Iterator[str]:
        verdict = diagnosis.verdict
        level = LEVELS[verdict.status]
        code = f"[{verdict.cause}]" if level == "error" else ""
        head = f"{say('text.level_' + level)}{code}: "
        first, *rest = wrapped(one_line(verdict.sentence), self.width, first=head) or [head]
        yield paint(first[: len(head)].rstrip(), level, on=self.colour) + paint(
            first[len(head.rstrip()) :], "strong", on=self.colour
        )
        for line in rest:
            yield paint(line, "strong", on=self.colour)
        standing = say("answer.undecided")
        if verdict.status != "unknown":
            status = say("status." + verdict.status).lower()
            sure, words = percent(verdict.probability), one_line(verdict.words)
            standing = say("text.standing", probability=sure, words=words, status=status)
        yield paint(f"   {standing}", "quiet", on=self.colour)

    def _window(self, diagnosis: Diagnosis, plan: Outline) -> Iterator[str]:
        failure = diagnosis.failure
        shown = next((e for e in _evidence(plan.lead) if failure and e.id == failure.evidence), None)
        at = failure or shown
        if at is None:
            return
        where = one_line(place(at)) or say("text.observed")
        for parts in _ever_fewer([one_line(part) for part in circumstance_list(at)]):
            line = f"{where}  ({say('list.clause').join(parts)})" if parts else where
            if columns(line) <= self.width - 6:
                break
        yield paint("  --> ", "place", on=self.colour) + line[: self.width - 6]
        bar = paint("   | ", "place", on=self.colour)
        text = shown.text if shown and shown.text else failure.what if failure else ""
        yield bar
        rows = [row for part in clean(text).splitlines() for row in wrapped(one_line(part), self.width - 5) or [""]]
        for row in rows[: WINDOW - 1] + ([" ".join(rows[WINDOW - 1 :])] if len(rows) >= WINDOW else []):
            yield bar + cut(row, self.width - 5)
        yield bar

    def _reasons(self, plan: Outline) -> Iterator[str]:
        lead = plan.lead.hypothesis if plan.lead else None
        if lead is None:
            return
        strongest = told_once(lead.evidence_for)[: None if self.verbose else REASONS]
        for item in strongest:
            yield from self._note(say("text.because"), said(item, verbose=self.verbose))
        for item in sorted(lead.evidence_against, key=lambda e: e.weight)[: None if self.verbose else 1]:
            yield from self._note(say("text.but"), said(item, verbose=self.verbose))
        if plan.lead and plan.lead.symptoms:
            yield from self._note(say("text.explains"), ", ".join(symptom.cause for symptom in plan.lead.symptoms))

    def _unlike(self, baseline: Baseline | None) -> Iterator[str]:
        if baseline is None:
            return
        label = say("text.unlike", name=one_line(baseline.name, limit=30))
        unset = say("baseline.unset")
        told = [
            f"{item.name} {one_line(unset if item.value is None else item.value, limit=40)} "
            f"({one_line(unset if item.baseline is None else item.baseline, limit=40)})"
            for item in baseline.differences[:DIFFERENCES]
        ]
        if len(baseline.differences) > DIFFERENCES:
            told.append(say("baseline.more", count=len(baseline.differences) - DIFFERENCES))
        parts = next((line.says for line in baseline.curves if line.parts_at is not None), "")
        said = "; ".join(part for part in (", ".join(told), parts) if part)
        yield from self._note(label, said or say("baseline.none"))
        for note in baseline.notes:
            yield from self._note(label, note)

    def _untested(self, diagnosis: Diagnosis, plan: Outline) -> Iterator[str]:
        """Why no experiment decided about the leading cause, if one was to."""
        lead = plan.lead.hypothesis if plan.lead else None
        if lead is None or diagnosis.verdict.status != "suspected":
            return
        for experiment in [item for item in plan.untried if lead.cause in item.tests][:1]:
            yield from self._note(say("text.untested"), f"{experiment.title}{say('colon')}{experiment.reason}")

    def _experiments(self, diagnosis: Diagnosis, plan: Outline) -> Iterator[str]:
        for experiment in plan.tried:
            told = say("experiment.told", title=experiment.title, verdict=verdict_words(experiment))
            yield from self._note(say("text.tested"), f"{told} {experiment.reason} ({seconds(experiment.seconds)})")
            table = experiment.table
            if table is not None and table.paste and first_with(table, plan.tried) is experiment:
                yield from self._note(say("text.paste"), say("table.paste_how"))
                yield from (" " * 10 + line for line in clean(table.paste).splitlines())
            if experiment.script:
                script = posixpath.normpath(posixpath.join(self.folder, script_place(diagnosis, experiment)))
                yield self._label(say("text.script")) + f"python {shlex.quote(one_line(script, limit=4096))}"

    def _fixes(self, plan: Outline) -> Iterator[str]:
        for fix in plan.lead.hypothesis.fixes[: None if self.verbose else 2] if plan.lead else ():
            yield from self._fix(fix)

    def _fix(self, fix: Fix) -> Iterator[str]:
        yield from self._note(say("text.fix"), about(fix) if self.verbose else fix.action)
        for line in clean(fix.snippet).splitlines()[:8]:
            yield " " * 10 + line
        if fix.verify:
            yield from self._note(say("text.verify"), fix.verify)

    def _odd(self, diagnosis: Diagnosis) -> Iterator[str]:
        found = diagnosis.unexplained
        if found is None:
            return
        for line in found.lines[:REASONS]:
            yield from self._note(say("text.odd"), f"{place(line)}: {one_line(line.text, limit=4 * self.width)}")
        for item in found.resembles[:2]:
            told = {"name": item.cause or item.signature, "similarity": f"{item.similarity:.2f}"}
            yield from self._note(say("text.resembles"), say("text.likeness", words=", ".join(item.shared[:4]), **told))

    def _teach(self, diagnosis: Diagnosis) -> Iterator[str]:
        draft = diagnosis.unexplained.draft if diagnosis.unexplained else None
        if draft is not None:
            yield from self._note(say("text.teach"), say("text.teach_how"))
            yield " " * 10 + clean(draft.command)

    def _closing(self, diagnosis: Diagnosis, plan: Outline) -> Iterator[str]:
        verdict = diagnosis.verdict
        if verdict.next_step and verdict.status in ("suspected", "unknown"):
            step = _COMMAND.fullmatch(verdict.next_step)
            yield from self._note(say("text.next"), step["says"] if step else verdict.next_step)
            if step:
                yield " " * 10 + clean(step["command"])
        if verdict.status == "unknown":
            asked = diagnosis.unexplained.absent if diagnosis.unexplained else ()
            for item in [item for item in asked if item.says not in verdict.next_step][:REASONS]:
                yield from self._note(say("text.missing"), item.says)
                yield " " * 10 + clean(item.record)
            for missing in (diagnosis.missing or (() if asked else what_to_collect()))[: max(1, REASONS - len(asked))]:
                yield from self._note(say("text.missing"), missing)
            yield from self._teach(diagnosis)
        yield ""
        others = [c.hypothesis for c in plan.others if c.hypothesis.status != "unlikely"][:REASONS]
        if others and verdict.status != "none" and not self.verbose:
            names = ", ".join(f"{h.cause} {percent(h.probability)}" + _aside(h.status) for h in others)
            more = len(plan.others) - len(others)
            heading = say("text.nearest" if verdict.status == "unknown" else "text.others")
            listed = heading + say("colon") + names
            listed += say("list.clause") + say("text.less_likely", count=more) if more else ""
            yield from wrapped(listed, self.width, rest="  ")
        closing = reading_summary(diagnosis) + say("text.made_by", version=diagnosis.rca_version)
        if diagnosis.warnings:
            closing += say("list.clause") + count(len(diagnosis.warnings), "warning")
        explain = say("text.more", cause=plan.lead.hypothesis.cause) if plan.lead else ""
        if explain and columns(closing) + columns(explain) + 4 > self.width:
            yield paint(closing, "quiet", on=self.colour)
            closing = explain
        elif explain:
            closing += say("text.stop") + f"   {explain}"
        yield paint(closing, "quiet", on=self.colour)

    def _label(self, label: str) -> str:
        return paint(f"   = {label}: ", "label", on=self.colour)

    def _note(self, label: str, text: str) -> Iterator[str]:
        head = f"   = {label}: "
        lines = wrapped(one_line(text, limit=4000 if self.verbose else 400), self.width, first=head, rest=" " * 10)
        for number, line in enumerate(lines or [head]):
            yield self._label(label) + line[len(head) :] if number == 0 else line


def _ever_fewer(parts: list[str]) -> Iterator[list[str]]:
    for count_of_parts in range(len(parts), -1, -1):
        yield [part for part in parts[:count_of_parts] if part]


def _evidence(candidate: Candidate | None) -> tuple[Evidence, ...]:
    return candidate.hypothesis.evidence_for if candidate else ()


def _aside(status: str) -> str:
    return "" if status == "suspected" else f" ({say('hypothesis.' + status)})"
