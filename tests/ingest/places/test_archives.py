"""An archive of a run says the same as the run itself; a hostile or broken one costs nothing but itself."""

from __future__ import annotations

import io
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rca.ingest.interface import Limits, Source
from rca.ingest.places import archives
from rca.ingest.places.archives import Member, is_archive, members
from rca.ingest.places.content import open_content, read_head
from rca.ingest.places.discover import discover
from rca.investigation import Options
from rca.pipeline import examine
from rca.rules.load import load

SAMPLES = Path(__file__).parents[3] / "sample_logs"
RUN = SAMPLES / "rank_crash" / "run"
SEVERAL = {"a/rank_0.log": b"first\n", "a/rank_1.log": b"second\n" * 1000, "b.txt": b""}


def tar(file: Path, files: dict[str, bytes], mode: Literal["w", "w:gz", "w:xz", "w:bz2"] = "w") -> Path:
    with tarfile.open(file, mode) as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return file


def packed_as(suffix: str, folder: Path, files: dict[str, bytes]) -> Path:
    file = folder / f"run{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
    elif suffix == ".tar.zst":
        plain = tar(folder / "plain.tar", files)
        with pa.CompressedOutputStream(str(file), "zstd") as stream:
            stream.write(plain.read_bytes())
        plain.unlink()
    else:
        modes: dict[str, Literal["w", "w:gz", "w:xz", "w:bz2"]] = {
            ".tgz": "w:gz",
            ".tar.xz": "w:xz",
            ".tar.bz2": "w:bz2",
        }
        tar(file, files, modes.get(suffix, "w"))
    return file


