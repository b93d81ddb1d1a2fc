"""A run analysed beside a healthy run of the same job, end to end."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree, rmtree

import pytest

from rca.diagnosis import Diagnosis
from rca.errors import UsageError
from rca.evaluate import evaluate
from rca.pipeline import Options, analyze
from rca.rules.load import load

SAMPLES = Path(__file__).resolve().parents[1] / "sample_logs"
QUICK = Options(experiments="none", strict=True)
HEALTHY = SAMPLES / "healthy" / "run"

NOISE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n}.00 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which {n}.20 GiB is free.\n2024-05-01 12:00:05 INFO a smaller batch is tried\n"
)
STEPS = "".join(f"2024-05-01 12:01:{n:02d} INFO step {n} loss {3 - n / 20}\n" for n in range(1, 30))
DONE = "2024-05-01 12:02:00 INFO Training completed\n"


def written(folder: Path, text: str | bytes, **settings: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "train.log").write_bytes(text if isinstance(text, bytes) else text.encode())
    if settings:
        (folder / "training_args.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def against(run: Path, baseline: Path) -> Diagnosis:
    return analyze(run, baseline=baseline, options=QUICK)


def test_the_difference_is_evidence() -> None:
    alone = analyze(SAMPLES / "lr_too_high" / "run", options=QUICK)
    beside = against(SAMPLES / "lr_too_high" / "run", HEALTHY)
    assert beside.verdict.cause == alone.verdict.cause == "numerics.lr_too_high"
    assert beside.verdict.probability > alone.verdict.probability
    assert alone.baseline is None
    assert beside.baseline is not None
    assert {item.name for item in beside.baseline.differences} == {"learning_rate", "max_steps", "warmup_steps"}
    assert any("333" in item.says and item.source == "training_args.json" for item in beside.hypotheses[0].evidence_for)
    changed = {item.name: item.baseline for item in beside.settings if item.baseline is not None}
    assert changed["learning_rate"] == "0.003"


def test_without_a_baseline_no_question_is_asked_about_one() -> None:
    alone = analyze(SAMPLES / "lr_too_high" / "run", options=QUICK)
    asked = [item.decides for hypothesis in alone.hypotheses for item in hypothesis.no_data]
    assert not [text for text in asked if "baseline." in text]


def test_a_healthy_run_beside_itself_is_healthy() -> None:
    diagnosis = against(HEALTHY, HEALTHY)
    assert diagnosis.verdict.cause == "none"
    assert diagnosis.baseline is not None
    assert (diagnosis.baseline.differences, diagnosis.warnings) == ((), ())


def test_a_failed_run_beside_itself_is_still_diagnosed_and_the_baseline_is_doubted() -> None:
    run = SAMPLES / "labels_out_of_range" / "run"
    diagnosis = against(run, run)
    assert diagnosis.verdict.cause == analyze(run, options=QUICK).verdict.cause
    assert diagnosis.baseline is not None
    assert not diagnosis.baseline.used
    assert "failed itself" in diagnosis.warnings[0]


def test_an_alarm_that_the_healthy_run_raises_too_is_no_failure(tmp_path: Path) -> None:
    good = written(tmp_path / "good", STEPS + NOISE.format(n=1) + STEPS + DONE, learning_rate=0.1)
    bad = written(tmp_path / "bad", STEPS + NOISE.format(n=2), learning_rate=0.1)
    alone, beside = analyze(bad, options=QUICK), against(bad, good)
    assert alone.verdict.cause.startswith("memory.")
    assert alone.failure is not None
    assert "out of memory" in alone.failure.what
    assert not beside.verdict.cause.startswith("memory.")
    assert beside.failure is None or "out of memory" not in beside.failure.what


def test_a_baseline_of_another_program_is_said_to_be_one(tmp_path: Path) -> None:
    other = written(tmp_path / "other", "".join(f"serving request {word}\nreply to {word}\n" for word in "abcdefgh"))
    diagnosis = against(SAMPLES / "lr_too_high" / "run", other)
    assert diagnosis.verdict.cause == "numerics.lr_too_high"
    assert diagnosis.baseline is not None


@pytest.mark.parametrize("content", ["nothing", "binary"])
def test_a_baseline_that_cannot_be_read_is_an_error_before_anything_is_analysed(tmp_path: Path, content: str) -> None:
    folder = tmp_path / "baseline"
    folder.mkdir()
    if content == "binary":
        (folder / "core").write_bytes(b"\x7fELF" + bytes(5000))
    with pytest.raises(UsageError, match="the baseline cannot be used: nothing in"):
        against(tmp_path / "absent", folder)
    with pytest.raises(UsageError, match=r"the baseline cannot be used: .* is not a directory"):
        against(HEALTHY, tmp_path / "nowhere")


def test_junk_beside_a_run_costs_nothing_but_its_reading(tmp_path: Path) -> None:
    junk = bytes((n * 7919) % 251 for n in range(200_000))
    good = written(tmp_path / "good", 4 * STEPS.encode() + junk + DONE.encode())
    diagnosis = against(written(tmp_path / "bad", 4 * STEPS + junk.decode("latin-1") + "KeyError: 'x'\n"), good)
    assert diagnosis.baseline is not None


def test_hosts_and_secrets_of_the_baseline_are_redacted(tmp_path: Path) -> None:
    secret = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
    good = written(tmp_path / "good", STEPS + DONE, hub_token=secret, learning_rate=0.1)
    bad = written(tmp_path / "bad", STEPS + "KeyError: 'x'\n", hub_token="none", learning_rate=0.2)
    (good / "requirements.txt").write_text("nvidia-curand-cu12==10.3.5.147\n", encoding="utf-8")
    (bad / "requirements.txt").write_text("nvidia-curand-cu12==10.3.5.140\n", encoding="utf-8")
    diagnosis = against(bad, good)
    assert secret not in diagnosis.model_dump_json()
    assert diagnosis.baseline is not None
    versions = {item.name: (item.value, item.baseline) for item in diagnosis.baseline.differences}
    assert versions["nvidia-curand-cu12"] == ("10.3.5.140", "10.3.5.147")


def test_a_labelled_case_may_have_a_healthy_run_beside_it(tmp_path: Path) -> None:
    (tmp_path / "case").mkdir()
    (tmp_path / "case" / "truth.json").write_text('{"cause": "numerics.lr_too_high"}', encoding="utf-8")
    for name, sample in (("run", "lr_too_high"), ("baseline", "healthy")):
        copytree(SAMPLES / sample / "run", tmp_path / "case" / name)
    knowledge = load(())
    (beside,) = evaluate(tmp_path, knowledge, options=QUICK)
    rmtree(tmp_path / "case" / "baseline")
    (alone,) = evaluate(tmp_path, knowledge, options=QUICK)
    assert beside.verdict == alone.verdict == "numerics.lr_too_high"
    assert beside.probability > alone.probability
