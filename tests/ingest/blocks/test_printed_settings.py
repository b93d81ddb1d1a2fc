"""Settings that logs print: objects, tables, blocks, commands, and words in passing."""

# ruff: noqa: E501 - log lines stand as they are printed

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

SETTINGS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "Namespace behind a logger",
        "2024-05-09 10:41:20 INFO  finetune: args: Namespace(model='/m/7b', seq_len=256, batch=1, accum=32, lr=2e-05, amp=None, "
        "betas=(0.9, 0.95), steps=[1, 2], flag=True)\n",
        {
            "learning_rate": 2e-5,
            "batch_size": 1,
            "gradient_accumulation_steps": 32,
            "seq_length": 256,
            "flag": True,
            "adam_beta2": 0.95,
        },
    ),
    (
        "TrainingArguments over many lines",
        "TrainingArguments(\n_n_gpu=1,\nadam_beta1=0.9,\nbf16=True,\nevaluation_strategy=IntervalStrategy.STEPS,\n"
        "learning_rate=5e-05,\nlr_scheduler_type=SchedulerType.COSINE,\noutput_dir=./out,\n)\nloss starts\n",
        {"adam_beta1": 0.9, "bf16": True, "learning_rate": 5e-5},
    ),
    (
        "an optimizer on one line",
        "optimizer: Adam(lr=0.001, betas=(0.9, 0.999), eps=1e-08)\n",
        {"learning_rate": 0.001, "optimizer": "adam"},
    ),
    (
        "an optimizer as torch prints it",
        "AdamW (\nParameter Group 0\n    amsgrad: False\n    betas: (0.9, 0.98)\n    lr: 0.0003\n    weight_decay: 0.1\n"
        "\nParameter Group 1\n    lr: 0.5\n)\n",
        {"optimizer": "adamw", "learning_rate": 0.0003, "weight_decay": 0.1, "adam_beta2": 0.98},
    ),
    (
        "assignments one a line",
        "Overriding config with a.py:\ninit_from = 'resume'\nmax_iters = 640000\nlr_decay_iters = 600000\nmin_lr = 0.0\nready\n",
        {"max_steps": 640000, "lr_decay_steps": 600000, "min_lr": 0.0, "init_from": "resume"},
    ),
    (
        "aligned colons behind a logger",
        "[2024-01-05 09:58:01,123] [    INFO] - learning_rate                 : 0.005\n"
        "[2024-01-05 09:58:01,123] [    INFO] - model_name_or_path            : ernie-3.0-base-zh\n"
        "[2024-01-05 09:58:01,124] [    INFO] - fp16                          : False\n",
        {"learning_rate": 0.005, "model_name_or_path": "ernie-3.0-base-zh", "fp16": False},
    ),
    (
        "a dict of arguments",
        "args: {'precision': 'half', 'optimizer': 'AdamW', 'lr': 1e-05, 'grad_clip': None, 'batch': 16}\n",
        {"learning_rate": 1e-5, "batch_size": 16, "optimizer": "AdamW"},
    ),
    (
        "vLLM's engine line",
        "INFO 02-06 11:48:11 llm_engine.py:234] Initializing an LLM engine (v0.6.6) with config: model='/m/k', "
        "dtype=torch.bfloat16, max_seq_len=6048, tensor_parallel_size=2, enforce_eager=False, \n",
        {"model": "/m/k", "tensor_parallel_size": 2, "enforce_eager": False},
    ),
    (
        "Megatron's table behind a task number",
        "0:   adam_beta1 ...................................... 0.9\n0:   lr .............................................. 0.00015\n"
        "0:   bf16 ............................................ False\n0:   data_path ....................................... ['a']\n",
        {"adam_beta1": 0.9, "learning_rate": 0.00015, "bf16": False},
    ),
    (
        "DeepSpeed's table",
        "[2025-01-02 15:46:55,971] [INFO] [config.py:1003:print]   train_batch_size ............. 32\n"
        "[2025-01-02 15:46:55,971] [INFO] [config.py:1003:print]   train_micro_batch_size_per_gpu  2\n",
        {"global_batch_size": 32, "batch_size": 2},
    ),
    (
        "the banner of the Trainer",
        "***** Running training *****\n  Num examples = 61,204\n  Num Epochs = 3\n  Instantaneous batch size per device = 8\n"
        "  Total train batch size (w. parallel, distributed & accumulation) = 32\n  Gradient Accumulation steps = 4\n"
        "  Total optimization steps = 500\n  Number of trainable parameters = 41943040\n",
        {"epochs": 3, "batch_size": 8, "global_batch_size": 32, "gradient_accumulation_steps": 4, "max_steps": 500},
    ),
    (
        "torchtitan's summary",
        "[titan] 2025-05-20 03:10:55,201 - root - INFO - Trainer is initialized with local batch size 8, global batch size 512, "
        "gradient accumulation steps 1, sequence length 2048, total steps 6000 (warmup 300)\n",
        {"batch_size": 8, "global_batch_size": 512, "seq_length": 2048, "max_steps": 6000, "warmup_steps": 300},
    ),
    (
        "a block of JSON",
        'Model config LlamaConfig {\n  "hidden_size": 4096,\n  "rope": {\n    "factor": 2.0\n  },\n  "vocab_size": 32000\n}\n\nnext\n',
        {"hidden_size": 4096, "vocab_size": 32000, "rope.factor": 2.0},
    ),
    (
        "a block of YAML",
        "INFO:root:Running the recipe with resolved config:\n\nbatch_size: 2\noptimizer:\n  lr: 0.0003\n  weight_decay: 0.1\n"
        "layers:\n- q\n- v\nepochs: 1\n\nstarting\n",
        {"batch_size": 2, "learning_rate": 0.0003, "epochs": 1},
    ),
    (
        "Rust's debug form",
        '2024-06-28T12:30:44.811042Z  INFO launcher: Args {\n    model_id: "m/x",\n    quantize: None,\n    num_shard: Some(\n'
        "        2,\n    ),\n    max_total_tokens: 4096,\n    sharded: false,\n}\n",
        {"model_id": "m/x", "tensor_parallel_size": 2, "max_model_len": 4096, "sharded": False},
    ),
    (
        "a command echoed by the shell",
        "+ torchrun --nproc_per_node=2 train.py --use-amp --learning_rate 2e-5 \\\n    --epochs 3\n",
        {"world_size": 2, "learning_rate": 2e-5, "epochs": 3, "use_amp": True},
    ),
    (
        "a command as DeepSpeed prints it",
        "[2025-03-14 15:12:08,120] [INFO] [runner.py:550:main] cmd = /usr/bin/python -u train.py --learning_rate 1e-4 --bf16\n",
        {"learning_rate": 1e-4, "bf16": True},
    ),
    (
        "settings in passing",
        "2025-04-18 16:40:01 INFO optimizer AdamW lr=0.0003 wd=0.01, 1 group\nglobal_batch_size: 64\nstep 1 loss 2.0\nlr=0.5 seen late\n",
        {"learning_rate": 0.0003, "weight_decay": 0.01, "global_batch_size": 64},
    ),
    (
        "advice and complaints are no settings",
        "Consider increasing the value of the `num_workers` argument` to `num_workers=15` in the `DataLoader`\n"
        "`use_cache=True` is incompatible with gradient checkpointing. Setting `use_cache=False`.\n",
        {"num_workers": None, "use_cache": None},
    ),
    (
        "source code is no setting",
        "    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=betas)\nfor x in y: {\n  print(1)\n",
        {"learning_rate": None},
    ),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in SETTINGS], ids=[row[0] for row in SETTINGS])
