"""Which files a check may read: what lies in the run directory, or in what the user named with `--data`.

Everything here goes by names and sizes. No link is followed, nothing but plain files is opened.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rca.experiments.interface import Material

MOST_FILES = 20_000
"""Files of a folder that are looked at; the others are left out, and the scope says so."""
_DEPTH = 40
_NOT_OUTPUT = {".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", "venv", ".ipynb_checkpoints"}

SAMPLE_SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".npz", ".npy")
WEIGHT_SUFFIXES = (".safetensors", ".safetensors.index.json", ".bin", ".pt", ".pth", ".ckpt")
MEDIA_SUFFIXES = (
    *(".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif"),
    *(".wav", ".flac", ".mp3", ".ogg"),
)
TOKENIZER_FILES = frozenset(
    {"tokenizer.json", "vocab.json", "vocab.txt", "merges.txt", "tokenizer_config.json", "special_tokens_map.json"}
)
_SAMPLE_NAME = re.compile(
    r"(?:^|[/._-])(?:train(?:ing)?|val(?:id(?:ation)?)?|dev|eval(?:uation)?|test|holdout|data(?:set)?|samples?|batch(?:es)?|"
    r"examples?|inputs?|features)(?=$|[/._\-\d])",
    re.I,
)
_NO_SAMPLE_NAME = re.compile(
    r"(?:^|[/._-])(?:log|logs|metrics?|history|state|config|args|results?|arguments|summary|scores|report|index|requests|"
    r"timing|trace|params|hparams|info|predictions?|generations?|meta(?:data)?)(?=$|[/._-])",
    re.I,
)
_MEDIA_FOLDER = re.compile(
    r"(?:^|[/._-])(?:train(?:ing)?|val(?:id(?:ation)?)?|dev|test|data(?:set)?|images?|imgs|audio|wavs?|clips)(?=$|[/._\-\d])",
    re.I,
)
_TRAIN = re.compile(r"(?:^|[/._-])train(?:ing)?(?=$|[/._\-\d])", re.I)
_HELD_OUT = re.compile(r"(?:^|[/._-])(?:val(?:id(?:ation)?)?|dev|eval(?:uation)?|test|holdout)(?=$|[/._\-\d])", re.I)


class LeftFile(NamedTuple):
    """One plain file below a folder."""

    path: str
    """Relative to the folder, with `/`."""
    size: int


class Listing(NamedTuple):
    """The plain files of a folder, in the order of their paths."""

    files: tuple[LeftFile, ...]
    cut: bool
    """There are more than `MOST_FILES`."""


def listing(root: Path) -> Listing:
    """List the plain files below `root`, or `root` itself when it is a file; no link is followed."""
    if root.is_file():
        return Listing((LeftFile(root.name, root.stat().st_size),), False)
    found: list[LeftFile] = []
    for file in _walk(root, "", 0):
        if len(found) >= MOST_FILES:
            return Listing(tuple(found), True)
        found.append(file)
    return Listing(tuple(found), False)


def _walk(folder: Path, prefix: str, depth: int) -> Iterator[LeftFile]:
    try:
        with os.scandir(folder) as entries:
            items = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for item in items:
        path = f"{prefix}/{item.name}" if prefix else item.name
        try:
            found = item.stat(follow_symlinks=False)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            yield LeftFile(path, found.st_size)
        elif stat.S_ISDIR(found.st_mode) and depth < _DEPTH and item.name not in _NOT_OUTPUT:
            yield from _walk(Path(item.path), path, depth + 1)


def opened(root: Path, path: str) -> BinaryIO:
    """Open one listed file for reading; never through a link. Raises OSError."""
    place = root if root.is_file() else root / path
    number = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{path} is not a plain file")
    return os.fdopen(number, "rb")


def shown(path: str) -> str:
    """Return a path for a report: names that are not UTF-8 keep a replacement character."""
    return path.encode("utf-8", "replace").decode("utf-8", "replace")


def is_sample_file(path: str, *, named: bool) -> bool:
    """Whether a file may hold samples; one that the user named (`named`) needs only a readable format."""
    lower = path.lower()
    if not lower.endswith(SAMPLE_SUFFIXES):
        return False
    name = lower.rpartition("/")[2]
    return named or (_SAMPLE_NAME.search(lower) is not None and _NO_SAMPLE_NAME.search(name) is None)


def is_media_file(path: str, *, named: bool) -> bool:
    """Whether a file is an image or sound of the data, not a chart: outside of `named` places its folder tells."""
    folder = path.lower().rpartition("/")[0]
    return path.lower().endswith(MEDIA_SUFFIXES) and (named or _MEDIA_FOLDER.search(folder) is not None)


def side_of(text: str) -> str | None:
    """Return `train` or `held out` where a path or a label says one of them, or None."""
    train, held_out = _TRAIN.search(text), _HELD_OUT.search(text)
    if (train is None) == (held_out is None):
        return None
    return "train" if train else "held out"


def is_weight_file(path: str) -> bool:
    """Whether a file holds weights, by its name."""
    return path.lower().endswith(WEIGHT_SUFFIXES) and not path.lower().endswith(
        ("optimizer.pt", "scheduler.pt", "scaler.pt", "training_args.bin", "optimizer.bin")
    )


def left(material: Material) -> frozenset[str]:
    """Return what the run left, in the words of `ExperimentRule.needs`; looks at names only."""
    found: set[str] = set()
    if material.data is not None:
        found |= {"samples", "splits"}
    if material.folder is not None:
        files = listing(material.folder).files
        names = {file.path.rpartition("/")[2] for file in files}
        samples = [file.path for file in files if is_sample_file(file.path, named=False)]
        media = [file.path for file in files if is_media_file(file.path, named=False)]
        sides = {side_of(path) for path in samples} | {side_of(folder_of(path)) for path in media}
        found |= {"weights"} if any(is_weight_file(file.path) for file in files) else set()
        found |= {"tokenizer"} if names & {"tokenizer.json", "vocab.json", "vocab.txt"} else set()
        found |= {"model"} if "config.json" in names else set()
        found |= {"samples"} if samples or media else set()
        found |= {"splits"} if {"train", "held out"} <= sides else set()
    return frozenset(found)


def sample_root(material: Material) -> tuple[Path, bool] | None:
    """Return where samples are looked for, and whether the user named the place."""
    if material.data is not None:
        return material.data.resolve(), True
    return (material.folder.resolve(), False) if material.folder is not None else None


def folder_of(path: str) -> str:
    """Return the folder part of a relative path."""
    return path.rpartition("/")[0]


def together(paths: Sequence[str], most: int = 4) -> str:
    """Return the first paths for a sentence."""
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(shown(path) for path in paths[:most]) + more
