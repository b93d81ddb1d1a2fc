"""The program that repeats a loop: the loop's own source, its settings, and what it stands on in a few lines.

Taking the source itself keeps program and experiment the same. The parent process reads it as text: importing it would
load torch.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rca.experiments.loops.config import LoopConfig, Setting
from rca.experiments.loops.judging import number
from rca.experiments.repro.architecture import auto_class, dropouts, settings
from rca.experiments.repro.render import MAX_LINES, literal, safe, shortened, story, versions
from rca.experiments.twin.config import DENSE, SEQ2SEQ, TwinConfig
from rca.rules.schema import ExperimentRule

_FILES = MappingProxyType(
    {"load": "load", "pad": "pad", "step": "step", "compile": "compilation", "generate": "generate", "repeat": "repeat"}
)
"""Loop -> file whose source makes the program; the others stand on too much of the package."""
_NOT_TAKEN = frozenset({"lengths_with", "_normal", "_lengths", "_share", "_default_dropout", "_RATES"})
_BUILD = '''
def build(twin):
    """Return a tiny model with random weights."""
    config = AutoConfig.for_model("{family}", **SETTINGS[twin.layers])
    for name in {dropouts}:
        setattr(config, name, twin.dropout)
    return {auto_class}.from_config(config, attn_implementation="eager").train()


class Twin(SimpleNamespace):
    """Sizes of the tiny model."""

    def model_copy(self, update):
        """Return them with new values."""
        return Twin(**{{**vars(self), **update}})
'''
_STREAM = '''
class Stream:
    """Random tokens, the same for the same seed."""

    def __init__(self, twin, seed):
        self.order = np.random.default_rng(seed)

    def training(self):
        """Yield one batch."""
        yield [SimpleNamespace(inputs=self.order.integers(3, {vocab}, (8, {seq})), source=None)]
'''
_TRAINING = '''
def training_of(twin, seed, device):
    """Return the model, two batches and the loss."""
    model = build(twin)
    tokens = torch.arange({batch} * {seq}).reshape({batch}, {seq}) % {vocab}
    labels = {labels}
    return SimpleNamespace(
        model=model, batches=[[tokens], [tokens]], loss=lambda batch: model(input_ids=batch, labels=labels).loss
    )
'''
_MAIN = """
if __name__ == "__main__":
    torch.set_num_threads(1)
    for seed in range({repeats}):
        for name, arm in ARMS.items():
            found = {function}(SimpleNamespace(**arm, seed=seed), SETTING)
            print(name, {{figure: round(value, 4) for figure, value in found.items()}})
