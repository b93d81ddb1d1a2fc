"""Weight files written by the library, then damaged in every way that is known to happen."""

from __future__ import annotations

import hashlib
import json
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest

from rca.errors import ExperimentError
from tests.experiments.checks.conftest import Judge

MODEL = "model.safetensors"


def save(torch: Any, folder: Path, name: str = MODEL, **change: Any) -> dict[str, Any]:
    from safetensors.torch import save_file

    draw = torch.Generator().manual_seed(0)
    tensors = {
        "a.weight": torch.randn((64, 64), generator=draw),
        "b.weight": torch.randn((64, 64), generator=draw).half(),
        "c.weight": torch.randn((64, 64), generator=draw).bfloat16(),
        "d.bias": torch.zeros(64),
        **change,
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / name)
    return tensors


def test_whole_files_refute_and_say_what_does_not_show(tmp_path: Path, judged: Judge, torch: Any) -> None:
    save(torch, tmp_path)
    found = judged("weights_whole")
    assert found.verdict == "refuted"
    assert "does not show" in found.scope
    assert dict(found.details)["bytes read"] == f"{64 * 64 * 8 + 64 * 4:,}"


def test_a_checksum_that_agrees_and_one_that_does_not(tmp_path: Path, judged: Judge, torch: Any) -> None:
    save(torch, tmp_path / "ckpt")
    file = tmp_path / "ckpt" / MODEL
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    (tmp_path / "ckpt" / "SHA256SUMS").write_text(f"{digest}  ./{MODEL}\n{digest}  absent.safetensors\n")
    found = judged("weights_whole")
    assert found.verdict == "refuted"
    assert "1 files agree with their checksum" in found.reason
    data = bytearray(file.read_bytes())
    data[-700] ^= 1
    file.write_bytes(data)
    found = judged("weights_whole")
    assert found.verdict == "confirmed"
    assert f"ckpt/{MODEL} differs from its checksum" in found.reason.replace(" (by ckpt/SHA256SUMS)", "")


def test_the_record_of_a_download_is_a_checksum(tmp_path: Path, judged: Judge, torch: Any) -> None:
    save(torch, tmp_path)
    record = tmp_path / ".cache" / "huggingface" / "download" / f"{MODEL}.metadata"
    record.parent.mkdir(parents=True)
    record.write_text(f"{'0' * 40}\n{'a' * 64}\n1700000000.0\n")
    found = judged("weights_whole")
    assert found.verdict == "confirmed"
    assert "differs from its checksum" in found.reason


def test_a_manifest_that_points_elsewhere_is_not_followed(tmp_path: Path, judged: Judge, torch: Any) -> None:
    run = tmp_path
    save(torch, run)
    (run / "checksums.txt").write_text(f"{'0' * 64}  ../../etc/passwd\n{'0' * 64}  /etc/passwd\n")
    found = judged("weights_whole")
    assert found.verdict == "refuted"
    assert dict(found.details)["files compared with a checksum"] == "0"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:-100], "is cut off"),
        (lambda data: data[:200], "ends inside its header"),
        (lambda data: b"", "is empty"),
        (lambda data: data[:5], "too few for a header"),
        (lambda data: struct.pack("<Q", 2**62) + data[8:], "no reader accepts"),
        (lambda data: data[:9] + b"{{{" + data[12:], "header that cannot be read"),
        (lambda data: data[:8] + b"[" * (len(data) - 8), "header that cannot be read"),
        (lambda data: data + b"rest", "4 bytes behind its last tensor"),
        (lambda data: data.replace(b"[64,64]", b"[64,63]", 1), "which its shape and type do not need"),
        (lambda data: data.replace(b"[64,64]", b"[-4,64]", 1), "gap or an overlap"),
        (lambda data: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "git-lfs pointer"),
        (lambda data: b"<!DOCTYPE html><title>404</title>", "web page"),
    ],
)
def test_damage_is_named(tmp_path: Path, judged: Judge, torch: Any, damage: Any, words: str) -> None:
    save(torch, tmp_path)
    file = tmp_path / MODEL
    file.write_bytes(damage(file.read_bytes()))
    found = judged("weights_whole")
    assert found.verdict == "confirmed"
    assert words in found.reason


