from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

Reported = Callable[[Mapping[str, Any]], dict[str, Any]]


@pytest.mark.parametrize(
    ("line", "kind", "lost"),
    [
        ("accuracy original 0.80, exported 0.20", "export", 0.75),
        ("CER: torch 5.0 % | tensorrt 50.0 %", "export", 0.9),
        ("mAP@0.5 fp32=0.40 int8=0.10", "quantised", 0.75),
        ("served accuracy: 0.40 (offline evaluation of the same weights: 0.80)", "other", 0.5),
    ],
)
def test_the_lost_share_of_a_comparison(reported: Reported, line: str, kind: str, lost: float) -> None:
    found = reported({"eval.log": f"loading\n{line}\n"})
    assert found["quality.of"] == kind
    assert found["quality.lost_share"] == pytest.approx(lost, abs=1e-3)


def test_training_and_validation_scores_are_no_comparison(reported: Reported) -> None:
    log = "".join(f"epoch {i} train acc 0.9{i} val acc 0.8{i}\n" for i in range(5))
    assert "quality.lost_share" not in reported({"train.log": log})


def test_outputs_that_agree_for_some_inputs_only(reported: Reported) -> None:
    found = reported({"check.log": "len 8 diff=2.1e-06\nlen 16 diff=1.9e-06\nlen 32 diff=3.30e+00\n"})
    assert found["outputs.differs_for_some"] is True
    assert found["outputs.difference_max"] == pytest.approx(3.3)


def test_small_differences_are_rounding(reported: Reported) -> None:
    found = reported({"check.log": "".join(f"case {i}: max abs diff = {i}.2e-06\n" for i in range(1, 6))})
    assert found["outputs.differs_for_some"] is False
    assert found["outputs.differs_for_all"] is False


def test_a_table_of_scores_is_compared_row_by_row(reported: Reported) -> None:
    table = "| variant | ppl | mmlu |\n|---|---|---|\n| fp16 | 5.0 | 0.60 |\n| rtn-int4 | 50.0 | 0.30 |\n"
    found = reported({"eval.txt": f"results\n{table}done\n"})
    assert found["quality.of"] == "quantised"
    assert found["quality.lost_share"] == pytest.approx(0.9)


def test_rates_of_recordings_and_model(reported: Reported) -> None:
    log = "fbank frontend: 16000 Hz, 80 bins\nStream #0:0: Audio: flac, 44100 Hz, stereo, s16\n"
    assert reported({"asr.log": log})["audio.rate_differs"] is True


def test_resampled_recordings_are_fine(reported: Reported) -> None:
    log = "model expects sampling_rate=16000\ninput sr=44100\nresampling 44100 -> 16000\n"
    assert reported({"asr.log": log})["audio.rate_differs"] is False
