from __future__ import annotations

from typing import Any

import pytest

from rca.ingest.settings.script_files import command_settings


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("python train.py --lr 1e-3 --fp16 --bs=4 \\", {"lr": "1e-3", "fp16": True, "bs": "4"}),
        ("--a --b --c x", {"a": True, "b": True, "c": "x"}),
        ("train.py model.depth=12 +trainer.max_steps=100", {"model.depth": "12", "trainer.max_steps": "100"}),
        ("--out \"$HOME/x\" --tag 'a'", {"tag": "a"}),
        ("--neg -1", {"neg": True}),
        ("ls -l", {}),
    ],
)
def test_command_lines(line: str, expected: dict[str, Any]) -> None:
    assert command_settings(line) == expected


SBATCH = """#!/bin/bash
#SBATCH --time=24:00:00
#SBATCH --gres=gpu:8
#SBATCH --exclusive
export NCCL_DEBUG=INFO OMP_NUM_THREADS=4
SECRET=$(cat /etc/passwd)
CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=8 train.py --lr 1e-3
# --lr 5
"""


def test_a_batch_script_is_read_never_run(read: Any) -> None:
    found = read("job.sbatch", SBATCH)
    settings = found.config()
    assert settings["slurm.time"] == "24:00:00"
    assert settings["slurm.exclusive"] is True
    assert (settings["nccl_debug"], settings["omp_num_threads"]) == ("INFO", 4)
    assert settings["cuda_visible_devices"] == "0,1"
    assert (settings["world_size"], settings["learning_rate"]) == (8, 0.001)
    assert "secret" not in settings
    assert found.table.config("learning_rate").line == 7


def test_a_started_container_tells_its_limits(read: Any) -> None:
    text = (
        "#!/bin/sh\ndocker run -d --name serve --shm-size=64m \\\n  --memory 12g --ipc host image:1 python serve.py\n"
    )
    container = read("start.sh", text).one("system.container")
    assert [container.attr(key) for key in ("container", "shm_bytes", "memory_limit_bytes", "ipc")] == [
        "serve",
        64 * 2**20,
        12 * 2**30,
        "host",
    ]


def test_a_python_config_gives_its_literals(read: Any) -> None:
    text = (
        "import os\nlearning_rate: float = 6e-4  # max\nbetas = (0.9, 0.95)\nx = os.system('true')\ny = ["
        + "[" * 99
        + "\ndef f():\n    lr = 3\n"
    )
    settings = read("config.py", text).config()
    assert settings["learning_rate"] == 6e-4
    assert settings["adam_beta2"] == 0.95
    assert "x" not in settings


def test_source_code_without_settings_is_skipped(read: Any) -> None:
    found = read("model.py", "class A:\n    pass\n")
    assert found.record.status == "skipped"