@pytest.mark.parametrize("suffix", [".tar", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst", ".zip"])
def test_members_read_like_files(tmp_path: Path, suffix: str) -> None:
    packed_as(suffix, tmp_path, SEVERAL)
    sources, skipped = discover(tmp_path)
    assert skipped == []
    assert [(item.path, item.rank) for item in sources] == [
        (f"run{suffix}/a/rank_0.log", 0),
        (f"run{suffix}/a/rank_1.log", 1),
        (f"run{suffix}/b.txt", None),
    ]
    for source in (*sources, *sources[::-1]):
        with open_content(source, Limits()) as content:
            assert bytes(content.data[: len(content.data)]) == SEVERAL[source.path.split("/", 1)[1]]
        assert source.size == len(SEVERAL[source.path.split("/", 1)[1]])


def test_an_archive_is_a_folder(tmp_path: Path) -> None:
    root = Member(tar(tmp_path / "run.tar", SEVERAL))
    assert members(root.archive).damage is None
    assert sorted(place.name for place in root.iterdir()) == ["a", "b.txt"]
    inner = root / "a" / "rank_1.log"
    assert stat.S_ISREG(inner.lstat().st_mode)
    assert stat.S_ISDIR(inner.parent.lstat().st_mode)
    assert (inner.parent / "rank_0.log").open("rb").read() == b"first\n"
    with inner.open("rb") as stream:
        stream.seek(-7, io.SEEK_END)
        assert stream.read() == b"second\n"
    with pytest.raises(FileNotFoundError):
        (root / "c").open("rb")
    with pytest.raises(FileNotFoundError):
        (root / "c").lstat()


@pytest.mark.parametrize("form", ["gztar", "zip"])
def test_the_diagnosis_of_an_archive_is_that_of_the_run(tmp_path: Path, form: str) -> None:
    file = Path(shutil.make_archive(str(tmp_path / "run"), form, RUN))
    options = Options(experiments=("none",))
    knowledge = load(())
    whole, packed = (examine(place, knowledge, options=options).diagnosis for place in (RUN, file))
    assert packed.verdict == whole.verdict
    assert packed.failure == whole.failure
    assert [item.cause for item in packed.hypotheses] == [item.cause for item in whole.hypotheses]
    assert [item.path for item in packed.sources] == [item.path for item in whole.sources]


def test_archives_in_archives_are_opened_to_a_depth(tmp_path: Path) -> None:
    data = b"the log\n"
    name = "node.log"
    for level in range(5):
        file = tar(tmp_path / f"level{level}.tar.gz", {name: data}, "w:gz")
        data, name = file.read_bytes(), file.name
        if level < 4:
            file.unlink()
    sources, _ = discover(tmp_path)
    assert [item.path.count("/") for item in sources] == [3]
    assert read_head(sources[0])[:10] != b"the log\n"


def test_what_leads_out_or_is_no_file_is_told(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "run.tar", "w") as archive:
        for name in ("../../etc/passwd", "/etc/hosts"):
            entry = tarfile.TarInfo(name)
            entry.size = 2
            archive.addfile(entry, io.BytesIO(b"x\n"))
        link = tarfile.TarInfo("logs/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        entry = tarfile.TarInfo("repo/.git/config")
        archive.addfile(entry)
    sources, skipped = discover(tmp_path)
    assert [item.path for item in sources] == ["run.tar/etc/hosts"]
    assert {item.path for item in skipped} == {"run.tar/../../etc/passwd", "run.tar/logs/link", "run.tar/repo/.git"}
    assert all(item.why for item in skipped)


def test_a_cut_archive_keeps_what_is_whole(tmp_path: Path) -> None:
    whole = tar(tmp_path / "whole.tar", SEVERAL).read_bytes()
    (tmp_path / "whole.tar").unlink()
    (tmp_path / "run.tar").write_bytes(whole[:2048])
    sources, skipped = discover(tmp_path)
    assert [(item.path, item.size) for item in sources] == [("run.tar/a/rank_0.log", 6), ("run.tar/a/rank_1.log", 512)]
    assert "in part" in skipped[0].why


def test_an_archive_that_is_none_is_skipped_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04 no more")
    (tmp_path / "b.tar.gz").write_bytes(b"\x1f\x8b\x08 no more")
    (tmp_path / "c.tar").write_text("a text")
    (tmp_path / "d.log").write_text("the log")
    sources, skipped = discover(tmp_path)
    assert [item.path for item in sources] == ["d.log"]
    assert [item.path for item in skipped] == ["a.zip", "b.tar.gz", "c.tar"]
    assert all("cannot be read" in item.why for item in skipped)


def test_a_header_that_claims_gigabytes_is_refused(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("././@PaxHeader")
    entry.type, entry.size = tarfile.XHDTYPE, 6 << 30
    (tmp_path / "run.tar").write_bytes(entry.tobuf(tarfile.GNU_FORMAT) + b"\0" * 4096)
    sources, skipped = discover(tmp_path)
    assert sources == []
    assert "too large" in skipped[0].why


def header(name: bytes, size: bytes, kind: bytes = b"0") -> bytes:
    """Return a tar header whose checksum is right, whatever size it states."""
    block = bytearray(
        name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + size.ljust(12, b"\0") + b"0" * 11 + b"\0"
    )
    block += b" " * 8 + kind + bytes(100) + b"ustar\x0000"
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block.ljust(512, b"\0"))


EMPTY = b"00000000000"
BACK = b"\xff" + (2**88 - 512).to_bytes(11, "big")


def test_a_member_that_leads_back_ends_the_listing(tmp_path: Path) -> None:
    (tmp_path / "run.tar").write_bytes(header(b"a.log", EMPTY) + header(b"b.log", BACK) + bytes(1024))
    sources, skipped = discover(tmp_path)
    assert [item.path for item in sources] == ["run.tar/a.log"]
    assert "leads back" in skipped[0].why


@pytest.mark.parametrize("kind", [b"L", b"x"])
def test_a_member_of_endless_headers_ends_the_listing(tmp_path: Path, kind: bytes) -> None:
    more = header(b"././@more", b"00000000010", kind) + b"8 path=x".ljust(512, b"\n" if kind == b"x" else b"\0")
    (tmp_path / "run.tar").write_bytes(header(b"a.log", EMPTY) + more * 3000 + header(b"b.log", EMPTY) + bytes(1024))
    sources, skipped = discover(tmp_path)
    assert [item.path for item in sources] == ["run.tar/a.log"]
    assert "headers for one member" in skipped[0].why


def test_a_member_without_a_name_is_left_out(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        archive.writestr("x", b"text")
        archive.filelist[0].filename = ""
        archive.writestr("a.log", b"text")
    sources, skipped = discover(tmp_path)
    assert [item.path for item in sources] == ["run.zip/a.log"]
    assert len(skipped) == 1


def test_members_that_overlap_are_those_of_a_bomb(tmp_path: Path) -> None:
    data = bytearray(packed_as(".zip", tmp_path, {"a.log": b"text"}).read_bytes())
    stated = data.index(b"PK\x01\x02") + 20
    data[stated : stated + 4] = (1 << 20).to_bytes(4, "little")
    (tmp_path / "run.zip").write_bytes(bytes(data))
    sources, skipped = discover(tmp_path)
    assert sources == []
    assert "overlap" in skipped[0].why


def test_members_that_unpack_to_too_much_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_ALL_AT_LEAST", 1 << 20)
    packed_as(".zip", tmp_path, {f"{number}.log": bytes(300_000) for number in range(9)})
    sources, skipped = discover(tmp_path)
    assert len(sources) == 3
    assert "unpack to more than 1,048,576 bytes" in skipped[0].why


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_member_is_unreadable_whatever_packed_it(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "run.zip", "w", method) as archive:
        archive.writestr("a.log", "".join(map(str, range(99))))
    data = bytearray((tmp_path / "run.zip").read_bytes())
    data[35:60] = b"\xff" * 25
    (tmp_path / "run.zip").write_bytes(bytes(data))
    with pytest.raises(OSError, match=r"damaged|cannot be unpacked|Invalid data"):
        discover(tmp_path)[0][0].file.open("rb")


def test_a_locked_member_is_unreadable(tmp_path: Path) -> None:
    packed_as(".zip", tmp_path, {"a.log": b"secret"})
    data = bytearray((tmp_path / "run.zip").read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + flags] |= 1
    (tmp_path / "run.zip").write_bytes(bytes(data))
    sources, _ = discover(tmp_path)
    with pytest.raises(OSError, match="cannot be unpacked"):
        sources[0].file.open("rb")


def test_an_archive_that_changed_is_listed_again(tmp_path: Path) -> None:
    file = tar(tmp_path / "run.tar", {"a.log": b"old"})
    assert discover(tmp_path)[0][0].file.open("rb").read() == b"old"
    tar(file, {"a.log": b"newer"})
    assert discover(tmp_path)[0][0].file.open("rb").read() == b"newer"


@pytest.mark.parametrize("name", ["run.tar", "run.tar.gz", "run.zip"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_is_survived(tmp_path: Path, name: str, data: st.DataObject) -> None:
    (tmp_path / name).unlink(missing_ok=True)
    whole = bytearray(packed_as({"run.tar.gz": ".tgz"}.get(name, name[3:]), tmp_path, SEVERAL).read_bytes())
    (tmp_path / "run.tgz").unlink(missing_ok=True)
    for place in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=6)):
        whole[place] = data.draw(st.integers(0, 255))
    (tmp_path / name).write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    sources, _ = discover(tmp_path)
    for source in sources:
        read(source)


def read(source: Source) -> None:
    try:
        with source.file.open("rb") as stream:
            stream.read()
    except OSError:
        return


@pytest.mark.parametrize("path", ["a.TAR.GZ", "b/c.zip", "x.tgz", "y.tar.zst"])
def test_what_is_called_an_archive(path: str) -> None:
    assert is_archive(path)
    assert not is_archive(path + ".log")
