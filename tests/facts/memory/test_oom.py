from __future__ import annotations

import pytest

from rca.facts.memory.allocator_message import GIB, refusals, sizes_in

from ..tables import Run, decay

NEW = (
    "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.25 GiB is "
    "free. Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated memory 60.00 GiB "
    "is allocated by PyTorch, with 512.00 MiB allocated in private pools (e.g., CUDA Graphs), and 16.00 GiB is "
    "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
OLD = (
    "CUDA out of memory. Tried to allocate 512.00 MiB (GPU 1; 39.59 GiB total capacity; 20.00 GiB already allocated; "
    "100.00 MiB free; 38.00 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
    "max_split_size_mb to avoid fragmentation."
)
TYPO = "CUDA out of memory. Tried to allocate 86.00 MiB. GPU 0 has a total capacty of 23.65 GiB of which 20.06 MiB is"
CONTAINER = (
    "CUDA out of memory. Tried to allocate 26.00 MiB. GPU 2 has a total capacity of 79.15 GiB of which 12.00 MiB is "
    "free. Process 311 has 76.50 GiB memory in use. Process 812 has 2.62 GiB memory in use. Of the allocated memory "
    "2.00 GiB is allocated by PyTorch, and 20.00 MiB is reserved by PyTorch but unallocated."
)


def raised(text: str, *frames: tuple[str, str], name: str = "torch.OutOfMemoryError", before: int = 0) -> Run:
    run = Run()
    if before:
        run.curves({"loss": decay(before)})
    return run.raised(name, text, frames=frames)


def test_newest_wording() -> None:
    found = raised(NEW).values()
    assert found["oom.tried_gib"] == 2.5
    assert found["oom.capacity_gib"] == pytest.approx(79.15)
    assert found["oom.free_gib"] == pytest.approx(1.25)
    assert found["oom.allocated_gib"] == 60
    assert found["oom.reserved_unallocated_gib"] == 16
    assert found["oom.reserved_share"] == pytest.approx(16 / 79.15)
    assert found["oom.reserved_over_tried"] == pytest.approx(6.4)
    assert found["oom.others_gib"] == pytest.approx(0, abs=0.01)
    assert found["oom.first_allocation"] is False


def test_old_wording_counts_reserved_in_total() -> None:
    found = raised(OLD, name="RuntimeError").values()
    assert found["oom.reserved_unallocated_gib"] == 18
    assert found["oom.allocated_gib"] == 20
    assert found["oom.tried_gib"] == 0.5


def test_misspelled_capacity() -> None:
    assert sizes_in(TYPO)["capacity_bytes"] == int(23.65 * GIB)


def test_container_that_cannot_tell_its_own_process() -> None:
    found = raised(CONTAINER).values()
    assert found["oom.others_gib"] == pytest.approx(76.5, abs=0.3)
    assert found["oom.others_share"] > 0.9


def test_signature_and_traceback_are_one_refusal() -> None:
    run = raised(NEW)
    run.log("cuda.oom", NEW, tried_bytes=int(2.5 * GIB), capacity_bytes=int(79.15 * GIB))
    assert len(refusals(run.table())) == 1
    assert run.values()["oom.count"] == 1


def test_captures_without_a_traceback() -> None:
    run = Run().log("cuda.oom_legacy", "..", tried_bytes=GIB, allocated_bytes=20 * GIB, reserved_total_bytes=38 * GIB)
    found = run.values()
    assert found["oom.reserved_unallocated_gib"] == 18
    assert found["oom.tried_gib"] == 1


def test_retry_is_no_refusal() -> None:
    assert "oom.count" not in Run().log("cuda.oom_retry", "..", role="benign", severity="warning").values()


def test_other_exceptions_are_none() -> None:
    run = (
        Run().raised("RuntimeError", "mat1 and mat2 shapes cannot be multiplied").raised("MemoryError", "out of memory")
    )
    assert "oom.count" not in run.values()


@pytest.mark.parametrize(
    ("phase", "frames"),
    [
        (
            "optimizer",
            [("train", "optimizer.step()"), ("step", "self._init_group("), ("_init_group", "torch.zeros_like(p)")],
        ),
        ("backward", [("train_step", "loss.backward()"), ("backward", "_engine_run_backward(")]),
        (
            "backward",
            [("run_step", "optimizer.step(closure)"), ("closure", "loss.backward()"), ("backward", "run_backward(")],
        ),
        (
            "forward",
            [("train_step", "out = model(x)"), ("_call_impl", "return forward_call("), ("forward", "q = self.q(x)")],
        ),
        ("eval", [("train", "self.evaluate()"), ("evaluation_loop", "nested_concat("), ("forward", "x = self.f(x)")]),
        ("generate", [("main", "model.generate(ids)"), ("_sample", "outputs = self("), ("forward", "cache.update(")]),
        ("load", [("main", "model.to('cuda')"), ("to", "return self._apply(convert)"), ("_apply", "fn(param)")]),
        ("load", [("main", "AutoModel.from_pretrained(name)"), ("_load_state_dict", "set_module_tensor(")]),
    ],
)
def test_phase_by_the_stack(phase: str, frames: list[tuple[str, str]]) -> None:
    assert raised(NEW, *frames).values()["oom.phase"] == phase


def test_when_it_happens() -> None:
    early = raised(NEW, before=1).values()
    assert early["oom.steps_before"] == 1
    assert early["oom.late"] is False
    late = raised(NEW, before=150).values()
    assert late["oom.step"] == 149
    assert late["oom.late"] is True
    assert raised(NEW).values()["oom.steps_before"] == 0


def test_resumed_run_that_fails_at_once_is_early() -> None:
    run = Run().log("hf.resume_checkpoint", role="benign", severity="info").curves({"loss": decay(2)}, start=9000)
    assert run.raised("torch.OutOfMemoryError", NEW).values()["oom.late"] is False


def test_ranks() -> None:
    run = Run()
    for rank in (3, 5):
        run.raised("torch.OutOfMemoryError", NEW, source=f"rank_{rank}.log", rank=rank)
    assert run.values()["oom.ranks"] == 2


def jump(text: str, memory: list[float]) -> float:
    return float(
        Run().curves({"memory_allocated": memory}).raised("torch.OutOfMemoryError", text).values()["oom.tried_jump"]
    )


def test_jump_against_the_usual_change() -> None:
    steady = [40.0, 40.2, 40.1, 40.3, 40.2, 40.1, 40.3, 40.2]
    assert jump(NEW.replace("2.50 GiB", "30.00 GiB"), steady) > 50
    assert jump(NEW, steady) < 10
    assert jump(NEW, [20.0, 60.0] * 5) < 1


def test_frame_and_attention() -> None:
    found = raised(NEW, ("main", "run()"), ("forward", "attn = torch.softmax(scores, -1)")).values()
    assert found["oom.frame"] == "/app/part0.py:1 in main"
    assert found["oom.attention"] is True
    assert raised(NEW, ("main", "run()"), ("forward", "x = self.fc1(x)")).values()["oom.attention"] is False


GRAPH = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1257373696 bytes."


@pytest.mark.parametrize(
    ("frames", "phase"),
    [
        ((("train_and_evaluate", "state = p_train_step(state, batch)"),), "forward"),
        ((("main", "evaluate(state)"), ("evaluate", "run_eval_step(state, batch)")), "eval"),
        ((("fit", "model.fit(ds, validation_data=held_out)"), ("quick_execute", "x = TFE_Py_Execute(ctx)")), "forward"),
        ((("main", "net.evaluate(ds)"), ("quick_execute", "x = pywrap_tfe.TFE_Py_Execute(ctx)")), "eval"),
    ],
)
def test_phase_of_a_compiled_graph(frames: tuple[tuple[str, str], ...], phase: str) -> None:
    found = raised(GRAPH, *frames, name="jaxlib.xla_extension.XlaRuntimeError").values()
    assert found["oom.phase"] == phase


def test_an_error_of_a_graph_that_is_not_about_memory_is_none() -> None:
    found = raised("INTERNAL: ptxas exited with 1", name="jaxlib.xla_extension.XlaRuntimeError").values()
    assert not [name for name in found if name.startswith("oom.")]


def test_a_cast_in_attention_is_no_loading() -> None:
    frames = (("eager_attention_forward", "w = softmax(scores).to(query.dtype)"),)
    assert raised(NEW, *frames).values()["oom.phase"] == "forward"
    assert raised(NEW, ("main", "model.to('cuda')"), ("to", "self._apply(convert)")).values()["oom.phase"] == "load"
