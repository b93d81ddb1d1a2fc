"""Runs in remote stores: what is asked of the store, what it may answer, and what is never told."""

from __future__ import annotations

import io
import pickle
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from rca.errors import UnreadableSource, UsageError
from rca.ingest.interface import Limits, Source
from rca.ingest.places import remote
from rca.ingest.places.content import open_content, read_head
from rca.ingest.places.discover import discover
from rca.ingest.places.remote import Remote, listing, run_place


class Asked(MemoryFileSystem):
    """A store that remembers what it was asked for."""

    protocol = ("memory",)
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Any, ...]] = []
        self.raises: Exception | None = None

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        self.asked.append((path.rpartition("/")[2], start, end))
        if self.raises is not None:
            raise self.raises
        return super().cat_file(path, start=start, end=end, **kwargs)

    def find(self, path: str, **kwargs: Any) -> Any:  # type: ignore[override]
        self.asked.append(("find",))
        if self.raises is not None:
            raise self.raises
        return super().find(path, **kwargs)

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        self.asked.append(("ls",))
        return super().ls(path, detail=detail, **kwargs)


@pytest.fixture
def store() -> Iterator[tuple[Asked, Remote]]:
    fs = Asked()
    folder = f"/{uuid.uuid4().hex}/run"
    yield fs, Remote(fs, folder)
    remote.forget()
    MemoryFileSystem().rm(folder.rsplit("/", 1)[0], recursive=True)


def put(store: tuple[Asked, Remote], **files: bytes) -> None:
    fs, root = store
    for name, body in files.items():
        fs.pipe_file(f"{root.path}/{name}", body)


def test_a_folder_is_listed_as_a_local_one_with_one_question(store, tmp_path: Path) -> None:
    names = ("b.log", "a.log", "a/z.log", "a.b/c.log", ".git/HEAD", "a/.venv/x.py")
    for name in names:
        put(store, **{name: b"x\n"})
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x\n")
    fs, root = store
    fs.pipe_file(f"{root.path}2/other.log", b"not of this run")
    fs.asked.clear()
    found, skipped = discover(root)
    local, locally_skipped = discover(tmp_path)
    assert [(source.path, source.size) for source in found] == [(source.path, source.size) for source in local]
    assert {record.path: record.why for record in skipped} == {record.path: record.why for record in locally_skipped}
    assert fs.asked.count(("find",)) == 1


def test_names_that_lead_out_are_left_out_and_empty_parts_are_not_shown(store) -> None:
    put(store, **{"d.log": b"123"})
    fs, root = store

    def find(_path: str, **_: Any) -> dict[str, dict[str, Any]]:
        names = ("../up.log", "a//b.log", "c/", "d.log")
        entries = {f"{root.path}/{name}": {"size": 3, "type": "file"} for name in names}
        return entries | {f"{root.path}/e.log": {"type": "file", "size": None}}

    fs.find = find  # type: ignore[method-assign, assignment]
    found = listing(root)
    assert list(found.files) == ["a/b.log", "d.log"]
    assert set(found.left_out) == {"../up.log", "e.log"}


def test_files_beyond_the_limit_are_left_out(store) -> None:
    put(store, **{f"{index}.log": b"x" for index in range(5)})
    found, skipped = discover(store[1], Limits(files=3))
    assert [source.path for source in found] == ["0.log", "1.log", "2.log"]
    assert "more than 3 files" in skipped[0].why


def test_a_small_object_is_fetched_once(store) -> None:
    put(store, **{"a.log": b"line\n" * 1000})
    (source,), _ = discover(store[1])
    head = read_head(source)
    with open_content(source, Limits()) as content:
        assert bytes(content.data) == b"line\n" * 1000
    assert head == (b"line\n" * 1000)[:4096]
    assert [asked for asked in store[0].asked if asked[0] == "a.log"] == [("a.log", 0, 5000)]


