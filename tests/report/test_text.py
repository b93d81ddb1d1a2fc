from __future__ import annotations

import re

import pytest

from rca.diagnosis import Diagnosis, Fix
from rca.report.text import TextReport

from .samples import every, lr_too_high

SAMPLES = every()


def test_fits_eighty_columns(sample: Diagnosis) -> None:
    assert [line for line in TextReport().render(sample).splitlines() if len(line) > 80] == []


def test_shape_of_a_confirmed_cause() -> None:
    lines = TextReport().render(lr_too_high()).splitlines()
    assert lines[0].startswith("error[numerics.lr_too_high]: The learning rate (0.03) is too high")
    assert "   93%, very likely; confirmed by experiment" in lines
    assert "  --> train.log:1183  (rank 0, step 424, 2026-03-14 09:41:22)" in lines
    assert any(line.startswith("   = because: ") for line in lines)
    assert any(line.startswith("   = tested: One tenth of the learning rate: confirmed.") for line in lines)
    assert any(line.startswith("   = fix: Lower the peak learning rate") for line in lines)
    assert lines[-1].endswith("more: rca explain numerics.lr_too_high")


@pytest.mark.parametrize(
    ("name", "start", "part"),
    [
        ("suspected", "error[memory.fragmentation]: ", "= next: "),
        ("unknown", "unknown: ", "nearest candidates: memory.host_oom 21%"),
        ("healthy", "ok: ", "no failure found"),
    ],
)
def test_other_verdicts(name: str, start: str, part: str) -> None:
    text = TextReport().render(SAMPLES[name])
    assert text.startswith(start)
    assert part in text


def test_colour_only_adds_styles(sample: Diagnosis) -> None:
    plain, coloured = TextReport().render(sample), TextReport(colour=True).render(sample)
    assert "\x1b[" not in plain
    assert "\x1b[" in coloured
    assert [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()] == plain.splitlines()


def test_narrow_terminals(sample: Diagnosis) -> None:
    long = [line for line in TextReport(width=60).render(sample).splitlines() if len(line) > 60]
    assert all(line.startswith(" " * 10) for line in long), "only what is for copying may be longer"


def test_snippets_stay_whole() -> None:
    diagnosis = lr_too_high()
    snippet = "x = " + "1 + " * 40 + "1"
    lead = diagnosis.hypotheses[0].model_copy(update={"fixes": (Fix(action="a", snippet=snippet),)})
    text = TextReport().render(diagnosis.model_copy(update={"hypotheses": (lead,)}))
    assert snippet in text


def test_what_was_observed_is_quoted_over_several_lines_and_cut_in_the_last() -> None:
    failure = lr_too_high().failure
    assert failure is not None
    told = "CUDA out of memory. " + "GPU 5 has a total capacity of 79.15 GiB. " * 12
    hypotheses = tuple(
        h.model_copy(update={"evidence_for": tuple(e for e in h.evidence_for if e.id != failure.evidence)})
        for h in lr_too_high().hypotheses
    )
    long = {"failure": failure.model_copy(update={"what": told}), "hypotheses": hypotheses}
    lines = TextReport().render(lr_too_high().model_copy(update=long)).splitlines()
    quoted = [line.removeprefix("   | ") for line in lines if line.startswith("   | ")]
    assert len(quoted) == 4
    assert quoted[-1].endswith("…")
    assert told.startswith(" ".join(quoted).rstrip("…"))


def test_a_change_and_its_reason_are_two_sentences_whether_or_not_the_rule_ends_the_first() -> None:
    for action in ("Lower it", "Lower it."):
        lead = lr_too_high().hypotheses[0].model_copy(update={"fixes": (Fix(action=action, why="It is high."),)})
        text = TextReport(verbose=1).render(lr_too_high().model_copy(update={"hypotheses": (lead,)}))
        assert "= fix: Lower it. It is high." in text


def test_the_command_of_the_next_step_is_a_line_of_its_own() -> None:
    unknown = SAMPLES["unknown"]
    record = "python -u train.py --config configs/a_rather_long_name.yaml 2>&1 | tee train.log"
    step = unknown.verdict.model_copy(update={"next_step": f"There is no log of what it printed. `{record}`"})
    lines = TextReport().render(unknown.model_copy(update={"verdict": step})).splitlines()
    at = lines.index("   = next: There is no log of what it printed.")
    assert lines[at + 1] == " " * 10 + record
