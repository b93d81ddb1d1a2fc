"""Python tracebacks in every dress."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rca.events import Event

PLAIN = """Traceback (most recent call last):
  File "/srv/job/train.py", line 120, in <module>
    main()
    ^^^^^^
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight, self.bias)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (96x7680 and 3072x6)
"""


def raised(found) -> list[Event]:
    return sorted(found.table.of_kind("exception"), key=lambda event: event.line or 0)


def test_a_plain_traceback(read: Callable) -> None:
    (event,) = raised(read("run.log", "start\n" + PLAIN + "\nbye\n"))
    assert (event.name, event.line, event.severity) == ("RuntimeError", 8, "error")
    assert event.text == "mat1 and mat2 shapes cannot be multiplied (96x7680 and 3072x6)"
    assert [frame["function"] for frame in event.attr("frames")] == ["<module>", "forward"]
    assert event.attr("frames")[0]["code"] == "main()"
    assert event.attr("user_frame")["line"] == 120
    assert event.attr("chain") == []
    assert event.attr("worker") is None


@pytest.mark.parametrize("above", ["Exception ignored in: <function Pool.__del__>\n", "--- Logging error ---\n"])
def test_an_exception_that_was_swallowed_is_a_warning(read: Callable, above: str) -> None:
    (event,) = raised(read("run.log", above + PLAIN))
    assert (event.role, event.severity) == ("benign", "warning")


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("[rank2]: ", 2),
        ("[default2]:", 2),
        ("2024-10-22 03:11:05,444 | ERROR | sft.main | ", None),
        ("(EngineCore_0 pid=233) ERROR 10-02 05:59:48 [core.py:648] ", None),
        ("ERROR 05-26 07:50:41 [core.py:396] ", None),
        ("\x1b[31m", None),
    ],
)
def test_a_prefix_on_every_line(read: Callable, prefix: str, rank: int | None) -> None:
    (event,) = raised(read("run.log", "".join(prefix + line + "\n" for line in PLAIN.splitlines())))
    assert (event.name, event.rank) == ("RuntimeError", rank)
    assert event.text.startswith("mat1")
    assert len(event.attr("frames")) == 2


def test_a_logged_exception_whose_traceback_has_no_prefix(read: Callable) -> None:
    (event,) = raised(
        read("run.log", "2024-10-22 03:11:05 ERROR step failed\n" + PLAIN + "2024-10-22 03:11:06 INFO x\n")
    )
    assert event.text.endswith("3072x6)")
    assert event.time is not None


def test_interleaved_ranks_keep_apart(read: Callable) -> None:
    lines = PLAIN.splitlines()
    mixed = []
    for number, line in enumerate(lines):
        mixed.append(f"[rank0]: {line}")
        mixed.append(f"[rank1]: {line.replace('96x7680', '11x22')}")
        if number == 2:
            mixed.append("srun: info: something else")
    first, second = raised(read("run.log", "\n".join(mixed) + "\n"))
    assert (first.rank, second.rank) == (0, 1)
    assert "96x7680" in first.text
    assert "11x22" in second.text
    assert len(first.attr("frames")) == len(second.attr("frames")) == 2


def test_two_untagged_processes_do_not_spoil_each_other(read: Callable) -> None:
    lines = PLAIN.splitlines()
    text = "\n".join([*lines[:3], "Using cache found in /home/user/.cache", *lines[3:]]) + "\n"
    (event,) = raised(read("run.log", text))
    assert (event.name, len(event.attr("frames"))) == ("RuntimeError", 2)


@pytest.mark.parametrize(
    "link",
    [
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ],
)
def test_a_chain_is_one_event_with_its_causes(read: Callable, link: str) -> None:
    inner = PLAIN.replace("RuntimeError: mat1", "KeyError: 'x'; mat1")
    (event,) = raised(read("run.log", f"{inner}\n{link}\n\n{PLAIN}"))
    assert event.name == "RuntimeError"
    assert [cause["type"] for cause in event.attr("chain")] == ["KeyError"]
    assert event.attr("chain")[0]["line"] == 7
    assert event.attr("chain")[0]["frames"][0]["line"] == 120
    assert event.line == 17


def test_a_chain_behind_a_rank_tag(read: Callable) -> None:
    text = f"{PLAIN}\nDuring handling of the above exception, another exception occurred:\n\n{PLAIN}"
    (event,) = raised(read("run.log", "".join(f"[rank3]: {line}\n" for line in text.splitlines())))
    assert (event.rank, len(event.attr("chain"))) == (3, 1)


def test_the_inner_exception_of_a_dataloader_worker_counts(read: Callable) -> None:
    text = PLAIN.replace(
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (96x7680 and 3072x6)",
        """RuntimeError: Caught UnidentifiedImageError in DataLoader worker process 3.