def test_a_larger_object_takes_two_requests_and_a_look_into_it_a_small_one(store) -> None:
    size = 3_000_000
    body = bytes(range(250)) * (size // 250)
    put(store, **{"a.log": body})
    place = listing(store[1]).files["a.log"]
    read_head(Source(path="a.log", file=place, size=size))
    with place.open("rb") as stream:
        assert stream.read() == body
    assert len([asked for asked in store[0].asked if asked[0] == "a.log"]) <= 8
    store[0].asked.clear()
    with open_content(Source(path="a.log", file=place, size=size), Limits()) as content:
        assert bytes(content.data) == body
    assert store[0].asked == [("a.log", remote.FIRST, size)]
    store[0].asked.clear()
    with place.open("rb") as stream:
        stream.seek(1_500_000)
        assert stream.read(1000) == body[1_500_000:1_501_000]
    ((_, start, end),) = store[0].asked
    assert end - start <= 1 << 17


def test_a_stream_reads_as_a_local_file_whatever_is_asked(store, tmp_path: Path) -> None:
    body = bytes(range(256)) * 2000
    put(store, **{"a.bin": body})
    (tmp_path / "a.bin").write_bytes(body)
    place = listing(store[1]).files["a.bin"]
    with place.open("rb") as ours, (tmp_path / "a.bin").open("rb") as theirs:
        for offset, whence, count in [(0, 0, 10), (70_000, 0, 200_000), (-5, 1, 9), (-100, 2, 500), (65_530, 0, 12)]:
            assert ours.seek(offset, whence) == theirs.seek(offset, whence)
            assert ours.read(count) == theirs.read(count)
            assert ours.tell() == theirs.tell()
        assert ours.seek(10**9) == 10**9
        assert ours.read(1) == b""


def test_whoever_maps_a_file_gets_a_local_copy(store) -> None:
    import mmap

    put(store, **{"a.bin": b"0123456789" * 20_000})
    with listing(store[1]).files["a.bin"].open("rb") as stream:
        with mmap.mmap(stream.fileno(), 200_000, access=mmap.ACCESS_READ) as mapped:
            assert mapped[199_990:] == b"0123456789"
        assert stream.read(3) == b"012"


def test_what_lies_beside_an_object_is_found_with_one_request(store) -> None:
    put(store, **{"model.index.json": b"{}", "a.bin": b"123", "sub/c.bin": b"1"})
    folder = listing(store[1]).files["model.index.json"].parent
    store[0].asked.clear()
    assert (folder / "a.bin").lstat().st_size == 3
    assert {item.name for item in folder.iterdir()} == {"model.index.json", "a.bin", "sub"}
    with pytest.raises(FileNotFoundError):
        (folder / "none.bin").lstat()
    assert (folder / "a.bin").open("rb").read() == b"123"
    assert store[0].asked.count(("ls",)) == 1


def test_a_place_travels_and_is_equal(store) -> None:
    put(store, **{"a.log": b"1"})
    place = Remote(MemoryFileSystem(), f"{store[1].path}/a.log", 1)
    again = pickle.loads(pickle.dumps(place))
    assert again == place
    assert hash(again) == hash(place)
    assert again.open("rb").read() == b"1"
    assert not again.shared


class NoCredentialsError(Exception):
    pass


class ClientError(Exception):
    pass


@pytest.mark.parametrize(
    ("raised", "sentence"),
    [
        (FileNotFoundError("x"), "does not exist"),
        (PermissionError("403"), "access was denied"),
        (NoCredentialsError("Unable to locate credentials"), "no credentials were found"),
        (TimeoutError(), "does not answer"),
        (ClientError("GET https://u:pw@host/run?X-Amz-Signature=abc failed\nwith 500"), "GET https://host/run"),
    ],
)
def test_what_a_store_raises_is_a_sentence(store, raised: Exception, sentence: str) -> None:
    put(store, **{"a.log": b"gone soon"})
    (source,), _ = discover(store[1])
    remote.forget()
    store[0].raises = raised
    with pytest.raises(UnreadableSource, match=sentence) as told:
        read_head(source)
    assert "pw" not in str(told.value)
    assert "Signature" not in str(told.value)
    with pytest.raises(UsageError, match=sentence):
        listing(store[1])


def test_a_store_that_gives_more_than_was_asked_for_is_not_believed(store) -> None:
    put(store, **{"a.log": b"0123456789" * 10_000})
    (source,), _ = discover(store[1])
    remote.forget()
    store[0].cat_file = lambda *_args, **_kwargs: b"x" * 200_000  # type: ignore[method-assign]
    with pytest.raises(UnreadableSource, match="parts"):
        read_head(source)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nosuch://bucket/run", "nosuch"),
        ("memory://nothing/here", "holds nothing or does not exist"),
        ("s3://", "cannot be read"),
    ],
)
def test_an_address_of_nothing_is_a_sentence(url: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        discover(run_place(url))


def test_a_single_object_is_no_run(store) -> None:
    put(store, **{"a.log": b"1"})
    with pytest.raises(UsageError, match="neither a folder nor an archive"):
        discover(store[1] / "a.log")


def test_an_archive_in_a_store_is_a_folder(store) -> None:
    import tarfile

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("logs/train.log")
        entry.size = 6
        archive.addfile(entry, io.BytesIO(b"line\n\n"))
    put(store, **{"run.tar.gz": packed.getvalue()})
    (inside,), _ = discover(store[1])
    assert inside.path == "run.tar.gz/logs/train.log"
    (source,), _ = discover(store[1] / "run.tar.gz")
    assert source.path == "logs/train.log"
    with open_content(source, Limits()) as content:
        assert bytes(content.data) == b"line\n\n"


def test_local_addresses_are_local_and_secrets_are_never_shown(tmp_path: Path) -> None:
    assert run_place(str(tmp_path)) == run_place(f"file://{tmp_path}") == run_place(tmp_path) == tmp_path
    secret = Remote(fsspec.filesystem("http"), "http://user:pa55@host/run/job?X-Amz-Signature=5ecret")
    for text in (str(secret), repr(secret), secret.name, str(secret / "a.log"), str(secret.parent)):
        assert "pa55" not in text
        assert "5ecret" not in text
    assert secret.name == "job"
