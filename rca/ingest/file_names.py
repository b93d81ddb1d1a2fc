"""What the name of a file says about it."""

from __future__ import annotations

import re

_LOG = re.compile(
    r"\.(?:log|out|err|txt|stdout|stderr|output|trace)(?:[.-]?\d{1,6})?(?:\.(?:gz|xz|bz2|zst))?$|(?:^|/)(?:stdout|stderr)$",
    re.I,
)
_CODE = re.compile(
    r"\.(?:py|pyi|ipynb|c|cc|cpp|cu|cuh|h|hpp|rs|go|js|ts|java|md|rst|html?|css|svg|tex|patch|diff|lock)$", re.I
)


def is_log_name(path: str) -> bool:
    """Say whether a file is called like a log (`train.log`, `slurm-12.out.gz`, `log.txt.1`)."""
    return _LOG.search(path) is not None


def is_code_name(path: str) -> bool:
    """Say whether a file is called like source code or a document, whose words are not what a job printed."""
    return _CODE.search(path) is not None
