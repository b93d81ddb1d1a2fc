"""Real images and sound, whole and damaged."""

from __future__ import annotations

import struct
import wave
import zlib
from pathlib import Path
from typing import Any

import pytest

from rca.experiments.checks.files import is_media_file, left
from rca.experiments.checks.media import read_media
from rca.experiments.interface import Material
from tests.experiments.checks.conftest import Judge


def png(file: Path) -> None:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    pixels = zlib.compress(b"\0\1\2\3\4" * 4)
    head = struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 0)
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))


def sound(file: Path) -> None:
    with wave.open(str(file), "wb") as out:
        out.setparams((1, 2, 16000, 0, "NONE", ""))
        out.writeframes(b"\1\2" * 800)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    for place in range(6):
        png(folder / f"{place}.png")
        sound(folder / f"{place}.wav")
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0" + b"x" * 200_000 + b"\xff\xd9" + b"\0" * 9)
    return folder


def test_whole_files_refute(images: Path, judged: Judge) -> None:
    found = judged("readable_samples")
    assert found.verdict == "refuted"
    assert "All 13 images and sounds" in found.reason


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        ("2.png", lambda data: data[:-12], "cut off"),
        ("2.png", lambda data: b"", "is empty"),
        ("2.png", lambda data: b"<html>", "is text"),
        ("2.png", lambda data: bytes(len(data)), "zeros only"),
        ("2.png", lambda data: b"garbage" + data, "does not begin like png"),
        ("photo.jpg", lambda data: data[:90_000], "cut off"),
        ("3.wav", lambda data: data[:44], "a header and no sound"),
        ("3.wav", lambda data: data[:600], "556 of 1,600 bytes of sound"),
        ("3.wav", lambda data: data[:12] + b"LIST\xff\xff\xff\xff", ""),
    ],
)
def test_damage_is_named(images: Path, judged: Judge, name: str, damage: Any, words: str) -> None:
    (images / name).write_bytes(damage((images / name).read_bytes()))
    found = judged("readable_samples")
    assert found.verdict == ("confirmed" if words else "refuted")
    assert words in found.reason
    if words:
        assert found.reason.startswith(f"images/{name} ")


def test_an_image_under_another_suffix_is_no_damage(images: Path) -> None:
    (images / "5.png").rename(images / "5.jpg")
    assert read_media(images, named=True).damaged == 0


def test_charts_are_no_data_and_links_are_not_opened(images: Path, tmp_path: Path) -> None:
    assert not is_media_file("loss_curve.png", named=False)
    assert not is_media_file("plots/val_curve.png", named=False)
    (images / "6.png").symlink_to("/etc/hostname")
    assert read_media(tmp_path, named=False).damaged == 0
    assert "samples" in left(Material(folder=tmp_path))
