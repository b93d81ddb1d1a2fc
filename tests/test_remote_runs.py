"""A run that lies in a remote store is diagnosed as its copy on this machine."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fsspec.implementations.memory import MemoryFileSystem

from rca.cli import cli
from rca.errors import UsageError
from rca.ingest.places.remote import run_place
from rca.investigation import Options
from rca.pipeline import examine
from rca.rules.load import load

SAMPLES = Path(__file__).resolve().parents[1] / "sample_logs"
RULES_ONLY = Options(experiments="none")


knowledge = cache(load)


@cache
def found(run: str) -> dict[str, Any]:
    return examine(run_place(run), knowledge(), options=RULES_ONLY).diagnosis.model_dump(
        mode="json", exclude={"generated", "timings"}
    )


def without_place(diagnosis: dict[str, Any]) -> dict[str, Any]:
    return {**diagnosis, "run": {**diagnosis["run"], "path": "", "name": ""}}


@dataclass
class Bucket:
    """A local S3 server with one bucket."""

    fs: Any
    requests: list[str]


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    s3fs = pytest.importorskip("s3fs")
    server_of = pytest.importorskip("moto.server")
    server = server_of.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    told = logging.getLogger("werkzeug")
    requests: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: requests.append(record.getMessage())  # type: ignore[method-assign]
    told.addHandler(handler)
    told.setLevel(logging.INFO)
    server.start()
    host, port = server.get_host_and_port()
    environment = pytest.MonkeyPatch()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "example",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        environment.setenv(name, value)
    fs = s3fs.S3FileSystem()
    fs.mkdir("jobs")
    yield Bucket(fs, requests)
    s3fs.S3FileSystem.clear_instance_cache()
    environment.undo()
    server.stop()
    told.removeHandler(handler)


def test_a_run_and_its_baseline_in_s3(bucket: Bucket, tmp_path: Path) -> None:
    for name in ("lr_too_high", "healthy"):
        bucket.fs.put(f"{SAMPLES / name / 'run'}/", f"jobs/{name}/run/", recursive=True)
    files = sum(path.is_file() for path in (SAMPLES / "lr_too_high" / "run").rglob("*"))
    bucket.requests.clear()
    here = found(str(SAMPLES / "lr_too_high" / "run"))
    there = found("s3://jobs/lr_too_high/run")
    assert without_place(here) == without_place(there)
    assert there["run"]["path"] == "s3://jobs/lr_too_high/run"
    assert there["run"]["name"] == here["run"]["name"]
    # One request for the listing, one for a file of up to 64 kB; its lines are read again from what was kept.
    large = sum(path.stat().st_size > 1 << 16 for path in (SAMPLES / "lr_too_high" / "run").rglob("*"))
    assert len(bucket.requests) <= 1 + files + 3 * large
    config = tmp_path / "rca.toml"
    config.write_text('baseline = "s3://jobs/healthy/run"\n')
    asked = ["--config", str(config), "analyze", "s3://jobs/lr_too_high/run", "--json", "--experiments", "none"]
    told = CliRunner().invoke(cli, asked, catch_exceptions=False)
    beside = json.loads(told.stdout)["baseline"]
    assert beside["path"] == "s3://jobs/healthy/run"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [("s3://nosuchbucket/run", "does not exist"), ("s3://jobs/nosuchrun", "holds nothing or does not exist")],
)
def test_a_wrong_address_is_a_sentence(bucket: Bucket, url: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        found(url)


def test_an_object_that_is_gone_when_it_is_read_is_a_skipped_source(bucket: Bucket, monkeypatch) -> None:
    bucket.fs.put(f"{SAMPLES / 'lr_too_high' / 'run'}/", "jobs/gone/run/", recursive=True)
    bucket.fs.pipe("jobs/gone/run/gone.log", b"ERROR\n")
    listed = bucket.fs.find

    def find(*args: Any, **kwargs: Any) -> Any:
        entries = listed(*args, **kwargs)
        bucket.fs.rm("jobs/gone/run/gone.log")
        return entries

    monkeypatch.setattr(type(bucket.fs), "find", staticmethod(find))
    diagnosis = found("s3://jobs/gone/run")
    (gone,) = [source for source in diagnosis["sources"] if source["status"] == "skipped"]
    assert gone["path"] == "gone.log"
    assert "does not exist" in gone["why"]
    assert diagnosis["verdict"]["cause"] == found(str(SAMPLES / "lr_too_high" / "run"))["verdict"]["cause"]


def test_a_run_in_memory_with_experiments_that_need_its_files(tmp_path: Path) -> None:
    store = MemoryFileSystem()
    store.put(f"{SAMPLES / 'corrupt_shard' / 'run'}/", "/jobs/corrupt_shard/run/", recursive=True)
    here, there = found(str(SAMPLES / "corrupt_shard" / "run")), found("memory://jobs/corrupt_shard/run")
    assert without_place(here) == without_place(there)
    options = Options(experiments="weights_whole", budget_s=20)
    place = run_place("memory://jobs/corrupt_shard/run")
    tested = examine(place, knowledge(), options=options).diagnosis.experiments
    assert [item.verdict for item in tested] == ["not_testable"]
    assert "memory://" in tested[0].reason


def test_an_object_of_which_ten_lines_are_shown_is_not_fetched_again(monkeypatch) -> None:
    from rca.ingest.context import lines_around
    from rca.ingest.places.discover import discover

    store = MemoryFileSystem()
    store.pipe_file("/jobs/long/run/train.log", b"".join(b"step %07d loss 1.0\n" % step for step in range(300_000)))
    sources, _ = discover(run_place("memory://jobs/long/run"))
    fetched: list[int] = []
    cat_file = MemoryFileSystem.cat_file

    def counted(self: Any, path: str, start: int = 0, end: int = 0, **more: Any) -> bytes:
        fetched.append(end - start)
        return cat_file(self, path, start=start, end=end, **more)

    monkeypatch.setattr(MemoryFileSystem, "cat_file", counted)
    place = ("train.log", 150_001, 150_000 * 22)
    lines = lines_around(sources, [place])[place[:2]]
    assert [line.line for line in lines] == list(range(149_996, 150_007))
    assert lines[5].text == "step 0150000 loss 1.0"
    assert sum(fetched) < 1 << 20
    store.rm("/jobs/long", recursive=True)


def test_progress_is_told_in_bytes_also_within_a_large_file(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"step 1 loss 1.0\n" * 10)
    (tmp_path / "b.log").write_bytes(b"nothing to see here\n" * 600_000)
    told: list[tuple[str, int, int]] = []
    examine(tmp_path, knowledge(), options=RULES_ONLY, progress=lambda *stage: told.append(stage))
    reading = [stage for stage in told if stage[0].startswith("read ")]
    assert {name for name, _, _ in reading} == {"read 1/2 a.log", "read 2/2 b.log"}
    assert {total for _, _, total in reading} == {12_000_160}
    done = [done for _, done, _ in reading]
    assert done == sorted(done)
    assert any(160 < at < 12_000_160 for at in done)
