from __future__ import annotations

import re
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from rca.diagnosis import Diagnosis, Failure, Run, Setting, SourceRecord, TimelineEntry, Verdict
from rca.redact import Redactor, redact_diagnosis
from rca.redact.known import Known

from .corpus import shapes


def made_of(lines: list[str]) -> Diagnosis:
    return Diagnosis(
        rca_version="0",
        generated="2026-01-01T00:00:00Z",
        run=Run(name="run-1", path="/home/ada/run-1", hosts=("gpu-21",)),
        verdict=Verdict(cause="unknown", title="t", sentence=lines[0], probability=0.5, words="", status="unknown"),
        timeline=tuple(
            TimelineEntry(id=f"t{n}", kind="log", name="x", source=f"gpu-21/{n}.log", text=line)
            for n, line in enumerate(lines)
        ),
        settings=(
            Setting(group="configuration", name="hub", value=lines[-1]),
            Setting(group="packages", name="nvidia-curand-cu12", value="10.3.5.147"),
            Setting(group="system", name="addr", value="10.3.5.147"),
        ),
        sources=(SourceRecord(path="gpu-21/0.log"),),
    )


def test_every_text_is_redacted_and_counted() -> None:
    pairs = [(shape.secret, shape.line) for shape in shapes()]
    redacted = redact_diagnosis(made_of([line for _, line in pairs]))
    text = redacted.model_dump_json()
    assert not [secret for secret, _ in pairs if secret in text]
    assert "ada" not in redacted.run.path
    assert redacted.run.hosts == ("<host-1>",)
    assert redacted.sources[0].path == redacted.timeline[0].source == "<host-1>/0.log"
    assert redacted.redaction.mode == "default"
    assert redacted.redaction.counts["secret"] >= len(pairs)


def test_the_node_that_failed_is_a_host_wherever_it_is_named() -> None:
    said = made_of(["srun: error: Node failure on rack7n3"])
    failure = Failure(what="Node failure on rack7n3", host="rack7n3", source="slurm.out")
    assert "rack7n3" not in redact_diagnosis(said.model_copy(update={"failure": failure})).model_dump_json()


def test_package_versions_are_no_addresses() -> None:
    settings = redact_diagnosis(made_of(["a"])).settings
    assert [s.value for s in settings] == ["a", "10.3.5.147", "<ip-1>"]


def test_ids_and_fixed_words_are_untouched() -> None:
    diagnosis = made_of(["a"])
    redacted = redact_diagnosis(diagnosis, hosts=["t0", "unknown"])
    assert redacted.timeline[0].id == "t0"
    assert redacted.verdict.cause == "unknown"


def test_none_keeps_the_diagnosis_and_says_so() -> None:
    diagnosis = made_of(["/home/ada"])
    assert redact_diagnosis(diagnosis, mode="none").timeline == diagnosis.timeline
    assert redact_diagnosis(diagnosis, mode="none").redaction.mode == "none"


def test_redacting_twice_changes_nothing_more() -> None:
    once = redact_diagnosis(made_of([shape.line for shape in shapes()]))
    twice = redact_diagnosis(once)
    assert twice.model_copy(update={"redaction": once.redaction}) == once


@given(st.lists(st.text(max_size=200), max_size=8), st.sampled_from(["default", "strict"]))
def test_any_text_comes_through(lines: list[str], mode: Literal["default", "strict"]) -> None:
    redactor = Redactor(mode, hosts=["gpu-21"], users=["ada"])
    for line in lines:
        shown = redactor.text(line)
        assert redactor.text(line) == shown
        assert not re.search(r"(?<![A-Za-z0-9_-])gpu-21(?![A-Za-z0-9_-])", shown)


def test_a_hidden_folder_below_the_homes_is_no_user() -> None:
    lines = [
        '  File "/home/u/.venv/lib/python3.11/site-packages/torch/_tensor.py", line 522',
        "cache: /home/.cache/hub",
    ]
    redacted = redact_diagnosis(made_of(lines))
    assert [entry.text for entry in redacted.timeline] == lines


def test_a_known_name_without_a_first_part_is_found_nowhere() -> None:
    known = Known(hosts=[".internal"], users=[], names=[], folders=[], anywhere=True)
    assert known.spans("gpu-1.internal said no") == []
