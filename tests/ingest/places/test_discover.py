"""What a run directory holds, what is left out, and whose rank or node a path names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rca.ingest.interface import Limits
from rca.ingest.places.discover import discover, path_host, path_rank


def test_files_come_in_the_order_of_their_paths(tmp_path: Path) -> None:
    for name in ("b.log", "a/z.log", "a/b/c.txt", "a.log"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    sources, skipped = discover(tmp_path)
    assert [item.path for item in sources] == ["a/b/c.txt", "a/z.log", "a.log", "b.log"]
    assert skipped == []
    assert sources[0].size == 1


def test_a_time_that_one_log_prints_is_known_to_all(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("INFO 10-02 05:59:48 no year here")
    (tmp_path / "b.txt").write_text("Thu Aug 29 11:02:11 2024")
    sources, _ = discover(tmp_path)
    assert {source.known_time for source in sources} == {1724929331000000}


def test_links_are_not_followed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "logs").mkdir(parents=True)
    (run / "logs" / "a.log").write_text("x")
    (tmp_path / "secret.txt").write_text("outside")
    (run / "out.txt").symlink_to(tmp_path / "secret.txt")
    (run / "up").symlink_to(tmp_path)
    (run / "loop").symlink_to(run / "loop")
    (run / "logs" / "again").symlink_to(run)
    (run / "latest.log").symlink_to("logs/a.log")
    (run / "gone").symlink_to("nowhere")
    sources, skipped = discover(run)
    assert [item.path for item in sources] == ["logs/a.log"]
    why = {item.path: item.why for item in skipped}
    assert set(why) == {"out.txt", "up", "loop", "logs/again", "latest.log", "gone"}
    assert "leaves the run directory" in why["out.txt"]
    assert "leaves the run directory" in why["up"]
    assert "nowhere" in why["loop"]
    assert "nowhere" in why["gone"]
    assert "logs/a.log" in why["latest.log"]


def test_pipes_tools_and_deep_trees_are_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("x")
    deep = tmp_path
    for _ in range(60):
        deep /= "d"
    deep.mkdir(parents=True)
    (deep / "x.log").write_text("x")
    sources, skipped = discover(tmp_path)
    assert sources == []
    assert {item.path.split("/")[0] for item in skipped} == {"pipe", ".git", "d"}


def test_too_many_files_are_cut_and_said(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.log").write_text("x")
    sources, skipped = discover(tmp_path, Limits(files=3))
    assert len(sources) == 3
    assert "more than 3 files" in skipped[0].why


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
def test_a_folder_that_cannot_be_listed_is_said(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o000)
    _, skipped = discover(tmp_path)
    assert "cannot be listed" in skipped[0].why


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff.log", "wb") as file:
        file.write(b"x")
    (source,), _ = discover(tmp_path)
    assert source.path.encode("utf-8")
    assert source.file.read_bytes() == b"x"


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("rank_3.log", 3),
        ("logs/rank3.err", 3),
        ("rank0/stderr.txt", 0),
        ("timing_rank5.csv", 5),
        ("logs/attempt_0/3/stderr.log", 3),
        ("out/x_abc/attempt_1/12/stdout.log", 12),
        ("6620914_0_log.err", 0),
        ("task-7.out", 7),
        ("train.log", None),
        ("ranking_2.csv", None),
        ("main_log.3.txt", None),
        ("slurm-5520193.err", None),
        ("checkpoint-4200/trainer_state.json", None),
    ],
)
def test_rank_of_a_path(path: str, rank: int | None) -> None:
    assert path_rank(path) == rank


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("node_2.out", "node2"),
        ("logs/node-3/train.log", "node3"),
        ("node_gpu-c03.out", "gpu-c03"),
        ("node0_gpu-21.log", "gpu-21"),
        ("dmesg_gpu-22.txt", "gpu-22"),
        ("nvidia-smi_worker1.txt", "worker1"),
        ("train.log", None),
        ("dmesg.txt", None),
        ("nvidia-smi_host.txt", None),
    ],
)
def test_node_of_a_path(path: str, host: str | None) -> None:
    assert path_host(path) == host
