"""A new rule from the most telling odd line, made from the line as the reader may see it."""

from __future__ import annotations

import re
import shlex

from rca.diagnosis import Diagnosis
from rca.errors import UsageError
from rca.ingest.logs.prefixes import PrefixParser
from rca.ingest.logs.timestamps import Clock
from rca.leads import OddLine, RuleDraft
from rca.rules.skeleton import skeleton

FOLDER = "team"
"""Domain and folder of the new rule, as the guide for authors calls them."""
_STAND_IN = re.compile(r"<(?:secret|(?:host|user|ip|mail|path)-\\d\+)>")
"""What a pattern makes of the stand-ins of redaction; any word stands there in the log."""
_WORD = re.compile(r"[a-z]{3,20}")
_EMPTY = frozenset(
    {"the", "and", "for", "was", "were", "has", "had", "have", "with", "from", "into", "that", "this", "not", "are"}
    | {"its", "but", "you", "can", "error", "exception"}
)
_PACKED = {".gz": "zcat", ".bz2": "bzcat", ".xz": "xzcat", ".zst": "zstdcat"}


def with_draft(diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis with the draft of a rule, where a loud line gives one; call it after redaction."""
    unexplained = diagnosis.unexplained
    if unexplained is None:
        return diagnosis
    loud = next((line for line in unexplained.lines if {"exception", "error_word"} & set(line.signs)), None)
    draft = None if loud is None else drafted(loud)
    return diagnosis.model_copy(update={"unexplained": unexplained.model_copy(update={"draft": draft})})


def drafted(odd: OddLine) -> RuleDraft | None:
    """Return the two files of a new rule and the command that writes them; None for a line without words."""
    message = PrefixParser(Clock()).parse(odd.text, 1).message
    cause = f"{FOLDER}.{_name(message)}"
    try:
        rule, cases = skeleton(odd.text, cause=cause, message=message)
    except UsageError:
        return None
    return RuleDraft(line=odd.id, rule=_STAND_IN.sub(r"\\S+", rule), cases=cases, command=_command(odd, cause))


def _name(message: str) -> str:
    words = [word for word in _WORD.findall(_STAND_IN.sub(" ", message).lower()) if word not in _EMPTY]
    return "_".join(dict.fromkeys(words[:4])) or "new_cause"


def _command(odd: OddLine, cause: str) -> str:
    """The line is taken from the file itself: what is shown here may hold stand-ins."""
    new = f"rca rules new {cause} --rules {FOLDER} --from-line -"
    path = shlex.quote(f"./{odd.source}" if odd.source.startswith("-") else odd.source)
    unpack = next((tool for ending, tool in _PACKED.items() if odd.source.endswith(ending)), None)
    if unpack is not None:
        return f"{unpack} {path} | sed -n {odd.line}p | {new}"
    return f"sed -n {odd.line}p {path} | {new}"
