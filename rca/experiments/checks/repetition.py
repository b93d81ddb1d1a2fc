"""One input, several times, through a model in evaluation and in train mode. Loads torch.

The model is the run's own class and configuration; its stored weights where they are small, random ones otherwise,
which act at random in the same places.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rca.experiments.checks.files import LeftFile, folder_of, listing, opened
from rca.experiments.checks.model_class import UnknownModel, class_of, read_settings
from rca.experiments.twin.config import TwinConfig
from rca.experiments.twin.models import build

MOST_PARAMETERS = 60_000_000
MOST_STORED = 400 * 2**20
_LENGTH, _BATCH = 16, 4
_RANDOM = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)


def measure(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the differences in both modes, over the spread of the outputs."""
    torch.manual_seed(0)
    why = "the run left no config.json of a model"
    model, name = None, ""
    root = Path(settings["folder"])
    if settings["config"]:
        try:
            model, name = _own(root, settings["config"])
        except UnknownModel as error:
            why = str(error)
    if model is None and settings["twin"] is not None:
        config = TwinConfig.model_validate(settings["twin"])
        model, name = build(config), f"a tiny {config.family} with the run's dropout"
    if model is None:
        return {"unknown": why}
    inputs = _inputs(model)
    if inputs is None:
        return {"unknown": f"{name} takes inputs that are not made up here"}
    outcome = {}
    for mode in ("eval", "train"):
        model.train(mode == "train")
        outputs = [_forward(model, inputs, seed) for seed in range(settings["repeats"])]
        alone = torch.cat([_forward(model, _row(inputs, row), 99) for row in range(_BATCH)])
        outcome[mode] = _difference(outputs)
        outcome[f"batch_{mode}"] = _difference([outputs[0], alone])
    return {
        **outcome,
        "model": name,
        "parts": _parts(model),
        "sampling": _sampling(root, settings["config"]) if settings["config"] else None,
    }


def _own(root: Path, path: str) -> tuple[nn.Module, str]:
    settings = read_settings(root, path)
    made, config = class_of(settings)
    with torch.device("meta"):
        count = sum(weight.numel() for weight in made(config).parameters())
    if count > MOST_PARAMETERS:
        raise UnknownModel(f"the model has {count:,} parameters, more than are built here")
    shards = [
        file
        for file in listing(root).files
        if folder_of(file.path) == folder_of(path) and file.path.endswith(".safetensors")
    ]
    if shards and sum(file.size for file in shards) <= MOST_STORED:
        state = _stored(root, shards)
        model = made.from_pretrained(None, config=config, state_dict=state, ignore_mismatched_sizes=True)
        return model.float(), f"{made.__name__} with the stored weights"
    return made(config), f"{made.__name__} with random weights"


def _stored(root: Path, shards: Sequence[LeftFile]) -> dict[str, torch.Tensor]:
    return {name: tensor for file in shards for name, tensor in _shard(root, file).items()}


def _shard(root: Path, file: LeftFile) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        with opened(root, file.path) as stream:
            tensors: dict[str, torch.Tensor] = load(stream.read(MOST_STORED))
            return tensors
    except OSError as error:
        raise UnknownModel(f"{file.path} cannot be read: {error.strerror}") from error
    except SafetensorError as error:
        raise UnknownModel(f"{file.path} cannot be read: {str(error)[:120]}") from error


def _inputs(model: nn.Module) -> dict[str, torch.Tensor] | None:
    draw = torch.Generator().manual_seed(1)
    config: Any = getattr(model, "config", None)
    kind = getattr(model, "main_input_name", None)
    if kind is None:
        first = next((module for module in model.modules() if isinstance(module, (nn.Linear, nn.Conv2d))), None)
        if isinstance(first, nn.Conv2d):
            return {"": torch.randn((_BATCH, first.in_channels, 16, 16), generator=draw)}
        return {"": torch.randn((_BATCH, first.in_features), generator=draw)} if first is not None else None
    if kind == "pixel_values":
        size = getattr(config, "image_size", None) or 32
        height, width = (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
        shape = (_BATCH, int(getattr(config, "num_channels", 3) or 3), min(height, 512), min(width, 512))
        return {kind: torch.randn(shape, generator=draw)}
    if kind != "input_ids":
        return None
    tokens = torch.randint(3, max(4, int(config.vocab_size)), (_BATCH, _LENGTH), generator=draw)
    return {kind: tokens, **({"decoder_input_ids": tokens} if config.is_encoder_decoder else {})}


def _row(inputs: Mapping[str, torch.Tensor], row: int) -> dict[str, torch.Tensor]:
    return {name: value[row : row + 1] for name, value in inputs.items()}


def _forward(model: nn.Module, inputs: Mapping[str, torch.Tensor], seed: int) -> torch.Tensor:
    torch.manual_seed(1000 + seed)
    with torch.no_grad():
        answer = model(inputs[""]) if "" in inputs else model(**inputs)
    if isinstance(answer, torch.Tensor):
        return answer.float()
    found: torch.Tensor | None = getattr(answer, "logits", None)
    first: torch.Tensor = answer[0] if found is None else found
    return first.float()


def _difference(outputs: Sequence[torch.Tensor]) -> float:
    spread = float(outputs[0].std()) or 1.0
    return max(float((one - outputs[0]).abs().max()) for one in outputs[1:]) / spread


def _parts(model: nn.Module) -> str:
    kinds: dict[str, int] = {}
    for module in model.modules():
        normalises = isinstance(module, nn.modules.batchnorm._BatchNorm)
        if normalises or (isinstance(module, _RANDOM) and module.p > 0):
            kinds[type(module).__name__] = kinds.get(type(module).__name__, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


def _sampling(root: Path, config: str) -> bool | None:
    """Return whether the generation_config.json beside a config.json asks for sampling."""
    folder = config.rpartition("/")[0]
    try:
        with opened(root, f"{folder}/generation_config.json" if folder else "generation_config.json") as stream:
            document = json.loads(stream.read(2**20))
    except (OSError, ValueError, RecursionError):
        return None
    value = document.get("do_sample") if isinstance(document, dict) else None
    return value if isinstance(value, bool) else None
