"""The report for a ticket: Markdown without images, short enough for every tracker's text field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rca.baseline import Baseline
from rca.diagnosis import Diagnosis, Evidence
from rca.report.chronology import chronology, telling
from rca.report.findings import risk, told_once
from rca.report.markdown_experiments import SPARE, experiments, script, tables
from rca.report.markdown_marks import Section, cells, code, escaped, fenced
from rca.report.measures import (
    clock,
    is_command,
    moment,
    numbers_list,
    one_line,
    percent,
    relative,
    size,
)
from rca.report.outline import Candidate, Outline, circumstances, odd_intro, outline, place, reading_summary, redaction
from rca.report.translation import translated
from rca.report.words import count, paragraph, say, strength, what_to_collect, word
from rca.report.words import shown as in_language

LIMIT = 29_500
"""Characters; Jira's text field takes 32,767, GitHub's 65,536."""

ROWS = 30
"""Rows of the timeline."""
MARK = "<!-- rca report -->"
"""First line of the document: a file that carries it may be replaced without asking."""


class MarkdownReport:
    """GitHub, GitLab and Jira (converted) render it; log text stands in code and can neither link nor mention."""

    name = "md"
    suffix = ".md"

    def render(self, diagnosis: Diagnosis) -> str:
        """The whole report, least important parts dropped until it fits LIMIT."""
        return markdown(diagnosis, limit=LIMIT)


def markdown(diagnosis: Diagnosis, *, limit: int) -> str:
    """Return the report with at most `limit` characters."""
    sections = list(_sections(diagnosis))
    dropped: list[str] = []
    while True:
        notice = (
            f"\n\n> {say('trim.notice', what=say('trim.sections', names=say('list.item').join(dropped)))}"
            if dropped
            else ""
        )
        text = "\n\n".join([MARK, *(section.text for section in sections)]) + notice + "\n"
        if len(text) <= limit or len(sections) == 1:
            return text if len(text) <= limit else text[: limit - 1] + "…"
        last = max(sections, key=lambda section: section.rank)
        sections.remove(last)
        if last.rank < SPARE:
            dropped.append(last.title.lower())


def summary(diagnosis: Diagnosis) -> str:
    """The answer alone, for a comment or a chat."""
    wanted = ("answer", "section.change", "section.why")
    return "\n\n".join(s.text for s in _sections(diagnosis) if s.title in {say(k) for k in wanted[1:]} or s.rank == 0)


def _sections(diagnosis: Diagnosis) -> Iterator[Section]:
    diagnosis = translated(diagnosis)
    plan = outline(diagnosis)
    yield Section(0, "answer", "\n\n".join(_answer(diagnosis, plan)))
    if diagnosis.verdict.status == "unknown":
        yield from _section(1, "section.odd", _odd(diagnosis))
        yield from _section(1, "section.decide", _deciding(diagnosis))
        yield from _section(2, "section.draft", _draft(diagnosis))
    if plan.lead:
        yield from _section(1, "section.change", _fixes(plan.lead))
        yield from _section(2, "section.why", _reasons(plan.lead))
        yield from _section(2, "section.odd", _odd(diagnosis))
    yield from _section(3, "section.experiments", experiments(diagnosis, plan))
    yield from tables(plan)
    heading = "section.nearest" if diagnosis.verdict.status == "unknown" else "section.candidates"
    yield from _folded(4, heading, _candidates(plan.others))
    yield from _folded(5, "section.baseline", _baseline(diagnosis.baseline))
    yield from _folded(6, "section.timeline", _timeline(diagnosis))
    yield from _folded(7, "section.settings", _settings(diagnosis))
    yield from _folded(5, "section.inputs", _inputs(diagnosis))
    yield from script(plan)


def _section(rank: int, key: str, lines: Sequence[str]) -> Iterator[Section]:
    if lines:
        yield Section(rank, say(key), "\n".join([f"### {say(key)}", "", *lines]))


def _folded(rank: int, key: str, lines: Sequence[str]) -> Iterator[Section]:
    if lines:
        body = "\n".join(["<details>", f"<summary>{say(key)}</summary>", "", *lines, "", "</details>"])
        yield Section(rank, say(key), body)


def _odd(diagnosis: Diagnosis) -> list[str]:
    found = diagnosis.unexplained
    if found is None:
        return []
    lines = [odd_intro(diagnosis), ""]
    for line in found.lines:
        signs = say("list.item").join(say("odd." + sign) for sign in line.signs)
        where = say("list.clause").join(
            part for part in (code(place(line)), escaped(circumstances(line)), signs) if part
        )
        lines.append(f"- {code(line.text, limit=300)} ({where})")
    if found.resembles:
        lines += ["", f"**{say('section.resembles')}** {say('resembles.intro')}", ""]
    for item in found.resembles:
        told = [say("resembles.similarity", value=f"{item.similarity:.2f}")]
        told.append(say("resembles.shared", words=escaped(", ".join(item.shared))))
        told += [f"{say('resembles.signature')} {code(item.signature)}"] if item.signature else []
        lines.append(f"- {escaped(item.title)} {code(item.cause)} ({', '.join(told)})")
    return lines


def _deciding(diagnosis: Diagnosis) -> list[str]:
    asked = diagnosis.unexplained.absent if diagnosis.unexplained else ()
    texts = [f"{escaped(item.says)} {say('absent.record')} {code(item.record)}" for item in asked]
    texts += [escaped(text) for text in diagnosis.missing or (() if asked else what_to_collect())]
    return [f"{number}. {text}" for number, text in enumerate(texts[:10], 1)]


def _draft(diagnosis: Diagnosis) -> list[str]:
    found = diagnosis.unexplained
    if found is None or found.draft is None:
        return []
    made_from = next((code(place(line)) for line in found.lines if line.id == found.draft.line), "")
    return [say("draft.intro", place=made_from), "", fenced(found.draft.command, "sh")]


def _answer(diagnosis: Diagnosis, plan: Outline) -> Iterator[str]:
    verdict = diagnosis.verdict
    yield f"## {escaped(verdict.sentence or verdict.title)}"
    standing = [f"**{say('status.' + verdict.status)}**"]
    if verdict.status != "unknown":
        standing.append(
            say("answer.probability", probability=percent(verdict.probability), words=escaped(verdict.words))
        )
    if plan.lead:
        standing.append(code(verdict.cause))
    standing.append(say("answer.run", name=code(diagnosis.run.name)))
    yield " · ".join(standing)
    failure = diagnosis.failure
    if failure:
        where = say("list.clause").join(
            part for part in (code(place(failure)), escaped(circumstances(failure))) if part
        )
        yield f"{say('answer.observed')}{say('colon')}{where}" + "\n\n" + fenced(one_line(failure.what, limit=600))
    if verdict.next_step and verdict.status in ("suspected", "unknown"):
        yield f"**{say('answer.next')}{say('colon').rstrip()}** {escaped(verdict.next_step)}"


def _fixes(lead: Candidate) -> list[str]:
    lines: list[str] = []
    for position, fix in enumerate(lead.hypothesis.fixes[:3], 1):
        lines.append(f"{position}. **{escaped(paragraph(fix.action))}** {escaped(fix.why)}".rstrip())
        if fix.snippet:
            lines += ["", *(f"   {line}" for line in fenced(fix.snippet, fix.language).splitlines()), ""]
        if risk(fix):
            lines.append(f"   {say('fix.risk')} {escaped(risk(fix))}  ")
        if fix.verify:
            verify = code(fix.verify, limit=400) if is_command(fix.verify) else escaped(fix.verify)
            lines.append(f"   {say('fix.verify')} {verify}")
    return lines


def _reasons(lead: Candidate) -> list[str]:
    hypothesis = lead.hypothesis
    lines: list[str] = []
    for key, items in (("for", hypothesis.evidence_for), ("against", hypothesis.evidence_against)):
        if items:
            shown = told_once(items) if key == "for" else sorted(items, key=lambda e: e.weight)
            lines += [f"**{say('evidence.' + key)}**", "", *(f"- {_told(item)}" for item in shown[:8])]
            lines.append("")
        if key == "for" and (quoted := next((e for e in told_once(items) if e.text), None)):
            lines += [f"{code(place(quoted))}", ""] if quoted.source else []
            lines += [fenced("\n".join(line.text for line in quoted.context) or quoted.text, width=300), ""]
    if hypothesis.no_data:
        lines += [f"**{say('evidence.no_data')}**", ""]
        asked = say("evidence.decides")
        lines += [
            f"- {escaped(e.says)} {asked} {escaped(e.decides)}" if e.decides else f"- {asked} {escaped(e.says)}"
            for e in hypothesis.no_data[:6]
        ]
        lines.append("")
    if lead.symptoms:
        lines += ["", say("why.symptoms") + say("colon") + ", ".join(code(symptom.cause) for symptom in lead.symptoms)]
    return lines


def _told(item: Evidence) -> str:
    parts = [
        code(place(item)),
        escaped(circumstances(item)),
        strength(item.weight) if item.weight else say("evidence.counted"),
    ]
    where = say("list.clause").join(part for part in parts if part)
    return escaped(item.says) + (f" ({where})" if where else "")


def _candidates(others: Sequence[Candidate]) -> list[str]:
    if not others:
        return []
    lines = [_row("column.probability", "column.cause", "column.status", "column.settle"), "| ---: | --- | --- | --- |"]
    for candidate in others[:10]:
        hypothesis = candidate.hypothesis
        settle = escaped(hypothesis.decide[0], limit=200) if hypothesis.decide else ""
        status = say("hypothesis." + hypothesis.status)
        cause = f"{escaped(hypothesis.title)} {code(hypothesis.cause)}"
        lines.append(f"| {percent(hypothesis.probability)} | {cause} | {status} | {settle} |")
    return lines


def _row(*keys: str) -> str:
    return cells(say(key) for key in keys)


def _timeline(diagnosis: Diagnosis) -> list[str]:
    moments = telling(chronology(diagnosis), ROWS)
    if not moments:
        return []
    lines = [
        _row(
            "column.time",
            "column.relative",
            "run.rank",
            "column.step",
            "column.severity",
            "column.event",
            "column.place",
        ),
        "| --- | ---: | ---: | ---: | --- | --- | --- |",
    ]
    for told in moments:
        entry = told.entry
        row = (
            escaped(clock(entry.time)),
            relative(entry.relative_s),
            numbers_list(told.ranks),
            "" if entry.step is None else str(entry.step),
            escaped(word("severity", entry.severity)),
            code(entry.text or entry.name, limit=160),
            code(place(entry)) + (f" {say('timeline.count', count=entry.count)}" if entry.count > 1 else ""),
        )
        lines.append(cells(row))
    return lines


def _baseline(baseline: Baseline | None) -> list[str]:
    if baseline is None:
        return []
    lines = [say("baseline.against", name=code(baseline.name), files=count(baseline.files, "file"))]
    lines += [f"- {say('inputs.warning')} {escaped(note)}" for note in baseline.notes]
    unset = say("baseline.unset")
    if baseline.differences:
        lines += ["", _row("baseline.settings", "column.this_run", "column.baseline"), "| --- | --- | --- |"]
    for item in baseline.differences[:30]:
        here, there = (unset if text is None else code(text, limit=120) for text in (item.value, item.baseline))
        lines.append(f"| {code(item.name)} | {here} | {there} |")
    if len(baseline.differences) > 30:
        lines.append(f"| {say('baseline.more', count=len(baseline.differences) - 30)} | | |")
    lines += ["", *(f"- {escaped(line.says)}" for line in baseline.curves)]
    new = [item for item in baseline.messages if item.status == "new" and item.severity != "info"]
    lines += [f"- {say('baseline.new')}{say('colon')}{code(item.text, limit=160)}" for item in new[:8]]
    return lines


def _settings(diagnosis: Diagnosis) -> list[str]:
    lines = [f"- {escaped(text)}" for text in diagnosis.environment_findings[:10]]
    shown = sorted(diagnosis.settings, key=lambda s: s.baseline is None)[:60]
    compared = any(setting.baseline is not None for setting in shown)
    if shown:
        columns = ["column.group", "column.name", "column.value", *(["column.baseline"] if compared else [])]
        lines += ["", _row(*columns), cells("---" for _ in columns)]
    for setting in shown:
        row = [say("settings." + setting.group), code(setting.name), code(setting.value, limit=120)]
        row += [code(setting.baseline, limit=120) if setting.baseline is not None else ""] if compared else []
        lines.append(cells(row))
    return lines


def _inputs(diagnosis: Diagnosis) -> list[str]:
    run = diagnosis.run
    lines = [
        f"{reading_summary(diagnosis)}, {size(run.bytes)}; {say('redaction.mode', mode=diagnosis.redaction.mode)}.",
        *([f"**{redaction(diagnosis)}**"] if diagnosis.redaction.mode == "none" else []),
        "",
    ]
    lines += [f"- {say('inputs.warning')} {escaped(text)}" for text in diagnosis.warnings[:10]]
    skipped = [source for source in diagnosis.sources if source.status == "skipped"]
    lines += [f"- {say('inputs.skipped')} {code(source.path)}: {escaped(source.why)}" for source in skipped[:20]]
    for source in [source for source in diagnosis.sources if source.status == "read"][:40]:
        told = (escaped(in_language(source.kind)), size(source.bytes), count(source.events, "event"))
        what = say("list.clause").join(part for part in told if part)
        lines.append(f"- {say('inputs.read')} {code(source.path)} ({what})")
    made = say("page.made", version=escaped(diagnosis.rca_version), moment=escaped(moment(diagnosis.generated)))
    lines += ["", made]
    return lines
