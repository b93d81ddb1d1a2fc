"""The diagnosis as JUnit XML, for the test tab of a CI system: one case for each cause that was looked at."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from rca.diagnosis import Diagnosis, Hypothesis
from rca.report.markdown import MARK
from rca.report.measures import clean, percent
from rca.report.outline import circumstances, place
from rca.report.translation import translated
from rca.report.words import say, what_to_collect

_EVIDENCE = 8


class JunitReport:
    """The verdict fails, a cause that is ruled out passes, one that is open is skipped with what would settle it."""

    name = "junit"
    suffix = ".xml"

    def render(self, diagnosis: Diagnosis) -> str:
        """One test suite named after the run."""
        diagnosis = translated(diagnosis)
        verdict = diagnosis.verdict
        suite = ET.Element("testsuite", name=_text(f"rca {diagnosis.run.name}"), timestamp=_text(diagnosis.generated))
        listed = [item.cause for item in diagnosis.hypotheses]
        if verdict.cause not in listed:
            found = _case(suite, "verdict", verdict.cause)
            if verdict.status == "unknown":
                message = verdict.sentence or verdict.title
                _outcome(found, "failure", "unknown", message, "\n".join(diagnosis.missing or what_to_collect()))
        for hypothesis in diagnosis.hypotheses:
            case = _case(suite, hypothesis.domain or "cause", hypothesis.cause)
            status = say("hypothesis." + hypothesis.status)
            standing = say("answer.probability", probability=percent(hypothesis.probability), words=status)
            told = f"{hypothesis.title}{say('colon')}{standing}"
            if hypothesis.cause == verdict.cause:
                _outcome(case, "failure", verdict.status, told, _reasons(diagnosis, hypothesis))
            elif hypothesis.status != "refuted":
                _outcome(case, "skipped", "", told, "\n".join(hypothesis.decide[:1]))
        for kind, tag in (("tests", "testcase"), ("failures", ".//failure"), ("skipped", ".//skipped")):
            suite.set(kind, str(len(suite.findall(tag))))
        suite.set("errors", "0")
        ET.indent(suite)
        return f'<?xml version="1.0" encoding="utf-8"?>\n{MARK}\n{ET.tostring(suite, encoding="unicode")}\n'


def _case(suite: ET.Element, group: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=_text(f"rca.{group}"), name=_text(name), time="0")


def _outcome(case: ET.Element, tag: str, kind: str, message: str, body: str) -> None:
    found = ET.SubElement(case, tag, message=_text(message))
    if kind:
        found.set("type", kind)
    found.text = _text(body)


def _reasons(diagnosis: Diagnosis, hypothesis: Hypothesis) -> str:
    lines = []
    failure = diagnosis.failure
    if failure is not None:
        lines += [
            f"{say('answer.observed')}{say('colon')}{failure.what}",
            f"  {place(failure)} {circumstances(failure)}".rstrip(),
            "",
        ]
    for item in sorted(hypothesis.evidence_for, key=lambda entry: -entry.weight)[:_EVIDENCE]:
        lines.append(f"- {item.says} ({place(item)})" if place(item) else f"- {item.says}")
    for fix in hypothesis.fixes[:1]:
        lines += ["", f"{say('section.change')}{say('colon')}{fix.action}", fix.snippet]
    return "\n".join(lines)


def _text(text: str) -> str:
    """Text without what XML 1.0 has no way to write."""
    return clean(text).encode("utf-8", "replace").decode("utf-8")
