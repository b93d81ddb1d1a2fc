"""What a Python script calls, read off its syntax tree; nothing of it is run."""

from __future__ import annotations

import ast

from rca.events import EventBuilder

_LOADS = frozenset({"load_state_dict", "load_from_checkpoint", "load_weights", "load_checkpoint"})
_WITHOUT_GRADIENT = frozenset({"no_grad", "inference_mode"})
_TRAINS = frozenset({"backward", "zero_grad", "fit", "train", "training_step", "configure_optimizers"})
_EVALUATES = frozenset({"eval", "pipeline"})
_LONGEST = 400_000


def add_calls(out: EventBuilder, text: str) -> None:
    """Add one `script.calls` artifact that says whether the script loads weights, trains, and sets evaluation mode.

    Source that cannot be parsed adds nothing.
    """
    try:
        tree = ast.parse(text[:_LONGEST])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    called = {node.attr: node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    called |= {node.func.id: node.lineno for node in ast.walk(tree)
               if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}  # fmt: skip
    loads = sorted(called[name] for name in _LOADS & set(called))
    if not loads:
        return
    attrs = {
        "loads_weights": True,
        "without_gradient": bool(_WITHOUT_GRADIENT & set(called)),
        "trains": bool(_TRAINS & set(called)),
        "evaluation_mode": bool(_EVALUATES & set(called)),
    }
    out.add(kind="artifact", name="script.calls", line=loads[0], text="loads weights", attrs=attrs)
