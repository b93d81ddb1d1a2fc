from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from rca.diagnosis import Diagnosis
from rca.errors import UsageError
from rca.report.html import HtmlReport
from rca.report.json_report import JsonReport, load_saved, schema, schema_text

from .samples import lr_too_high


def test_json_holds_the_whole_diagnosis(sample: Diagnosis) -> None:
    document = json.loads(JsonReport().render(sample))
    assert document["verdict"]["cause"] == sample.verdict.cause
    assert [h["cause"] for h in document["hypotheses"]] == [h.cause for h in sample.hypotheses]
    assert Diagnosis.model_validate(document).model_dump_json() == sample.model_dump_json()


def test_points_stand_on_one_line_and_text_is_never_touched() -> None:
    run = lr_too_high().run.model_copy(update={"name": "[ 1,\n  2 ]", "path": "[ 3, 4 ]"})
    text = JsonReport().render(lr_too_high().model_copy(update={"run": run}))
    assert '[424.0, "NaN"]' in text
    assert json.loads(text)["run"] == json.loads(run.model_dump_json())


@pytest.mark.parametrize(("suffix", "renderer"), [(".json", JsonReport()), (".html", HtmlReport())])
def test_saved_reports_come_back(tmp_path: Path, suffix: str, renderer: JsonReport | HtmlReport) -> None:
    saved = tmp_path / f"report{suffix}"
    saved.write_text(renderer.render(lr_too_high()), encoding="utf-8")
    loaded = load_saved(saved)
    assert loaded.model_dump_json() == lr_too_high().model_dump_json()
    assert math.isnan(loaded.series[0].points[-1][1])
    assert JsonReport().render(loaded) == JsonReport().render(lr_too_high())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html></html>", "holds no diagnosis"),
        ("", "holds no diagnosis"),
        ("{", "damaged"),
        ("[" * 100_000, "holds no diagnosis"),
        ('{"a":' * 100_000, "damaged"),
        ("{}", "schema version missing"),
        ('{"schema_version": "2.0"}', "schema version 2.0"),
        ('{"schema_version": "1.0", "rca_version": "1"}', "not a valid diagnosis"),
        ('<script type="application/json" id="rca-report">{"x": 1', "damaged|schema version missing"),
    ],
)
def test_other_files_are_refused_with_a_sentence(tmp_path: Path, text: str, message: str) -> None:
    saved = tmp_path / "x.json"
    saved.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        load_saved(saved)


def test_unreadable_files_are_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_saved(tmp_path / "absent.json")
    binary = tmp_path / "binary.html"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="UTF-8"):
        load_saved(binary)


def test_committed_schema_is_current(root: Path) -> None:
    committed = (root / "docs" / "diagnosis.schema.json").read_text(encoding="utf-8")
    again = 'python -c "from rca.report.json_report import schema_text; print(schema_text(), end=str())"'
    assert committed == schema_text(), f"regenerate: {again} > docs/diagnosis.schema.json"


def test_schema_describes_what_is_written() -> None:
    properties = schema()["properties"]
    assert set(json.loads(JsonReport().render(lr_too_high()))) == set(properties)
