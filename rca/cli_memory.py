"""`rca memory`: what a step would take before anyone runs it, and what to change when it does not fit."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rca.cli_command import COLOR, WIDTH, Command
from rca.cli_language import LANG, spoken
from rca.cli_rules import RULES
from rca.errors import UsageError

if TYPE_CHECKING:
    from rca.experiments.memory.planning import Plan

_MOST_BYTES = 4 * 1024 * 1024
"""A config.json is a few kB; with long label lists a few hundred."""
_UNITS = {"gib": 2**30, "gb": 10**9, "g": 2**30, "mib": 2**20, "mb": 10**6, "tib": 2**40, "tb": 10**12}
_OPTIMIZERS = ("adamw", "adamw_fused", "adamw_8bit", "adafactor", "sgd", "sgd_momentum", "adagrad", "lion")
_OPTIMIZER: dict[str, dict[str, Any]] = {
    "adamw": {"optimizer": "adam"},
    "adamw_fused": {"optimizer": "adam", "foreach": False},
    "adamw_8bit": {"optimizer": "8bit"},
    "sgd_momentum": {"optimizer": "momentum"},
}
_PRECISION: dict[str, dict[str, str]] = {
    "fp32": {"weights": "fp32", "compute": "fp32"},
    "bf16": {"weights": "fp32", "compute": "bf16"},
    "fp16": {"weights": "fp32", "compute": "fp16"},
    "bf16-weights": {"weights": "bf16", "compute": "bf16"},
    "fp16-weights": {"weights": "fp16", "compute": "fp16"},
    "int8": {"weights": "int8", "compute": "bf16"},
    "nf4": {"weights": "nf4", "compute": "bf16"},
}


@click.command(cls=Command)
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--device", "capacity", required=True, metavar="SIZE", help="Memory of one card: 80GiB, 24GB.")
@click.option("--batch", type=click.IntRange(1, 1 << 20), default=1, show_default=True,
              help="Samples a device and step; sequences at once when generating.")  # fmt: skip
@click.option("--seq", type=click.IntRange(1, 1 << 24), default=2048, show_default=True,
              help="Tokens of a sample, of a prompt, or of the longest request of a server.")  # fmt: skip
@click.option("--task", type=click.Choice(["train", "evaluate", "generate", "serve"]), default="train",
              show_default=True, help="What the model does.")  # fmt: skip
@click.option(
    "--precision",
    type=click.Choice(list(_PRECISION)),
    default="fp32",
    show_default=True,
    help="bf16 and fp16 are autocast over fp32 weights in training, and the type of the weights elsewhere.",
)
@click.option("--optimizer", type=click.Choice(_OPTIMIZERS), default="adamw", show_default=True, metavar="NAME",
              help=f"One of {', '.join(_OPTIMIZERS)}.")  # fmt: skip
@click.option("--attention", type=click.Choice(["sdpa", "eager"]), default="sdpa", show_default=True,
              help="How attention is computed; eager keeps its scores.")  # fmt: skip
@click.option("--checkpointing", is_flag=True, help="Gradient checkpointing.")
@click.option("--accumulation", type=click.IntRange(1, 1 << 16), default=1, show_default=True,
              help="Micro-batches a step.")  # fmt: skip
@click.option("--lora", type=click.IntRange(0, 4096), default=0, metavar="RANK", help="Rank of LoRA adapters.")
@click.option("--lora-targets", type=click.Choice(["attention", "linear"]), default="attention", show_default=True,
              help="Query and value projections, or every matrix of the layers.")  # fmt: skip
@click.option("--devices", type=click.IntRange(1, 1 << 16), default=1, show_default=True,
              help="Cards that share the step: data parallel in training, else tensor parallel.")  # fmt: skip
@click.option("--zero", type=click.IntRange(0, 3), default=0, show_default=True,
              help="ZeRO stage; FSDP with full sharding is 3.")  # fmt: skip
@click.option("--new-tokens", type=click.IntRange(0, 1 << 24), default=256, show_default=True,
              help="Tokens to generate.")  # fmt: skip
@click.option("--utilization", type=click.FloatRange(0, 1), default=0.9, show_default=True,
              help="Share of the card that a server takes.")  # fmt: skip
@RULES
@click.option("--json", "as_json", is_flag=True, help="Print as one JSON document; sizes in bytes.")
@LANG
@COLOR
def memory(*, model: Path, rules: Sequence[Path], as_json: bool, lang: str, **options: Any) -> None:
    """Predict the peak memory of a step of MODEL (config.json or its folder), by component and under each remedy.

    Nothing is run and no GPU is needed: the step is traced on tensors without data. The cheapest combination of
    changes that fits is marked.
    """
    from rca.errors import ExperimentError
    from rca.experiments.memory.planning import plan, step_of
    from rca.ingest.names import canonical_config
    from rca.rules.load import remedies

    config = _configuration(model)
    named = {canonical_config(key): value for key, value in config.items() if key not in {"hidden_dim"}}
    named |= {key: config[key] for key in ("hidden_dim", "head_dim") if key in config}
    capacity = _bytes(options["capacity"])
    try:
        step, note = step_of(named, settings=_settings(options))
        found = plan(step, capacity, remedies=remedies(rules), seconds=600, note=note)
    except ExperimentError as error:
        raise UsageError(f"{model}: {error}") from error
    with spoken(lang, rules):
        click.echo(json.dumps(found.as_json(), indent=2) if as_json else _text(found, options["color"]), nl=as_json)


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    task, precision = options["task"], options["precision"]
    types = _PRECISION[precision]
    if precision in {"bf16", "fp16"} and (task != "train" or options["zero"]):
        # Inference has no reason to keep fp32 weights, and DeepSpeed casts the model itself.
        types = {"weights": precision, "compute": precision}
    settings: dict[str, Any] = {
        "task": task,
        "batch": options["batch"],
        "seq": options["seq"],
        "attention": options["attention"],
        "devices": options["devices"],
        **types,
    }
    if task == "train":
        settings |= {
            "checkpointing": options["checkpointing"],
            "accumulation": options["accumulation"],
            "lora_r": options["lora"],
            "lora_targets": options["lora_targets"],
            "zero_stage": options["zero"] if options["devices"] > 1 else 0,
            **_OPTIMIZER.get(options["optimizer"], {"optimizer": options["optimizer"]}),
        }
    if task == "generate":
        settings["new_tokens"] = options["new_tokens"]
    if task == "serve":
        settings["utilization"] = options["utilization"]
    return settings


def _configuration(model: Path) -> dict[str, Any]:
    file = model / "config.json" if model.is_dir() else model
    try:
        if file.exists() and not file.is_file():
            raise UsageError(f"{file}: not a plain file; give a config.json or the folder that holds it")
        if file.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{file}: larger than 4 MiB, which no model configuration is")
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}; give a config.json or the folder that holds it") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file}: not JSON ({' '.join(str(error).split())[:80]})") from error
    if not isinstance(found, dict):
        raise UsageError(f"{file}: not a model configuration, which is one JSON object")
    inner = found.get("text_config")
    return {**found, **inner} if isinstance(inner, dict) and "hidden_size" not in found else found


def _bytes(text: str) -> float:
    lowered = text.strip().lower()
    unit = next((unit for unit in sorted(_UNITS, key=len, reverse=True) if lowered.endswith(unit)), "")
    try:
        found = float(lowered.removesuffix(unit)) * _UNITS.get(unit, 2**30)
    except ValueError:
        found = -1.0
    if not 2**20 <= found < 2**50:
        raise UsageError(f"--device {text!r} is no size of a card; write 80GiB or 24GB")
    return found


def _text(found: Plan, colour: Any) -> str:
    from rca.experiments.memory.table import in_words, question_words, what_if
    from rca.report.colour import paint, wants_colour
    from rca.report.table_text import table_text
    from rca.report.translation import translated
    from rca.report.words import shown
    from rca.report.wrapping import wrapped

    on = wants_colour(colour, stream=sys.stdout, environ=os.environ)
    table = translated(what_if(found.rows, found.capacity))
    head = f"{found.parameters / 1e9:.2f} billion parameters; {question_words(found.question)}"
    head += f" ({found.note})" if found.note else ""
    blocks = [
        "\n".join(wrapped(shown(head), WIDTH)) + "\n",
        table_text(table, colour=on),
        "\n".join(paint(line, "strong", on=on) for line in wrapped(shown(in_words(found.rows, found.capacity)), WIDTH))
        + "\n",
    ]
    return "\n".join(blocks)