Original Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", line 374, in _worker_loop
    data = fetcher.fetch(index)
  File "/srv/job/data.py", line 44, in __getitem__
    return Image.open(path)
PIL.UnidentifiedImageError: cannot identify image file 'a.jpg'
""",
    )
    (event,) = raised(read("run.log", text))
    assert event.name == "PIL.UnidentifiedImageError"
    assert event.attr("worker") == "DataLoader worker process 3"
    assert event.attr("user_frame")["file"] == "/srv/job/data.py"
    assert [cause["type"] for cause in event.attr("chain")] == ["RuntimeError"]
    assert event.phase == "data"


def test_a_replica_of_data_parallel_wraps_the_same_way(read: Callable) -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n' + (
        "RuntimeError: Caught RuntimeError in replica 1 on device 1.\n"
        "Original Traceback (most recent call last):\n"
        '  File "b.py", line 2, in g\n    h()\nRuntimeError: inner\n'
    )
    (event,) = raised(read("run.log", text))
    assert (event.text, event.attr("worker")) == ("inner", "replica 1 on device 1")


def test_a_remote_traceback_of_multiprocessing(read: Callable) -> None:
    text = f'''multiprocessing.pool.RemoteTraceback:
"""
{PLAIN.replace("RuntimeError: mat1", "KeyError: mat1").rstrip()}
"""

The above exception was the direct cause of the following exception:

{PLAIN.replace("RuntimeError: mat1", "KeyError: mat1")}'''
    (event,) = raised(read("run.log", text))
    assert event.name == "KeyError"
    assert len(event.attr("chain")) == 1


def test_a_spawned_process_is_the_real_one(read: Callable) -> None:
    text = f"""Traceback (most recent call last):
  File "main.py", line 9, in <module>
    mp.spawn(worker, nprocs=2)
torch.multiprocessing.spawn.ProcessRaisedException:

-- Process 1 terminated with the following error:
{PLAIN}"""
    (event,) = raised(read("run.log", text))
    assert (event.name, event.attr("worker")) == ("RuntimeError", "process 1")
    assert event.attr("chain")[0]["type"].endswith("ProcessRaisedException")


def test_a_ray_task_error_names_what_was_raised_inside(read: Callable) -> None:
    text = """Traceback (most recent call last):
  File "driver.py", line 5, in <module>
    ray.get(task)
ray.exceptions.RayTaskError(KeyError): ray::train() (pid=12, ip=10.0.0.1)
  File "train.py", line 3, in train
    batch["input_ids"]
