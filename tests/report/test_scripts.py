"""Scripts that repeat experiments, in every format and beside the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from rca.diagnosis import Diagnosis
from rca.errors import UsageError
from rca.output import write_reports
from rca.report.html import HtmlReport
from rca.report.json_report import JsonReport
from rca.report.markdown import LIMIT, MarkdownReport
from rca.report.scripts import script_name, script_place, scripts
from rca.report.text import TextReport
from rca.report.trim import fit_to

from .page import Page
from .samples import healthy, lr_too_high

SCRIPT = (
    '"""Written by rca 0 for torch 2."""\n\nimport torch\n\nif torch.tensor(1) < 2 and "</script>":\n'
    "    print('a & b')\n"
)


def with_script(script: str = SCRIPT, **update: object) -> Diagnosis:
    diagnosis = lr_too_high()
    first = diagnosis.experiments[0].model_copy(update={"script": script, **update})
    return diagnosis.model_copy(update={"experiments": (first, *diagnosis.experiments[1:])})


def test_the_page_has_the_program_closed_and_with_a_copy_button() -> None:
    diagnosis = with_script()
    page = Page(HtmlReport().render(diagnosis))
    (box,) = [element for element in page.all("details") if "script" in element.attributes.get("class", "").split()]
    assert "open" not in box.attributes
    (code,) = [e for e in page.all("code") if e.attributes.get("id", "").startswith("script-")]
    assert "".join(code.text) == SCRIPT
    assert "details" in code.above
    assert [b for b in page.all("button") if b.attributes.get("data-copy") == code.attributes["id"]]
    told = "".join(box.text)
    assert "Script that repeats this, 6 lines" in told
    assert script_place(diagnosis, diagnosis.experiments[0]) in told


def test_no_script_no_box() -> None:
    page = HtmlReport().render(lr_too_high())
    assert 'class="more script"' not in page
    assert "Script that repeats this" not in MarkdownReport().render(lr_too_high())


def test_markdown_points_to_the_file_and_folds_the_program() -> None:
    diagnosis = with_script()
    text = MarkdownReport().render(diagnosis)
    assert f"Script that repeats this: `{script_place(diagnosis, diagnosis.experiments[0])}`" in text
    folded = text[text.index("Script that repeats this, 6 lines") :]
    assert f"```python\n{SCRIPT.rstrip()}\n```" in folded
    assert folded.index("</details>") > folded.index("```python")


def test_markdown_leaves_a_long_program_to_the_file_without_a_word() -> None:
    text = MarkdownReport().render(with_script(SCRIPT + "x = 1\n" * 5000))
    assert len(text) <= LIMIT
    assert "```python\n" + '"""Written' not in text
    assert "Script that repeats this: `" in text
    assert "was shortened" not in text


def test_the_terminal_names_the_command() -> None:
    diagnosis = with_script()
    lines = TextReport().render(diagnosis).splitlines()
    (line,) = [line for line in lines if "= script:" in line]
    assert line.endswith(f"python {script_place(diagnosis, diagnosis.experiments[0])}")


def test_the_command_holds_from_where_the_summary_is_read() -> None:
    diagnosis = with_script()
    lines = TextReport(folder="out/reports").render(diagnosis).splitlines()
    (line,) = [line for line in lines if "= script:" in line]
    assert line.endswith(f": python out/reports/{script_place(diagnosis, diagnosis.experiments[0])}")
    deep = "a/very/long/way/" * 6
    assert f": python {deep}" in TextReport(folder=deep).render(diagnosis)


def test_scripts_lie_beside_the_report_in_a_folder_of_the_run(tmp_path: Path) -> None:
    diagnosis = with_script()
    written = write_reports(diagnosis, tmp_path, ["json"], force=False)
    place = tmp_path / script_place(diagnosis, diagnosis.experiments[0])
    assert written == [tmp_path / f"{diagnosis.run.name}.json", place]
    assert place.read_text(encoding="utf-8") == SCRIPT
    assert place.name == "repro_lr_tenth.py"
    write_reports(diagnosis, tmp_path, ["json"], force=False)  # our own may be replaced
    place.write_text("print('mine')\n", encoding="utf-8")
    with pytest.raises(UsageError, match="not written by rca"):
        write_reports(diagnosis, tmp_path, ["json"], force=False)


def test_a_run_without_scripts_gets_no_folder(tmp_path: Path) -> None:
    write_reports(healthy(), tmp_path, ["json"], force=False)
    assert [file for file in tmp_path.iterdir() if file.is_dir()] == []


def test_names_cannot_leave_the_folder() -> None:
    diagnosis = with_script(id="../../etc/x")
    run = diagnosis.run.model_copy(update={"name": "a/../../b"})
    (place,) = scripts(diagnosis.model_copy(update={"run": run}))
    assert ".." not in Path(place).parts
    assert script_name(diagnosis.experiments[0]) == "repro__etc_x.py"


def test_json_keeps_the_program() -> None:
    import json

    document = json.loads(JsonReport().render(with_script()))
    assert document["experiments"][0]["script"] == SCRIPT


def test_half_a_program_is_never_shown() -> None:
    large = with_script("x = 1\n" * 2_000)
    shown: list[Diagnosis] = []

    def page(diagnosis: Diagnosis) -> str:
        shown.append(diagnosis)
        return "x" * 3_000_000

    fit_to(large, page, goal=1)
    for version in shown:
        assert version.experiments[0].script in {"", large.experiments[0].script}
