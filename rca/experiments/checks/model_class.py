"""The run's own model class, from its config.json, without weights and without code of others. Loads transformers.

Only classes of the installed transformers are built; `auto_map` and everything else that would bring code is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rca.experiments.checks.files import opened

MAX_CONFIG = 4 * 2**20
_DROPPED = ("auto_map", "attn_implementation", "_attn_implementation", "_name_or_path", "experts_implementation",
            "_experts_implementation", "custom_pipelines", "use_kernels", "_commit_hash")  # fmt: skip
_MOST = {"layer": 400, "block": 400, "expert": 1024}
"""Largest numbers in settings whose name contains the word: a module is built for each."""
_MOST_MODULES = 60_000


class UnknownModel(ValueError):
    """The class cannot be built, and why."""


class Fit(NamedTuple):
    """How named tensors fit a model class, after everything that the loader itself renames or ignores."""

    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    mismatched: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    """Parameter, shape in the file, shape in the model."""
    expected: int
    """Parameters of the model."""


def read_settings(root: Path, path: str) -> dict[str, Any]:
    """Read a config.json. Raises UnknownModel where it is none."""
    try:
        with opened(root, path) as stream:
            data = stream.read(MAX_CONFIG + 1)
        document = json.loads(data)
    except (OSError, ValueError, RecursionError) as error:
        raise UnknownModel(f"{path} cannot be read ({type(error).__name__})") from error
    if len(data) > MAX_CONFIG or not isinstance(document, dict):
        raise UnknownModel(f"{path} is not the configuration of a model")
    return document


def class_of(settings: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the class that `settings` names and its configuration. Raises UnknownModel."""
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind, names = settings.get("model_type"), settings.get("architectures")
    name = names[0] if isinstance(names, list) and names else None
    if not isinstance(kind, str) or not isinstance(name, str) or not name.isidentifier():
        raise UnknownModel("config.json names no model class (model_type and architectures)")
    if settings.get("quantization_config"):
        raise UnknownModel("the model is quantised; its stored tensors do not have the shapes of the class")
    made = getattr(transformers, name, None) if not name.startswith("_") else None
    if kind not in CONFIG_MAPPING or not isinstance(made, type) or not issubclass(made, transformers.PreTrainedModel):
        raise UnknownModel(f"{name} ({kind[:60]}) is no class of the installed transformers {transformers.__version__}")
    modules = 1
    for key, value in settings.items():
        for word, most in _MOST.items():
            if word in key and isinstance(value, int) and not isinstance(value, bool) and key.startswith(("n", "num")):
                if value > most:
                    raise UnknownModel(f"{key} is {value:,}; models are built up to {most}")
                modules *= max(1, value)
    if modules > _MOST_MODULES:
        raise UnknownModel(f"the model has {modules:,} layers and experts, too many to build")
    return made, CONFIG_MAPPING[kind].from_dict({key: item for key, item in settings.items() if key not in _DROPPED})


def fit(settings: Mapping[str, Any], tensors: Sequence[tuple[str, str, tuple[int, ...]]]) -> Fit:
    """Load tensors (name, type, shape) that have no storage into the class, as its own loader would."""
    import torch

    made, config = class_of(settings)
    state = {name: torch.empty(shape, dtype=torch.bfloat16, device="meta") for name, _dtype, shape in tensors}
    model, told = made.from_pretrained(
        None,
        config=config,
        state_dict=state,
        output_loading_info=True,
        ignore_mismatched_sizes=True,
        device_map="meta",
        local_files_only=True,
    )
    return Fit(
        missing=tuple(sorted(str(name) for name in told["missing_keys"])),
        unexpected=tuple(sorted(str(name) for name in told["unexpected_keys"])),
        mismatched=tuple(
            sorted((str(name), tuple(stored), tuple(wanted)) for name, stored, wanted in told["mismatched_keys"])
        ),
        expected=sum(1 for _ in model.parameters()),
    )