"""
_IMPORTS: Mapping[str, str] = {
    "load": "import queue\nimport threading\nimport time\n\nimport torch\n"
    "from torch.utils.data import DataLoader, Dataset",
    "pad": "import numpy as np\nimport torch",
    "step": "from contextlib import contextmanager\n\nimport torch\nfrom torch.utils._python_dispatch import "
    "TorchDispatchMode",
    "compile": "import logging\n\nimport torch\nfrom torch import nn",
    "generate": "import torch\nfrom torch.utils.flop_counter import FlopCounterMode",
    "repeat": "import numpy as np\nimport torch",
}


def program(
    rule: ExperimentRule, arms: Mapping[str, LoopConfig], setting: Setting, *, said: str, figures: Mapping[str, float]
) -> str:
    """Return a program that runs the arms again, or nothing where one would need the whole package."""
    loop = next(iter(arms.values())).loop
    twin = setting.twin
    if loop not in _FILES or (twin is not None and twin.family in DENSE | SEQ2SEQ):
        return ""
    told = {name: round(value, 4) for name, value in figures.items()}
    parts = [
        ("Question", rule.question),
        ("Found", shortened(said, 400)),
        ("Control in the report", ", ".join(f"{name} {number(value)}" for name, value in told.items())),
        ("Needs", versions()),
    ]
    shared: dict[str, Any] = {"lengths": setting.lengths, "maximum": setting.maximum, "depth": setting.depth}
    shared |= {"dropout": figures.get("dropout"), "launches": setting.launches, "step_ms": setting.step_ms}
    lines = [f'"""{safe(rule.title)}.\n\n{story(parts)}\n"""', "", "from __future__ import annotations", ""]
    lines += [_IMPORTS[loop]]
    if twin is not None:
        lines += [f"from transformers import AutoConfig, {auto_class(twin.family)}"]
    lines += [
        "from types import SimpleNamespace",
        "",
        _wrapped("ARMS", {name: _used(arm) for name, arm in arms.items()}),
    ]
    if twin is not None:
        lines += [_wrapped("SETTINGS", {depth: _sizes(twin, depth) for depth in sorted({1, 2, twin.layers})})]
        lines += [_model(twin), _data(loop, twin)]
        shared["twin"] = "Twin"
    lines += ["", *_source(_FILES[loop]), ""]
    where = f"Twin(family={twin.family!r}, layers={twin.layers}, dropout=0.0)" if twin is not None else "None"
    values = ", ".join(f"{name}={literal(value)}" for name, value in shared.items() if name != "twin")
    lines += [textwrap.fill(f"SETTING = SimpleNamespace(twin={where}, {values})", 116, subsequent_indent="    ")]
    repeats = 5 if loop in {"load", "pad"} else 1
    lines += ["", _MAIN.format(repeats=repeats, function=_FILES[loop])]
    text = "\n".join(lines).strip() + "\n"
    while len(text.splitlines()) > MAX_LINES and "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    compile(text, "<script>", "exec", dont_inherit=True)
    return text


def _used(arm: LoopConfig) -> dict[str, Any]:
    """Settings that the loop looks at."""
    text = "\n".join(_source(_FILES[arm.loop]))
    return {name: value for name, value in arm.model_dump(mode="json", exclude={"loop", "seed"}).items()
            if f"config.{name}" in text}  # fmt: skip


def _wrapped(name: str, values: Mapping[Any, Any]) -> str:
    rows = [textwrap.fill(f"{literal(key)}: {literal(value)},", 112, subsequent_indent="    ", break_on_hyphens=False)
            for key, value in values.items()]  # fmt: skip
    return f"{name} = {{\n{textwrap.indent(chr(10).join(rows), '    ')}\n}}"


def _sizes(twin: TwinConfig, depth: int) -> dict[str, Any]:
    sizes = twin.model_dump(mode="json") | {"hidden": twin.width, "layers": depth, "positions": max(64, 2 * twin.seq)}
    return settings(twin.family, sizes)


def _model(twin: TwinConfig) -> str:
    return _BUILD.format(family=twin.family, dropouts=dropouts(twin.family), auto_class=auto_class(twin.family))


def _data(loop: str, twin: TwinConfig) -> str:
    if loop == "repeat":
        return "\nDENSE = ()\n" + _STREAM.format(vocab=twin.vocab, seq=twin.seq)
    if loop != "step":
        return ""
    classes = twin.objective == "classes"
    labels = f"torch.zeros({twin.batch}, dtype=torch.int64)" if classes else "tokens"
    return _TRAINING.format(batch=twin.batch, seq=twin.seq, vocab=twin.vocab, labels=labels)


@cache
def _source(name: str) -> tuple[str, ...]:
    """Definitions of a loop's file, without imports and without the names of this package's types."""
    text = (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    found = []
    for node in ast.parse(text).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else node
        known = getattr(target, "name", getattr(target, "id", ""))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Assign)) and known not in _NOT_TAKEN:
            gap = "" if isinstance(node, ast.Assign) else "\n\n"
            start = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
            lines = text.splitlines()[start - 1 : node.end_lineno]
            found.append(gap + "\n".join(lines).replace(": LoopConfig", "").replace(": Setting", ""))
    return tuple(found)
