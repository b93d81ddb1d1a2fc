"""The diagnosis in a CI system's test tab."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from rca.diagnosis import Diagnosis
from rca.report.junit import JunitReport

from .samples import every


def suite_of(diagnosis: Diagnosis) -> ET.Element:
    return ET.fromstring(JunitReport().render(diagnosis))


def test_the_verdict_fails_and_nothing_else(sample: Diagnosis) -> None:
    suite = suite_of(sample)
    failed = [case.get("name") for case in suite.findall("testcase") if case.find("failure") is not None]
    assert failed == ([] if sample.verdict.status == "none" else [sample.verdict.cause])


def test_every_cause_is_one_case_and_is_counted(sample: Diagnosis) -> None:
    suite = suite_of(sample)
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert set(cases) == {item.cause for item in sample.hypotheses} | {sample.verdict.cause}
    assert int(suite.get("tests", "")) == len(cases)
    skipped = {name for name, case in cases.items() if case.find("skipped") is not None}
    assert int(suite.get("skipped", "")) == len(skipped)
    assert not skipped & {item.cause for item in sample.hypotheses if item.status == "refuted"}


def test_odd_characters_are_no_broken_document() -> None:
    diagnosis = next(item for item in every().values() if item.failure is not None)
    assert diagnosis.failure is not None
    odd = diagnosis.failure.model_copy(update={"what": "\x00\x1b[31m <a> & ]]> \ufffe \U0001f600"})
    body = "".join(suite_of(diagnosis.model_copy(update={"failure": odd})).itertext())
    assert "\x1b" not in body
