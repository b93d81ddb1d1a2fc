from __future__ import annotations

import pytest

from rca.redact import Redactor


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("mail sent to ada@lab.example.org.", "mail sent to <mail-1>."),
        ("10.31.4.31:52093 - POST and 10.31.4.2", "<ip-1>:52093 - POST and <ip-2>"),
        ("Bootstrap : Using eth0:10.50.1.11<0>", "Bootstrap : Using eth0:<ip-1><0>"),
        ("connect to 81.2.69.142 failed", "connect to <ip-1> failed"),
        ("remote=[::ffff:10.4.51.46]:29400", "remote=[::ffff:<ip-1>]:29400"),
        ("listening on [fe80::1ff:fe23:4567:890a]:29500", "listening on [<ip-1>]:29500"),
        ('File "/home/ada/train.py", line 3', 'File "/home/<user-1>/train.py", line 3'),
        ("/Users/Ada.L/runs/1", "/Users/<user-1>/runs/1"),
        ("C:\\Users\\ada\\run", "C:\\Users\\<user-1>\\run"),
        ("/mnt/nfs/home/ada/ckpt", "/mnt/nfs/home/<user-1>/ckpt"),
        ("node ip-10-0-3-17.eu-west-1.compute.internal left", "node <host-1> left"),
        ("MASTER_ADDR=gpu-b-02 MASTER_PORT=29500", "MASTER_ADDR=<host-1> MASTER_PORT=29500"),
        ("  host      : gpu-21.cluster", "  host      : <host-1>"),
        ("gpu-22:4860:4860 [0] NCCL INFO Bootstrap", "<host-1>:4860:4860 [0] NCCL INFO Bootstrap"),
        ("pull https://artifactory.acme.io/models/x", "pull https://<host-1>/models/x"),
        ("store at tcp://node17:29500", "store at tcp://<host-1>:29500"),
    ],
)
def test_people_and_machines_get_placeholders(line: str, shown: str) -> None:
    assert Redactor().text(line) == shown


def test_placeholders_are_stable_over_lines() -> None:
    redactor = Redactor()
    assert redactor.text("/home/ada/a") == "/home/<user-1>/a"
    assert redactor.text("/home/bob7/b, /home/ada/c") == "/home/<user-2>/b, /home/<user-1>/c"
    assert redactor.text("/scratch/bob7/data user=bob7") == "/scratch/<user-2>/data user=<user-2>"
    assert redactor.counts == {"user": 5}


def test_a_common_word_as_account_is_not_replaced_elsewhere() -> None:
    redactor = Redactor()
    redactor.text("/home/dev/train.py and /home/models/x")
    assert redactor.text("shm on /dev/shm, weights in /models/7b") == "shm on /dev/shm, weights in /models/7b"


def test_hosts_that_were_handed_in() -> None:
    redactor = Redactor(hosts=["gpu-b-02.acme.net", "titan", "localhost"])
    assert redactor.text("gpu-b-02: rank 3 on titan (gpu-b-02.acme.net)") == "<host-1>: rank 3 on <host-2> (<host-1>)"
    assert redactor.text("logs/gpu-b-02/rank.log titanium localhost") == "logs/<host-1>/rank.log titanium localhost"


def test_strict_replaces_folders_but_keeps_files_and_packages() -> None:
    redactor = Redactor("strict")
    assert redactor.text('File "/data/secret-project/src/train.py", line 3') == 'File "<path-1>/train.py", line 3'
    assert redactor.text("/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py:12") == (
        "<path-2>/site-packages/torch/nn/modules/module.py:12"
    )
    assert redactor.text("/dev/shm is full, see https://pytorch.org/docs/stable") == (
        "/dev/shm is full, see https://pytorch.org/docs/stable"
    )
    assert Redactor().text("/data/secret-project/src/train.py") == "/data/secret-project/src/train.py"


def test_short_and_full_name_of_a_machine_share_a_number() -> None:
    redactor = Redactor()
    redactor.learn("HOSTNAME=gpu-417.hpc.example.edu")
    redactor.learn("MASTER_ADDR=gpu-418.hpc.example.edu")
    assert redactor.text("gpu-417 waits for gpu-418.hpc.example.edu") == "<host-2> waits for <host-1>"
    assert redactor.text("gpu-417.hpc.example.edu and gpu-418") == "<host-2> and <host-1>"


def test_a_short_name_in_two_domains_is_no_name_for_either() -> None:
    redactor = Redactor(hosts=["gpu-417.a.example.edu", "gpu-417.b.example.edu"])
    assert redactor.text("gpu-417.a.example.edu gpu-417.b.example.edu") == "<host-1> <host-2>"


def test_thousands_of_hosts_are_found_again() -> None:
    redactor = Redactor(hosts=[f"node{n:04}" for n in range(4096)])
    assert redactor.text("rank 3 on node0003, rank 4095 on node4095.") == "rank 3 on <host-1>, rank 4095 on <host-2>."


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("ada@gpu-21:~/run$ python x.py", "<user-1>@<host-1>:~/run$ python x.py"),
        ("SLURM_JOB_USER=dvaughan", "SLURM_JOB_USER=<user-1>"),
        ("/scratch/mhamilton/data/c4", "/scratch/<user-1>/data/c4"),
        ("/scratch/datasets/c4", "/scratch/datasets/c4"),
        ("srun: error: cn0417: task 3: Exited", "srun: error: <host-1>: task 3: Exited"),
        ("trainer-7d9f8b6c5d-x2x9q: OOMKilled", "<host-1>: OOMKilled"),
        ("pod/llama-train-worker-3 was evicted", "pod/<host-1> was evicted"),
        ("postgresql://train:x1y2z3@db-7:5432/runs", "postgresql://train:<secret>@<host-1>:5432/runs"),
    ],
)
def test_clusters_name_people_and_machines_in_their_own_ways(line: str, shown: str) -> None:
    assert Redactor().text(line) == shown


def test_strict_replaces_names_of_runs_addresses_of_packages_and_users_anywhere() -> None:
    redactor = Redactor("strict", names=["llama-customer-x"])
    redactor.learn("/home/ada.l/train.py")
    assert redactor.text("llama-customer-x by ada.l") == "<name-1> by <user-1>"
    assert (
        redactor.text("--index-url https://pypi.acme.io/team/simple") == "--index-url https://<host-1><path-1>/simple"
    )
    assert redactor.text("saved to s3://bucket/team/ckpt.pt") == "saved to s3://<path-2>/ckpt.pt"
    assert redactor.place("team/logs/rank_0.log") == "<path-3>/rank_0.log"
