"""A diagnosis without what must not leave the machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rca.diagnosis import Diagnosis, Redaction
from rca.redact.every_text import changed
from rca.redact.redactor import Mode, Redactor

_NAMES = frozenset(
    {"run_name", "experiment_name", "wandb_run_name", "wandb_project", "project", "project_name", "entity", "job_name"}
)
"""Last words of settings that hold the name of a run or of a project."""


def redactor_for(diagnosis: Diagnosis, *, mode: Mode, hosts: Iterable[str] = (), users: Iterable[str] = ()) -> Redactor:
    """Return the redactor of a diagnosis, and of whatever else is shown of the run, so that placeholders agree.

    Hosts that the run names itself (`run.hosts`, the node of the failure) are replaced as well.
    """
    failed = [diagnosis.failure.host] if diagnosis.failure is not None and diagnosis.failure.host else []
    settings = [item for item in diagnosis.settings if item.group == "configuration"]
    names = [item.value for item in settings if item.name.rpartition(".")[2].lower() in _NAMES]
    names += [diagnosis.run.name, *diagnosis.run.name.split("/")]
    names += [] if diagnosis.baseline is None else [diagnosis.baseline.name]
    folders = {record.path.rpartition("/")[0] for record in diagnosis.sources}
    return Redactor(mode, hosts=[*hosts, *diagnosis.run.hosts, *failed], users=users, names=names, folders=folders)


def redact_diagnosis(
    diagnosis: Diagnosis,
    *,
    mode: Mode = "default",
    hosts: Iterable[str] = (),
    users: Iterable[str] = (),
    redactor: Redactor | None = None,
) -> Diagnosis:
    """The diagnosis with every text redacted, and the counts of what was replaced.

    `redactor` is one from `redactor_for`; without it, one for this diagnosis alone is made of the other options.
    """
    chosen = redactor or redactor_for(diagnosis, mode=mode, hosts=hosts, users=users)
    if chosen.mode == "none":
        return diagnosis.model_copy(update={"redaction": Redaction(mode=chosen.mode)})
    changed(diagnosis, _Learning(chosen))
    redacted = changed(diagnosis, _Replacing(chosen))
    counts = dict(sorted(chosen.counts.items()))
    return redacted.model_copy(update={"redaction": Redaction(mode=chosen.mode, counts=counts)})


class _Learning:
    """Tells a redactor of every text and changes none."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def text(self, text: str) -> str:
        self._redactor.learn(text)
        return text

    place = text

    def value(self, name: str, value: str) -> str:
        self._redactor.learn_value(name, value)
        return value

    version = value

    def lines(self, lines: Sequence[str]) -> list[str]:
        for line in lines:
            self._redactor.learn(line)
        return list(lines)


class _Replacing:
    """Puts placeholders in."""

    def __init__(self, redactor: Redactor) -> None:
        self.text = redactor.text
        self.place = redactor.place
        self.value = redactor.value
        self.lines = redactor.lines
        self._redactor = redactor

    def version(self, _name: str, version: str) -> str:
        return self._redactor.text(version, addresses=False)
