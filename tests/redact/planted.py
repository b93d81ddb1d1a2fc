"""A run directory with every secret in every place from which text reaches a report."""

from __future__ import annotations

import json
from pathlib import Path

from .corpus import Shape, drawn, shapes

RUN_NAME = "llama-" + "gh" + "p_" + drawn("run name", 36)
"""Folder of the run, and so its name."""
PEOPLE = {
    "/home/ada.lovelace/train.py": "ada.lovelace",
    "/Users/Grace.H/runs": "Grace.H",
    "C:\\Users\\kjohnson\\run": "kjohnson",
    "/scratch/mhamilton/data": "mhamilton",
    "SLURM_JOB_USER=dvaughan": "dvaughan",
    "mail to eve+runs@lab.example.org": "eve+runs@lab.example.org",
    "barbara@gpu-417:~/run$ python train.py": "barbara",
}
"""Lines with the names of persons in them."""
MACHINES = {
    "connect to 10.31.4.31:29500 failed": "10.31.4.31",
    "peer [2001:db8:85a3::8a2e:370:7334]:29500 closed": "2001:db8:85a3::8a2e:370:7334",
    "HOSTNAME=gpu-417.hpc.example.edu": "gpu-417.hpc",
    "node ip-10-0-3-17.eu-west-1.compute.internal left": "ip-10-0-3-17",
    "pod/llama-train-worker-3 was evicted": "llama-train-worker-3",
    "trainer-7d9f8b6c5d-x2x9q: OOMKilled": "trainer-7d9f8b6c5d-x2x9q",
    "gke-pool-a100-1a2b3c4d-x1y2 is not ready": "gke-pool-a100-1a2b3c4d-x1y2",
    "srun: error: cn0417: task 3: Exited with exit code 1": "cn0417",
}
"""Lines with the names of machines in them."""


def one_line(shape: Shape) -> str:
    """The line of a shape, for places that take one line."""
    return shape.line.replace("\n", "\\n")


def plant(place: Path) -> Path:
    """Write the run directory and return it."""
    run = place / RUN_NAME
    found = shapes()
    alone = [shape for shape in found if shape.alone and "/" not in shape.secret and len(shape.secret) < 120]
    files = {
        "train.log": _log(found),
        "config.yaml": "".join(f"note_{n}: {json.dumps(one_line(shape))}\n" for n, shape in enumerate(found))
        + "trainer:\n  hub_token: Zx81qwerty77\n  db_password: correct-horse-9\n  learning_rate: 0.001\n",
        "environment.txt": "".join(f"NOTE_{n}={one_line(shape)}\n" for n, shape in enumerate(found)),
        "requirements.txt": _requirements(),
        "trace.json": json.dumps(_trace(found)),
        "wandb/run-20260301_120000-3kq7x2mn/files/config.yaml": "".join(
            f"note_{n}:\n  value: {json.dumps(one_line(shape))}\n" for n, shape in enumerate(found[::3])
        )
        + f"api_key:\n  value: {drawn('tracked', 40)}\n",
        "wandb/run-20260301_120000-3kq7x2mn/files/wandb-metadata.json": json.dumps(_metadata()),
        "mlruns/0/0f1e2d3c4b5a69788796a5b4c3d2e1f0/params/hub_token": drawn("mlflow parameter", 30),
        "mlruns/0/0f1e2d3c4b5a69788796a5b4c3d2e1f0/tags/mlflow.user": "dvaughan",
    }
    files |= {f"ranks/{shape.secret}/rank_{n}.log": f"step {n} loss 2.0\n" for n, shape in enumerate(alone[:20])}
    files |= {f"{shape.secret}.log": "step 1 loss 2.0\n" for shape in alone[20:40]}
    for name, text in files.items():
        file = run / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return run


def plant_unknown(place: Path) -> Path:
    """Write a run that no rule knows, with many secrets in each of its few odd lines, and return it."""
    found = [shape for shape in shapes() if "\n" not in shape.line]
    run = place / "unknown-run"
    run.mkdir(parents=True)
    lines = ["zebra loader starts", "zebra loader reads its list"]
    for n in range(8):
        few = " ; ".join(shape.line for shape in found[n::8])[:1900]
        lines += [
            f"zebra shard {n} is prepared",
            f"OddFailure{'abcdefgh'[n]}: the {chr(97 + n) * 5} bolt gave way: {few}",
        ]
    (run / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return run


def _log(found: list[Shape]) -> str:
    """Progress, and again and again an exception with a secret around it, in it and in its source."""
    lines = [f"step {n} loss {2.0 - n / 100} grad_norm 1.0" for n in range(20)]
    for n, shape in enumerate(found):
        line = one_line(shape)
        lines += [
            *(shape.line.split("\n")),
            "Traceback (most recent call last):",
            f'  File "/home/ada.lovelace/train.py", line {n + 1}, in main',
            f"    connect({json.dumps(line)})",
            f"{'RuntimeError' if n % 3 else 'Oddness.NoRuleKnowsIt'}: the {n}th upload of zebra shards failed: {line}",
        ]
    lines += [*PEOPLE, *MACHINES]
    for line in [*PEOPLE, *MACHINES]:
        lines.append(f"RuntimeError: CUDA error: device-side assert triggered, {line}")
    return "\n".join(lines) + "\n"


def _requirements() -> str:
    token = "gh" + "p_" + drawn("package", 36)
    return (
        f"--extra-index-url https://build:{drawn('index', 20)}@pypi.acme.io/simple\ntorch==2.4.0\n"
        f"inhouse @ git+https://{token}@github.com/acme/inhouse.git@v1.2\nnvidia-curand-cu12==10.3.5.147\n"
    )


def _trace(found: list[Shape]) -> dict[str, object]:
    return {
        "schemaVersion": 1,
        "hostname": "gpu-417.hpc.example.edu",
        "command": f"python train.py --api-key {drawn('traced', 32)}",
        "distributedInfo": {"rank": 0, "world_size": 1, "note": one_line(found[0])},
        "traceEvents": [
            {
                "ph": "X",
                "cat": "cpu_op",
                "name": f"op {one_line(shape)[:150]}",
                "ts": n * 10,
                "dur": 9,
                "pid": 1,
                "tid": 1,
            }
            for n, shape in enumerate(found)
        ],
    }


def _metadata() -> dict[str, object]:
    return {
        "host": "gpu-417.hpc.example.edu",
        "username": "mhamilton",
        "email": "eve+runs@lab.example.org",
        "program": "/home/ada.lovelace/train.py",
        "args": ["--hub-token", drawn("argument", 32), "--lr", "0.1"],
        "git": {"remote": f"https://oauth2:{drawn('remote', 20)}@gitlab.com/acme/train.git"},
    }


def planted() -> dict[str, str]:
    """Everything that may not be shown, by name."""
    every = {shape.name: shape.secret for shape in shapes() if "\n" not in shape.secret}
    for shape in shapes():
        if "\n" in shape.secret:
            body = [line for line in shape.secret.split("\n") if not line.startswith("-----")]
            every |= {f"{shape.name} {n}": line for n, line in enumerate(body)}
    more = {"index": 20, "traced": 32, "argument": 32, "remote": 20, "mlflow parameter": 30, "tracked": 40}
    every |= {name: drawn(name, length) for name, length in more.items()}
    every |= {"run name": drawn("run name", 36), "package": drawn("package", 36), "hub_token": "Zx81qwerty77"}
    every |= {"db_password": "correct-horse-9"}
    return every | {name: name for name in [*PEOPLE.values(), *MACHINES.values()]}
