"""Inputs and labels of a language model beside each other: by how many places are the labels moved?"""

from __future__ import annotations

from collections.abc import Sequence

IGNORE_INDEX = -100
"""Label that PyTorch's cross entropy leaves out (torch.nn.CrossEntropyLoss, default of ignore_index)."""
_OFFSETS = (0, 1, 2, -1)
_FEWEST = 8
_AGREE = 0.9
"""Share of the counted labels that must agree; packed rows break at their borders."""


def label_offset(inputs: Sequence[int], labels: Sequence[int]) -> int | None:
    """Return k where label t is input t+k: 0 for the labels of transformers, 1 for targets that are shifted already.

    None where fewer than eight labels count, where nothing agrees, or where more than one offset does.
    """
    fits = []
    for offset in _OFFSETS:
        pairs = [
            (label, inputs[place + offset])
            for place, label in enumerate(labels[: len(inputs)])
            if label != IGNORE_INDEX and 0 <= place + offset < len(inputs)
        ]
        if len(pairs) >= _FEWEST and sum(one == other for one, other in pairs) >= _AGREE * len(pairs):
            fits.append(offset)
    return fits[0] if len(fits) == 1 else None
