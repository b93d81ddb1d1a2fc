"""Transforms that scripts give their held-out data."""

from __future__ import annotations

import json

import pytest

from rca.events import EventBuilder
from rca.ingest.settings.script_transforms import add_transforms

HEAD = """from torchvision import datasets, transforms as T

aug = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor()])
plain = T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor()])
"""


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("va = ImageFolder(f'{root}/val', transform=aug)", ["RandomResizedCrop", "RandomHorizontalFlip", "ToTensor"]),
        ("va = Birds(root, split='test', transforms=T.Compose([T.Resize(8)]))", ["Resize"]),
        ("tr = datasets.ImageFolder(f'{root}/train', transform=aug)", None),
        ("ds = datasets.ImageFolder(root, transform=aug)", None),
        ("va = datasets.ImageFolder(f'{root}/val', transform=unknown)", None),
        ("def broken(:", None),
    ],
)
def test_the_transforms_of_held_out_data(line: str, names: list[str] | None) -> None:
    out = EventBuilder("data.py")
    add_transforms(out, HEAD + line + "\n")
    found = [json.loads(row["attrs"])["names"] for row in out.build().to_pylist()]
    assert found == ([] if names is None else [names])