KeyError: 'input_ids'
"""
    (event,) = raised(read("run.log", text))
    assert (event.name, event.text) == ("KeyError", "'input_ids'")
    assert event.attr("chain")[0]["type"] == "ray.exceptions.RayTaskError"


def test_an_exception_group_gives_itself_and_its_parts(read: Callable) -> None:
    text = """  + Exception Group Traceback (most recent call last):
  |   File "a.py", line 1, in <module>
  |     raise ExceptionGroup("two", errors)
  | ExceptionGroup: two (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "b.py", line 2, in f
    |     g()
    | ValueError: first
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "c.py", line 3, in h
    |     i()
    | TypeError: second
    +------------------------------------
"""
    found = raised(read("run.log", text))
    assert [event.name for event in found] == ["ExceptionGroup", "ValueError", "TypeError"]
    assert [event.text for event in found] == ["two (2 sub-exceptions)", "first", "second"]
    assert [event.attr("frames")[0]["file"] for event in found] == ["a.py", "b.py", "c.py"]


def test_an_indented_traceback_of_an_error_file(read: Callable) -> None:
    text = """  exitcode  : 1 (pid: 88133)
  error_file: /tmp/x/error.json
  traceback : Traceback (most recent call last):
    File "/srv/a.py", line 346, in wrapper
      return f(*args, **kwargs)
  ValueError: bad value

"""
    (event,) = raised(read("run.log", text))
    assert (event.name, event.text, len(event.attr("frames"))) == ("ValueError", "bad value", 1)


def test_a_message_of_several_lines(read: Callable) -> None:
    text = PLAIN.replace(
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (96x7680 and 3072x6)",
        "RuntimeError: CUDA error: device-side assert triggered\n"
        "CUDA kernel errors might be asynchronously reported at some other API call.\n"
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n",
    )
    (event,) = raised(read("run.log", text + "next run starts\n"))
    assert event.text.splitlines() == [
        "CUDA error: device-side assert triggered",
        "CUDA kernel errors might be asynchronously reported at some other API call.",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.",
    ]


def test_an_indented_message_stays_whole_and_ends_before_the_next_topic(read: Callable) -> None:
    text = PLAIN.replace(
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (96x7680 and 3072x6)",
        "RuntimeError: Error(s) in loading state_dict for M:\n\tMissing key(s): a.\n\tsize mismatch for b: c.",
    )
    (event,) = raised(read("run.log", text + " 10%|#  | 1/10 [00:01<00:09,  1.00s/it]\n"))
    assert event.text.count("\n") == 2


def test_a_traceback_cut_off_at_the_end(read: Callable) -> None:
    (event,) = raised(read("run.log", "\n".join(PLAIN.splitlines()[:5])))
    assert event.name == "truncated traceback"
    assert event.attr("type") is None
    assert event.attr("truncated") is True
    assert len(event.attr("frames")) == 2


def test_an_exception_without_a_message(read: Callable) -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    assert ok\nAssertionError\n'
    (event,) = raised(read("run.log", text))
    assert (event.name, event.text) == ("AssertionError", "")


def test_a_syntax_error_and_a_frozen_frame(read: Callable) -> None:
    text = """Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "/srv/a.py", line 3
    lr = = 1
         ^
SyntaxError: invalid syntax
"""
    (event,) = raised(read("run.log", text))
    assert event.name == "SyntaxError"
    assert event.attr("user_frame")["file"] == "/srv/a.py"


def test_deep_recursion_keeps_both_ends(read: Callable) -> None:
    frames = "".join(f'  File "a.py", line {number}, in f\n    f()\n' for number in range(500))
    end = "  [Previous line repeated 900 more times]\nRecursionError: too deep\n"
    text = f"Traceback (most recent call last):\n{frames}{end}"
    (event,) = raised(read("run.log", text))
    kept = [frame["line"] for frame in event.attr("frames")]
    assert (kept[0], kept[-1]) == (0, 499)
    assert len(kept) <= 60


@pytest.mark.parametrize(
    ("function", "file", "phase"),
    [
        ("evaluation_loop", "/x/site-packages/transformers/trainer.py", "eval"),
        ("from_pretrained", "/x/site-packages/transformers/modeling_utils.py", "load"),
        ("backward", "/x/site-packages/torch/_tensor.py", "train"),
        ("save_checkpoint", "/srv/a.py", "save"),
        ("generate", "/x/site-packages/transformers/generation/utils.py", "inference"),
    ],
)
def test_the_stack_tells_the_phase(read: Callable, function: str, file: str, phase: str) -> None:
    text = f'Traceback (most recent call last):\n  File "{file}", line 1, in {function}\n    x()\nValueError: y\n'
    (event,) = raised(read("run.log", text))
    assert event.phase == phase


def test_the_step_before_the_traceback(read: Callable) -> None:
    (event,) = raised(read("run.log", "step 41 loss 2.5\nstep 42 loss 2.4\n" + PLAIN))
    assert event.step == 42


def test_the_task_of_ray_stands_where_the_heading_would(read: Callable) -> None:
    text = (
        "Failure # 1 (occurred at 2026-11-30_20-37-18)\n"
        "\x1b[36mray::ImplicitFunc.train()\x1b[39m (pid=12, ip=10.0.0.1, actor_id=ab, repr=train_fn)\n"
        '  File "/opt/venv/lib/python3.11/site-packages/ray/tune/trainable/trainable.py", line 331, in train\n'
        "    raise skipped from exception_cause(skipped)\n"
        '  File "/home/u/tune.py", line 9, in train_fn\n    raise ValueError("bad lr")\nValueError: bad lr\n'
    )
    (event,) = raised(read("error.txt", text))
    assert (event.name, event.line, event.text) == ("ValueError", 7, "bad lr")
    assert event.attr("user_frame")["line"] == 9
    assert not raised(read("a.log", "ray::train() (pid=12, ip=10.0.0.1) finished\n"))