def test_reserved_space_that_was_never_written(tmp_path: Path, judged: Judge, torch: Any) -> None:
    save(torch, tmp_path)
    file = tmp_path / MODEL
    data = file.read_bytes()
    file.write_bytes(data[: len(data) - 64 * 64 * 4] + bytes(64 * 64 * 4))
    found = judged("weights_whole")
    assert found.verdict == "confirmed"
    assert "all zero" in found.reason


def test_zeros_that_are_meant_are_no_damage(tmp_path: Path, judged: Judge, torch: Any) -> None:
    save(torch, tmp_path, **{"z.lora_B.weight": torch.zeros((64, 64))})
    assert judged("weights_whole").verdict == "refuted"


def test_values_that_are_not_finite_count_by_when_the_loss_failed(tmp_path: Path, judged: Judge, torch: Any) -> None:
    weight = torch.ones((64, 64))
    weight[3, 5] = torch.nan
    save(torch, tmp_path, **{"a.weight": weight})
    found = judged("weights_whole", symptoms=("nan_abrupt",))
    assert found.verdict == "inconclusive"
    assert dict(found.details)[f"not finite in {MODEL}"] == "a.weight (1 values)"
    assert judged("weights_whole", symptoms=("nan_at_start",)).verdict == "confirmed"


def test_a_checkpoint_of_torch_is_checked_without_unpickling(tmp_path: Path, judged: Judge, torch: Any) -> None:
    torch.save({"w": torch.randn(4000)}, tmp_path / "pytorch_model.bin")
    assert judged("weights_whole").verdict == "refuted"
    data = bytearray((tmp_path / "pytorch_model.bin").read_bytes())
    data[len(data) // 2] ^= 255
    (tmp_path / "pytorch_model.bin").write_bytes(data)
    found = judged("weights_whole")
    assert found.verdict == "confirmed"
    assert "records that differ from their checksum" in found.reason
    (tmp_path / "pytorch_model.bin").write_bytes(data[: len(data) // 2])
    assert "cut off" in judged("weights_whole").reason


def test_an_old_pickle_is_left_alone(tmp_path: Path, judged: Judge) -> None:
    (tmp_path / "model.pt").write_bytes(pickle.dumps({"w": 1}))
    found = judged("weights_whole")
    assert found.verdict == "inconclusive"


def index(folder: Path, mapped: dict[str, str]) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": mapped}))


def test_an_index_against_its_folder(tmp_path: Path, judged: Judge, torch: Any) -> None:
    first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    own = dict.fromkeys(["a.weight", "b.weight", "c.weight", "d.bias"], first)
    save(torch, tmp_path, first)
    index(tmp_path, own)
    assert judged("weights_complete").verdict == "refuted"
    index(tmp_path, {**own, "e": second})
    found = judged("weights_complete")
    assert found.verdict == "confirmed"
    assert second in found.reason
    index(tmp_path, {**own, "e": first})
    assert f"e ({first})" in judged("weights_complete").reason
    index(tmp_path, {"a": "x.safetensors", "b": "../../outside.safetensors"})
    found = judged("weights_complete")
    assert found.verdict == "inconclusive"
    assert "not copied" in found.reason


def test_the_range_of_the_weights(tmp_path: Path, judged: Judge, torch: Any) -> None:
    save(torch, tmp_path)
    assert judged("weights_range", precision="fp16").verdict == "inconclusive"
    save(torch, tmp_path, **{"a.weight": torch.full((64, 64), 7e4)})
    found = judged("weights_range", precision="fp16")
    assert found.verdict == "confirmed"
    assert "7e+04 (a.weight in model.safetensors)" in found.reason
    with pytest.raises(ExperimentError, match="bf16"):
        judged("weights_range", precision="bf16")


def test_a_link_out_of_the_folder_is_no_weight_file(tmp_path: Path, judged: Judge) -> None:
    (tmp_path / MODEL).symlink_to("/etc/passwd")
    with pytest.raises(ExperimentError, match="no weight file"):
        judged("weights_whole")
