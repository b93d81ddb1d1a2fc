"""A weight file in a few numbers, from the names, types and shapes of its tensors. No tensor is ever read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

WRAPPER_PREFIXES = ("_orig_mod.", "module.", "base_model.model.", "_fsdp_wrapped_module.", "_forward_module.")
"""What wrappers put in front of every parameter: torch.compile, DistributedDataParallel, PEFT, FSDP, Lightning."""
_EMBEDDINGS = (
    "embed_tokens.weight",
    "word_embeddings.weight",
    "wte.weight",
    "tok_embeddings.weight",
    "token_embedding.weight",
    "embed_in.weight",
    "shared.weight",
    "token_embd.weight",
)
_HEADS = (
    "lm_head.weight",
    "embed_out.weight",
    "classifier.weight",
    "score.weight",
    "classifier.out_proj.weight",
    "cls.predictions.decoder.weight",
)
_LAYER = re.compile(r"(?:^|\.)(?:layers|layer|h|blocks|block|blk)\.([0-9]{1,5})\.")
_SAMPLE = 12
_LONGEST_NAME = 200


class Tensor(NamedTuple):
    """What a header says of one tensor."""

    name: str
    dtype: str
    shape: tuple[int, ...]


def summarise(tensors: Sequence[Tensor]) -> dict[str, Any]:
    """Return counts, parameter number, common wrapper prefix, embedding and head shapes, and the number of layers."""
    names = [tensor.name for tensor in tensors]
    empty = [tensor.name for tensor in tensors if 0 in tensor.shape]
    layers = {int(match[1]) for name in names if (match := _LAYER.search(name[:_LONGEST_NAME])) is not None}
    found = {
        "tensors": len(tensors),
        "parameters": sum(prod(tensor.shape) for tensor in tensors),
        "dtypes": dict(Counter(tensor.dtype for tensor in tensors).most_common(8)),
        "zero_size_tensors": len(empty),
        "zero_size_sample": [name[:_LONGEST_NAME] for name in empty[:_SAMPLE]],
        "key_prefix": wrapper_prefix(names),
        "layers": max(layers) + 1 if layers else None,
        "sample": [name[:_LONGEST_NAME] for name in names[:_SAMPLE]],
    }
    for role, endings in (("embedding", _EMBEDDINGS), ("head", _HEADS)):
        shape = next((list(tensor.shape) for tensor in tensors if tensor.name.endswith(endings)), None)
        if shape is not None:
            found[f"{role}_shape"] = shape
    return {key: value for key, value in found.items() if value is not None and value != []}


def wrapper_prefix(names: Sequence[str]) -> str | None:
    """Return the wrapper prefix that at least nine of ten names carry, at their start or after a root module."""
    for prefix in WRAPPER_PREFIXES:
        carrying = sum(name.startswith(prefix) or f".{prefix}" in name[:_LONGEST_NAME] for name in names)
        if names and carrying * 10 >= 9 * len(names):
            return prefix
    return None
