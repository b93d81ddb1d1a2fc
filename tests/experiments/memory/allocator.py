"""What two real training steps on the CPU allocate at most, as the profiler of torch saw it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from rca.experiments.memory.question import MemoryQuestion


def allocated(question: MemoryQuestion) -> float:
    """Return the peak bytes of weights, gradients, optimizer state and activations over two steps."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    from rca.experiments.memory.models import step_model
    from rca.experiments.memory.track import step_inputs
    from rca.experiments.precision import FullPrecisionList

    torch.set_default_dtype(torch.bfloat16 if question.weights == "bf16" else torch.float32)
    try:
        model: Any = step_model(question, question.layers)
    finally:
        torch.set_default_dtype(torch.float32)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    makers: dict[str, Any] = {
        "adam": lambda: torch.optim.AdamW(weights, foreach=question.foreach, fused=not question.foreach),
        "momentum": lambda: torch.optim.SGD(weights, lr=1e-3, momentum=0.9, foreach=question.foreach),
        "sgd": lambda: torch.optim.SGD(weights, lr=1e-3, foreach=question.foreach),
    }
    optimizer = makers[question.optimizer]() if question.training else None
    held = sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers()))
    inputs = step_inputs(question)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as trace:
        for _ in range(2):
            with ExitStack() as stack:
                if not question.training:
                    stack.enter_context(torch.no_grad())
                if question.compute != question.weights:
                    stack.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
                    stack.enter_context(FullPrecisionList())
                loss = model(**inputs).loss if question.training else model(**inputs).logits
            if optimizer is not None:
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            del loss
    live = highest = 0
    events = [event for event in trace.profiler.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(events, key=lambda item: item.start_ns()):
        live += event.nbytes()
        highest = max(highest, live)
    return float(held + highest)
