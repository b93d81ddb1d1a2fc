"""User names in a line: in paths of home directories, in variables, in prompts."""

from __future__ import annotations

from collections.abc import Iterator

import re2 as re

from rca.redact.vocabulary import COMMON_FOLDERS, HARMLESS_VALUES, SHARED_ACCOUNTS, SPEAKERS

Span = tuple[int, int]

_HOME = re.compile(
    r"(?i)(?:/(?:home|users|homes|u)/(?:[a-z]/)?|[\\/]Users\\{1,4}|/scratch/users?/|/(?:scratch|work|gpfs|lustre|fsx)/user/)"
    r"([A-Za-z0-9_][A-Za-z0-9._\-]{1,63})"
)
_SCRATCH = re.compile(r"(?:^|[^\w.])/(?:scratch|fsx|lustre|gpfs)(?:/scratch)?/([a-z][a-z0-9._]{2,15})/")
"""On shared disks the first folder is most often a person's."""
_NAMED = re.compile(
    r"(?:\b(?:USER|LOGNAME|USERNAME|SLURM_JOB_USER|SUDO_USER|WANDB_USERNAME|WANDB_ENTITY|JUPYTERHUB_USER)=[\"']?|\bUserId=|"
    r"(?i:[\"'](?:user|user_?name|owner|login)[\"']\s{0,3}[=:]\s{0,3}[\"']|\b(?:user_?name|slurm_job_user)[=:]\s{0,3}))"
    r"([A-Za-z][A-Za-z0-9._\-]{1,31})(?:$|[\s\"',;()&])"
)
_PROMPT = re.compile(
    r"(?:^|[\s\[(,;])([a-z][\w.\-]{1,31})@(?:<host-\d+>|[A-Za-z][\w\-]{1,62}(?:\.[\w\-]{1,63}){0,4})"
    r"(?::[~/]| [^\]\s]{1,64}\][$#])"
)


def user_spans(text: str) -> Iterator[Span]:
    """User names by where they stand; accounts that many share are none."""
    for match in _HOME.finditer(text):
        if match.group(1).lower() not in SHARED_ACCOUNTS and not match.group(1).isdigit():
            yield match.span(1)
    for shape in (_NAMED, _PROMPT, _SCRATCH):
        for match in shape.finditer(text):
            name = match.group(1).lower()
            if name not in SHARED_ACCOUNTS and name not in COMMON_FOLDERS and name not in SPEAKERS | HARMLESS_VALUES:
                yield match.span(1)


def is_telling(name: str) -> bool:
    """Whether a name may also be replaced outside of the places where it is said to be a user's."""
    return (len(name) >= 4 or (len(name) == 3 and not name.isalpha())) and name.lower() not in COMMON_FOLDERS
