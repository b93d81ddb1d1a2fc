"""The texts of the rules in another language, from the `languages/` of every folder that rules are read from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rca.errors import KnowledgeError
from rca.rules.folders import builtin_folder
from rca.rules.load import LANGUAGES, documents, installed_folders


def translations(language: str, folders: Sequence[Path] = ()) -> dict[str, str]:
    """English text -> text in a language: built-in knowledge, then installed packages, then `folders`; later wins.

    They stand in `languages/<language>/*.yaml` of each. Raises KnowledgeError where a file is no flat mapping of texts.
    """
    homes = [folder / LANGUAGES / language for folder in (builtin_folder(), *installed_folders(), *map(Path, folders))]
    found: dict[str, str] = {}
    for file, data in documents([file for home in homes for file in sorted(home.glob("*.yaml"))]):
        if not isinstance(data, dict) or not all(isinstance(part, str) for row in data.items() for part in row):
            raise KnowledgeError("expected a mapping of English texts to their translations", file=file)
        found |= data
    return found
