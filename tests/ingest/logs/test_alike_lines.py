"""Lines read together give the events that they give one by one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from rca.ingest.interface import IngestContext, Limits, Source
from rca.ingest.logs import text_reading as module
from rca.ingest.logs.text import TextIngestor
from rca.ingest.registry import AFTER_METRICS, BLOCKS
from rca.rules.schema import Signature

SKIP = Signature(id="scaler.skip", emitter="x", pattern=r"overflow at step \d+", matches=("overflow at step 3",))


def events(folder: Path, text: str) -> list[dict[str, Any]]:
    (folder / "train.log").write_text(text)
    context = IngestContext(signatures=(SKIP,), limits=Limits())
    source = Source("train.log", folder / "train.log", len(text), rank=None)
    rows = TextIngestor(BLOCKS, after_metrics=AFTER_METRICS).read(source, context).events.to_pylist()
    return [{name: repr(value) for name, value in row.items()} for row in rows]


def both(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[Any]]:
    together = events(folder, text)
    monkeypatch.setattr(module, "_IN_A_ROW", 10**9)
    one_by_one = events(folder, text)
    return together, one_by_one


def clock(second: int) -> str:
    return f"2026-03-01 {second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def timed(step: int) -> str:
    stamp = f"{clock(step)},{step % 1000:03d} - INFO - train - "
    return f"{stamp}step {step}/9,000 | loss {5 / (1 + step):.4f} | lr 3.0e-04 | {90 + step % 7}.5 ms/step"


def bare(step: int) -> str:
    return f"iter {step}: loss {step % 13 / 7:.3f}, grad_norm {step * 1.5:.2e}, mem 9.8G"


def epochs(step: int) -> str:
    return f"Epoch: [{step // 40}][{step % 40}/40] Loss {2.5 - step / 900:.3f} Acc@1 {step / 10:.2f}"


def short_time(step: int) -> str:
    return f"[{step // 60 % 24:02d}:{step % 60:02d}:00] step: {step} loss: {step:.1f} tokens/s: {12_000 + step:,}"


def heartbeat(step: int) -> str:
    return f"{clock(step)} - INFO - train - step {step}/9,000"


def drawn(step: int, total: int) -> str:
    eighths = step * 80 // total
    full = "\u2588" * (eighths // 8) + ("", *"\u258f\u258e\u258d\u258c\u258b\u258a\u2589")[eighths % 8]
    return f"{step * 100 // total:3d}%|{full:10}| {step}/{total} [{step // 60:02d}:{step % 60:02d}<1:04:09"


def bar(step: int) -> str:
    return f"\r{drawn(step, 9000)}, {4 + step % 9 / 10:.2f}it/s]"


def described_bar(step: int) -> str:
    return f"Training steps: {drawn(step, 400)},  {1 + step % 5}.{step % 10}s/it, loss={9 / (1 + step):.3f}, lr=3e-05]"


def bar_of_an_epoch(step: int) -> str:
    speed = "?it/s" if step % 40 == 0 else f"{step % 11}.00it/s"
    return f"\rEpoch {step // 40}: {drawn(step % 40, 40)}, {speed}, train_loss={step % 7}.50, v_num=3]"


LINES = [timed, bare, epochs, short_time, bar, described_bar, bar_of_an_epoch]


def test_lines_that_tell_only_how_far_training_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [heartbeat(step) + ("\nscaler: overflow at step 3" if step % 97 == 0 else "") for step in range(1, 900)]
    together, one_by_one = both(tmp_path, "\n".join(lines), monkeypatch)
    assert together == one_by_one
    assert len(together) == 9


@pytest.mark.parametrize("line", LINES)
def test_a_long_run_of_lines(line: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"{line(step)}\n" for step in range(300))
    together, one_by_one = both(tmp_path, text, monkeypatch)
    assert together == one_by_one
    assert len([row for row in together if row["kind"] == "'metric'"]) >= {bar: 0, bar_of_an_epoch: 560}.get(line, 600)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("line", LINES)
def test_lines_with_others_in_between(line: Any, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [
        "overflow at step {step}",
        "{clock} - INFO - eval - step {step} | eval_loss 1.25",
        "step {step}/9,000 | loss nan | lr 3.0e-04 | 90.5 ms/step",
        'Traceback (most recent call last):\n  File "a.py", line {step}, in f\n    g()\nValueError: {step}',
        "saved a checkpoint",
        "iter {step}: loss nan, grad_norm inf, mem 9.8G",
        "rank 3: step {step} loss 2.0",
        "\x1b[32miter {step}: loss 1.0, grad_norm 2.0, mem 9.8G\x1b[0m",
        "step {step} caf\u00e9 loss 3",
        "Loss scale: 65536, reducing to 32768",
        "{{'loss': 2.0, 'learning_rate': 1e-4, 'epoch': {step}}}",
        "step: {step}   loss: 7\r\n",
        "\rValidation:  50%|#####     | 5/10 [00:03<00:03,  1.5it/s]",
        "\r  0%|          | 0/{step} [00:00<?, ?it/s]",
        "\r100%|##########| 9000/9000 [00:03<00:00,  1.5it/s]",
        "\r 50%|#####     | 5/10 [00:03<00:03,  1.5it/s]",
        "{clock} saving",
    ]
    order = random.Random(seed)
    text = ""
    for step in range(200):
        text += line(step) + "\n"
        if order.random() < (0.02, 0.1)[seed % 2]:
            text += order.choice(others).format(step=step, clock=clock(step)) + "\n"
    together, one_by_one = both(tmp_path, text, monkeypatch)
    assert together == one_by_one
