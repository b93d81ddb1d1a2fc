from __future__ import annotations

from typing import Any

import pytest

from rca.ingest.blocks.transcripts import longest_row

TEXTS = ["we went out", "it rained", "Thank you.", "thank you", "Thank you.", "so we left"]


def printed(form: str) -> str:
    rows = []
    for index, text in enumerate(TEXTS):
        start, stop = f"00:{index:02d}.000", f"00:{index + 1:02d}.500"
        rows.append(
            {
                "whisper": f"[{start} --> {stop}]  {text}",
                "whisper.cpp": f"[00:{start} --> 00:{stop}]   {text}",
                "faster-whisper": f"[{index}.00s -> {index + 1}.50s] {text}",
                "srt": f"{index + 1}\n00:{start.replace('.', ',')} --> 00:{stop.replace('.', ',')}\n{text}\n",
                "vtt": f"{start} --> {stop} align:start\n{text}\n",
            }[form]
        )
    return "\n".join([*rows, ""])


@pytest.mark.parametrize("form", ["whisper", "whisper.cpp", "faster-whisper", "srt", "vtt"])
def test_the_longest_row_of_equal_segments(read: Any, form: str) -> None:
    found = read("out.log", f"loading model\n{printed(form)}done\n").one("transcript")
    assert found.attr("segments") == len(TEXTS)
    assert found.attr("looped") == 3


def test_single_times_are_no_transcript(read: Any) -> None:
    text = "segment 00:01.000 --> 00:02.000 hello\nstep 1 loss 2.0\n[00:01.000 --> 00:02.000] hello\nstep 2 loss 1.9\n"
    assert not read("out.log", text).table.named("transcript")


def test_rows() -> None:
    assert longest_row(["a", "b", "b", "c"]) == (1, 2)
    assert longest_row(["", "", ""]) == (0, 1)
    assert longest_row(["a", "A.", "a "]) == (0, 3)