def test_settings(read: Callable, text: str, expected: dict[str, Any]) -> None:
    found = read("train.log", text).config()
    for name, value in expected.items():
        assert found.get(name) == value, (name, found)


def test_settings_stand_where_they_were_printed(read: Callable) -> None:
    text = "start\n[rank3]: 2024-01-01 00:00:00 INFO Namespace(lr=0.1, model='x')\n"
    (event,) = read("train.log", text).table.named("learning_rate", kind="config")
    assert (event.line, event.rank, event.value, event.text) == (2, 3, 0.1, "0.1")
    assert event.attr("key") == "lr"
    assert event.time is not None


@pytest.mark.parametrize(
    "text",
    [
        "model = net\nready = soon\nDone.\n",
        "eval_accuracy = 0.8124\neval_samples = 512\neval_steps_done = 64\n",
        "".join(f"step {n} loss 2.{n}\n" for n in range(9)) + "alpha = 1\nbeta = 2\ngamma = 3\n",
    ],
)
def test_results_and_stray_assignments_are_no_settings(read: Callable, text: str) -> None:
    assert not set(read("train.log", text).config()) & {"model", "eval_accuracy", "alpha"}


def test_what_many_ranks_print_counts_once(read: Callable) -> None:
    text = "".join(f"[rank{rank}]: Namespace(lr=0.1, seed={rank})\n" for rank in range(64))
    table = read("train.log", text).table
    assert len(table.named("learning_rate", kind="config")) == 1
    assert len(table.named("seed", kind="config")) == 64


@pytest.mark.parametrize(
    "text",
    [
        "Namespace(" * 3000,
        "args: {'a': " + "[" * 5000,
        "Config:\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
        "{\n" + '  "a": [\n' * 900,
        "x \\\n" * 5000 + "python a.py --b 1 --c 2",
        "AdamW (\nParameter Group 0\n" + "    lr: 0.1\n" * 3000,
    ],
    ids=["calls", "brackets", "aliases", "open json", "continued", "unclosed"],
)
def test_hostile_blocks_end(read: Callable, text: str) -> None:
    assert read("train.log", text + "\nKilled\n").record.status == "read"


@pytest.mark.parametrize(
    ("text", "value"),
    [("100", 100), ("x/1000", None)],
)
def test_a_plan_read_off_a_counter(read: Callable, text: str, value: int | None) -> None:
    found = read("train.log", f"step 1/{text} loss 2.0\nstep 2/{text} loss 1.9\n").config()
    assert found.get("max_steps") == value


def test_plans_of_epochs(read: Callable) -> None:
    found = read("train.log", "Epoch: [0] [ 10/200] loss: 3.0\nEpoch 1/3, train loss 2.0\n").config()
    assert (found.get("steps_per_epoch"), found.get("epochs"), found.get("max_steps")) == (200, 3, 600)
