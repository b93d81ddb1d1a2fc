from __future__ import annotations

from typing import Any


def test_segments_that_say_the_same(facts_of: Any) -> None:
    texts = ["we went out", "it rained", *["and so on"] * 7]
    rows = [f"[00:{k:02d}.000 --> 00:{k + 1:02d}.000]  {text}" for k, text in enumerate(texts)]
    assert facts_of({"out.log": "\n".join(rows)})["transcript.looped_segments"] == 7
    rows = [f"[00:{k:02d}.000 --> 00:{k + 1:02d}.000]  sentence {k}" for k in range(9)]
    assert facts_of({"out.log": "\n".join(rows)})["transcript.looped_segments"] == 1
    assert "transcript.looped_segments" not in facts_of({"out.log": "step 1 loss 2.0\n"})
