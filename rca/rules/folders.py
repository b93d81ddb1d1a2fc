"""Where the knowledge that comes with `rca` lies."""

from __future__ import annotations

from pathlib import Path

from rca.errors import KnowledgeError


def builtin_folder() -> Path:
    """Return the folder of the knowledge that comes with `rca`: in the wheel, or at the root of a checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_knowledge", package.parent / "knowledge"):
        if (folder / "causes").is_dir():
            return folder
    raise KnowledgeError("the knowledge base is missing from this installation; reinstall rca-dl", file=package)
