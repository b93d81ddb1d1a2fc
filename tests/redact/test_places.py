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
