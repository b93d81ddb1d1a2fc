"""Checks of signatures: their examples, and whether two of them claim the same line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from rca.rules.findings import Finding, found
from rca.rules.load import Knowledge
from rca.rules.patterns import compiled, groups, refusal, says_nothing
from rca.rules.schema import Signature
from rca.rules.yaml_files import Location, read_yaml


def check_signatures(knowledge: Knowledge) -> Iterator[Finding]:
    """Yield what is wrong with signatures by themselves and beside others of the same emitter."""
    wrong = {}
    for signature in knowledge.signatures.values():
        reason = refusal(signature.pattern) or says_nothing(signature.pattern)
        failures = [reason] if reason is not None else signature_failures(signature)
        for failure in failures:
            wrong[signature.id] = True
            yield _at(signature, knowledge, "error", "pattern", failure)
    right = [item for item in knowledge.signatures.values() if item.id not in wrong]
    yield from _same_pattern(right, knowledge)
    yield from _same_line(right, knowledge)


def signature_failures(signature: Signature) -> list[str]:
    """Return what is wrong with the examples of a signature: patterns must match `matches` and nothing in `rejects`."""
    pattern = compiled(signature.pattern)
    missed = [f"does not match its example {line!r}" for line in signature.matches if not pattern.search(line)]
    wrong = [f"matches the line it should reject {line!r}" for line in signature.rejects if pattern.search(line)]
    unnamed = sorted(set(signature.captures) - groups(signature.pattern))
    failures = missed + wrong + [f"has no group (?P<{name}>...) for the capture {name!r}" for name in unnamed]
    return [f"the pattern of {signature.id} {failure}" for failure in failures]


def _same_pattern(signatures: Sequence[Signature], knowledge: Knowledge) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for signature in signatures:
        other = first.setdefault(signature.pattern, signature.id)
        if other != signature.id:
            yield _at(signature, knowledge, "error", "pattern", f"{signature.id} has the very pattern of {other}")


def _same_line(signatures: Sequence[Signature], knowledge: Knowledge) -> Iterator[Finding]:
    """Two signatures of one emitter that read one line in different roles contradict each other."""
    emitters = defaultdict(list)
    for signature in signatures:
        emitters[signature.emitter].append(signature)
    for group in emitters.values():
        for one in group:
            for other in group:
                line = next((line for line in one.matches if compiled(other.pattern).search(line)), None)
                if other.role != one.role and line is not None:
                    text = (
                        f"the example {line!r} of {one.id} ({one.role}) is also matched by {other.id} ({other.role});"
                        " narrow one of the two, or give them one role"
                    )
                    yield _at(one, knowledge, "warning", "role", text)


def _at(signature: Signature, knowledge: Knowledge, level: str, key: str, text: str) -> Finding:
    file = knowledge.files[signature.id]
    ids = [row.get("id") for row in read_yaml(file)["signatures"]]
    loc: Location = ("signatures", ids.index(signature.id), key)
    return found("error" if level == "error" else "warning", file, loc, text)
