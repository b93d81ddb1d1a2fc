"""Reading on a Dask cluster: what is said when there is none, how work is grouped, and workers that die."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from rca.diagnosis import SourceRecord
from rca.errors import UnreadableSource, UsageError
from rca.events import EventBuilder
from rca.ingest.interface import Ingested, Source
from rca.ingest.places import cluster
from rca.ingest.places.remote import Remote, Root, run_place
from rca.ingest.read import read_source

SAMPLES = Path(__file__).resolve().parents[3] / "sample_logs"


def sources(folder: Path, **texts: str) -> list[Source]:
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [Source(path=name, file=folder / name, size=len(text)) for name, text in texts.items()]


def read(source: Source) -> tuple[SourceRecord, Ingested | None]:
    """Read as told in the file: end the process the first time, or every time, raise, or skip."""
    assert isinstance(source.file, Path)
    text = source.file.read_text()
    tried = source.file.with_suffix(".tried")
    if text == "kill" or (text == "kill once" and not tried.exists()):
        tried.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if text == "raise":
        raise ValueError(source.path)
    if text == "skip":
        return SourceRecord(path=source.path, status="skipped", why="told so"), None
    builder = EventBuilder(source.path)
    for line in text.split():
        builder.add(kind="log", name=line)
    events = builder.build()
    return SourceRecord(path=source.path, events=events.num_rows), Ingested(events=events, text=True)


def test_without_dask_it_is_said_how_to_get_it(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"rca-dl\[cluster\]"):
        next(cluster.on_cluster(sources(tmp_path, a="x"), read, address="tcp://127.0.0.1:8786"))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "no address", "s3://bucket/run"])
def test_an_address_where_nobody_answers_is_named(monkeypatch, tmp_path: Path, address: str) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "_CONNECT_S", 0.2)
    with pytest.raises(UsageError, match=f"no Dask scheduler answers at {address}"):
        next(cluster.on_cluster(sources(tmp_path, a="x"), read, address=address))


def test_small_sources_travel_together_and_the_largest_come_first(tmp_path: Path) -> None:
    sizes = [10] * 100 + [20 << 20] + [5 << 20] * 3
    many = [Source(path=str(index), file=tmp_path, size=size) for index, size in enumerate(sizes)]
    batches = list(cluster._batches(many))
    assert sorted(index for batch in batches for index in batch) == list(range(len(many)))
    assert batches[0] == [100]
    assert all(sum(sizes[index] for index in batch) <= 8 << 20 for batch in batches[1:])
    assert all(len(batch) <= 64 for batch in batches)
    assert len(batches) <= 6


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    import dask

    # Each death costs the start of a process: the first one counts, not the fourth as by default.
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=60
        ) as running,
    ):
        yield running


@pytest.mark.slow
def test_workers_that_die_cost_nothing_but_what_ends_them_every_time(scheduler, tmp_path: Path) -> None:
    texts = {"a": "one two", "b": "kill once", "c": "raise", "d": "skip", "e": "kill", "f": "three"}
    texts |= {f"g{index}": "four five six" for index in range(100)}
    given = sources(tmp_path, **texts)
    found = dict(cluster.on_cluster(given, read, address=scheduler.scheduler_address))
    assert sorted(found) == list(range(len(given)))
    by_name = {source.path: found[index] for index, source in enumerate(given)}
    record, ingested = by_name["a"]()
    assert ingested is not None
    assert (record.events, ingested.text) == (2, True)
    assert ingested.events.equals(read(given[0])[1].events)  # type: ignore[union-attr]
    assert by_name["b"]()[0].events == 2
    with pytest.raises(ValueError, match="c"):
        by_name["c"]()
    assert by_name["d"]() == (SourceRecord(path="d", status="skipped", why="told so"), None)
    with pytest.raises(UnreadableSource, match="crashed"):
        by_name["e"]()
    assert all(by_name[f"g{index}"]()[0].events == 3 for index in range(100))
    assert not scheduler.scheduler.tasks


@pytest.mark.slow
def test_workers_that_see_another_file_or_run_another_rca_are_named(scheduler, tmp_path: Path, monkeypatch) -> None:
    given = sources(tmp_path, a="one two")
    asked = cluster._asked(given[0])
    for changed, sentence in ((asked._replace(size=5), "do not see"), (asked._replace(code="0.0"), "install there")):
        with monkeypatch.context() as patch:
            patch.setattr(cluster, "_asked", _Said(changed))
            with pytest.raises(UsageError, match=sentence):
                list(cluster.on_cluster(given, read, address=scheduler.scheduler_address))


def dying_once(source: Source, *, flag: str, **given: Any) -> tuple[SourceRecord, Ingested | None]:
    """Read a source, but kill the process in the middle of the first log."""
    if source.path.endswith("train.log") and not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return read_source(source, **given)


@cache
def knowledge() -> Any:
    from rca.rules.load import load

    return load()


def diagnosis(run: Root, **more: Any) -> dict[str, Any]:
    from rca.pipeline import Options, examine  # not at the top: every worker process imports this file

    found = examine(run, knowledge(), options=Options(experiments="none", **more)).diagnosis
    return found.model_dump(mode="json", exclude={"generated", "timings"})


@cache
def read_here() -> dict[str, Any]:
    return diagnosis(SAMPLES / "rank_crash" / "run")


@pytest.mark.slow
def test_the_same_diagnosis_whoever_reads(scheduler, tmp_path: Path, monkeypatch) -> None:
    from rca import observation

    run, here = SAMPLES / "rank_crash" / "run", read_here()
    monkeypatch.setattr(observation, "pays", lambda _sizes: True)
    assert diagnosis(run, jobs=2) == here
    flag = tmp_path / "killed"
    monkeypatch.setattr(observation, "read_source", partial(dying_once, flag=str(flag)))
    assert diagnosis(run, cluster=scheduler.scheduler_address) == here
    assert flag.exists()


@pytest.mark.slow
def test_workers_read_from_s3_and_cannot_see_what_only_this_process_has(scheduler) -> None:
    s3fs = pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        fs = s3fs.S3FileSystem(key="AKIAEXAMPLE", secret="example", endpoint_url=f"http://{host}:{port}")
        fs.mkdir("jobs")
        run = SAMPLES / "rank_crash" / "run"
        fs.put(f"{run}/", "jobs/rank_crash/run/", recursive=True)
        there = diagnosis(Remote(fs, "jobs/rank_crash/run"), cluster=scheduler.scheduler_address)
    finally:
        server.stop()
    here = read_here()
    assert there["run"]["path"] == "s3://jobs/rank_crash/run"
    assert there | {"run": here["run"]} == here
    assert there["run"] | {"path": here["run"]["path"]} == here["run"]
    MemoryFileSystem().pipe_file("/jobs/only_here/train.log", b"ERROR\n")
    with pytest.raises(UsageError, match="the workers of the cluster do not see memory://"):
        diagnosis(run_place("memory://jobs/only_here"), cluster=scheduler.scheduler_address)


class _Said:
    """Says something else here than on a worker, where it asks."""

    def __init__(self, here: Any) -> None:
        self.here = here

    def __call__(self, source: Source) -> Any:
        return self.here

    def __reduce__(self) -> Any:
        return getattr, (cluster, "_asked")
