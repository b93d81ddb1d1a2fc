"""Numbers in file names that are ranks, because the files say so."""

from __future__ import annotations

from pathlib import Path

from rca.ingest.places.discover import discover


def ranks(folder: Path) -> dict[str, int | None]:
    return {source.path: source.rank for source in discover(folder)[0]}


def test_numbers_that_the_files_call_their_rank_are_ranks(tmp_path: Path) -> None:
    for rank in range(12):
        text = f"launcher: RANK={rank} LOCAL_RANK={rank % 8} WORLD_SIZE=12\n[rank{rank}]: peer rank 3 is gone\n"
        (tmp_path / f"pretrain_812345_{rank}.out").write_text(text)
    assert ranks(tmp_path) == {f"pretrain_812345_{rank}.out": rank for rank in range(12)}


def test_array_tasks_restarts_and_epochs_are_no_ranks(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"sweep_812345_{number}.out").write_text("RANK=0 LOCAL_RANK=0 WORLD_SIZE=1\nepoch 1\n")
        (tmp_path / f"epoch_{number}.log").write_text("loss 2.0\n")
    assert set(ranks(tmp_path).values()) == {None}


def test_one_file_and_a_local_rank_prove_nothing(tmp_path: Path) -> None:
    (tmp_path / "job_17.out").write_text("[rank17]: hello\n")
    for number in range(2):
        (tmp_path / f"node-{number}.txt").write_text(f"local_rank={number}\n")
    assert set(ranks(tmp_path).values()) == {None}


def test_local_ranks_of_several_nodes_become_what_the_files_say(tmp_path: Path) -> None:
    for node in range(2):
        for local in range(2):
            folder = tmp_path / f"node{node}" / "attempt_0" / str(local)
            folder.mkdir(parents=True)
            (folder / "stderr.log").write_text(f"[rank{2 * node + local}]: peer rank 3 is gone\n" if local else "")
            (folder / "stdout.log").write_text(f"RANK={2 * node + local} LOCAL_RANK={local}\n")
    silent = tmp_path / "node1" / "attempt_0" / "2"
    silent.mkdir()
    (silent / "stderr.log").write_text("Killed\n")
    found = ranks(tmp_path)
    for node in range(2):
        for local in range(2):
            for name in ("stdout", "stderr"):
                assert found[f"node{node}/attempt_0/{local}/{name}.log"] == 2 * node + local
    assert found["node1/attempt_0/2/stderr.log"] is None


def test_the_folders_of_one_launcher_are_ranks(tmp_path: Path) -> None:
    for attempt in range(2):
        folder = tmp_path / f"attempt_{attempt}" / "3"
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_text("Killed\n")
    assert set(ranks(tmp_path).values()) == {3}
