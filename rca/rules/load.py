"""Reads knowledge folders into validated values, with errors that name the file, the line and the way out."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel

from rca import cache
from rca.errors import KnowledgeError
from rca.rules.advice_schema import Record, RecordFile, Remedy, RemedyFile
from rca.rules.folders import builtin_folder
from rca.rules.measured import LikelihoodFile, Outcomes, with_outcomes
from rca.rules.patterns import patterns_of, refusal
from rca.rules.schema import (
    Calibration,
    Cause,
    Condition,
    ExperimentRule,
    Signature,
    SignatureFile,
    Taxonomy,
)
from rca.rules.yaml_files import Location, did_you_mean, line_of, read_yaml, validate

ENTRY_POINT = "rca.knowledge"
REMEDIES = "remedies.yaml"
"""What can be done about memory; read by `remedies`, only where it is asked for."""
LANGUAGES = "languages"
"""Folder of a rules folder that holds the texts of the rules in other languages; reports read it."""
CALIBRATION = "calibration.json"
"""Name under which a rules folder holds a fitted calibration."""
_JOINED = ("evidence", "contradicts", "explains", "experiments", "falsepositives", "references", "field_guide")
"""What an extension adds behind that of its cause; its fixes and deciding steps come first."""


@dataclass(frozen=True)
class Knowledge:
    """Everything that is known: what software says, what goes wrong, how to test it."""

    signatures: Mapping[str, Signature] = field(default_factory=dict)
    causes: Mapping[str, Cause] = field(default_factory=dict)
    experiments: Mapping[str, ExperimentRule] = field(default_factory=dict)
    records: Mapping[str, Record] = field(default_factory=dict)
    """What a run should leave, in the order in which it is asked for."""
    taxonomy: Mapping[str, str] = field(default_factory=dict)
    untestable: Mapping[str, str] = field(default_factory=dict)
    """Domain or cause id -> why a tiny training cannot show it."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Id of a signature, cause or experiment -> the file that defines it."""
    extensions: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """Id of a cause -> the files that extend it."""
    notes: tuple[str, ...] = ()
    """Overrides, extensions and disabled ids, one sentence each."""
    calibration: Calibration = field(default_factory=Calibration)
    """How scores become probabilities: `calibration.json` of the last folder that has one."""
    outcomes: Outcomes = field(default_factory=dict)
    """Counted outcomes of experiments; `experiments` holds them already."""
    outcomes_file: Path | None = None

    @cached_property
    def patterns(self) -> tuple[Signature, ...]:
        """All signatures, and one for every inline `log:` pattern of a cause: the same objects every time."""
        inline = {signature.id: signature for cause in self.causes.values() for signature in _inline_signatures(cause)}
        return (*self.signatures.values(), *inline.values())


def load(folders: Sequence[Path] = (), *, disabled: Iterable[str] = (), builtin: bool = True) -> Knowledge:
    """Load the built-in knowledge, then installed packages, then `folders`; the same id later wins and is noted.

    Raises KnowledgeError where a file is wrong or a folder does not exist.
    """
    knowledge = Knowledge()
    home = builtin_folder()
    places = [*([home] if builtin else []), *installed_folders(), *map(Path, folders)]
    for place in places:
        if not place.is_dir():
            raise KnowledgeError("this rules folder does not exist; check the path given to --rules", file=place)
        knowledge = _add_folder(knowledge, place, checked=place != home)
    together = replace(knowledge, experiments=with_outcomes(knowledge.experiments, knowledge.outcomes))
    return _without(together, disabled)


def remedies(folders: Sequence[Path] = ()) -> tuple[Remedy, ...]:
    """Return what can be done about a step that does not fit, cheapest first; a later folder replaces an id.

    Raises KnowledgeError where a file is wrong.
    """
    found: dict[str, Remedy] = {}
    for folder in (builtin_folder(), *folders):
        file = folder / REMEDIES
        if file.is_file():
            found |= {remedy.id: remedy for remedy in validate(RemedyFile, read_yaml(file), file=file).remedies}
    return tuple(sorted(found.values(), key=lambda remedy: remedy.price))


def inline_id(pattern: str) -> str:
    """Return the signature id under which an inline `log:` pattern is searched."""
    return "inline.p" + hashlib.sha256(pattern.encode()).hexdigest()[:12]


def walk(condition: Condition) -> Iterator[Condition]:
    """Yield a condition and all conditions inside it."""
    return (inner for _, inner in located(condition))


def located(condition: Condition, loc: Location = ()) -> Iterator[tuple[Location, Condition]]:
    """Yield a condition and all conditions inside it, each with its keys in the file."""
    yield loc, condition
    for key in ("all", "any"):
        for index, inner in enumerate(getattr(condition, key) or ()):
            yield from located(inner, (*loc, key, index))
    if condition.not_ is not None:
        yield from located(condition.not_, (*loc, "not"))


def conditions(cause: Cause) -> Iterator[Condition]:
    """Yield every condition of a cause, nested ones included."""
    for rule in (*cause.evidence, *cause.contradicts):
        yield from walk(rule)


def _inline_signatures(cause: Cause) -> Iterator[Signature]:
    for condition in conditions(cause):
        if condition.log is not None:
            yield Signature.model_construct(
                id=inline_id(condition.log),
                emitter="inline",
                pattern=condition.log,
                captures={},
                role="initiating",
                severity="info",
                phase=None,
                says="",
                matches=(),
                rejects=(),
                since=None,
                until=None,
                verified="",
            )


def installed_folders() -> list[Path]:
    """Folders of installed packages that declare the entry point `rca.knowledge` (a module or package)."""
    found = []
    for entry in entry_points(group=ENTRY_POINT):
        module = entry.load()
        found.append(Path(next(iter(module.__path__))) if hasattr(module, "__path__") else Path(module.__file__).parent)
    return found


class _Draft:
    """Knowledge while folders are being read into it."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.signatures = dict(knowledge.signatures)
        self.causes = dict(knowledge.causes)
        self.experiments = dict(knowledge.experiments)
        self.records = dict(knowledge.records)
        self.taxonomy, self.untestable = dict(knowledge.taxonomy), dict(knowledge.untestable)
        self.files = dict(knowledge.files)
        self.extensions = dict(knowledge.extensions)
        self.notes = list(knowledge.notes)
        self.calibration = knowledge.calibration
        self.outcomes, self.outcomes_file = dict(knowledge.outcomes), knowledge.outcomes_file

    def put(self, target: dict[str, Any], value: Any, file: Path) -> None:
        """Define an id; a later file wins, and that is noted."""
        if value.id in target:
            self.notes.append(f"{value.id} from {self.files[value.id]} is replaced by {file}")
        target[value.id] = value
        self.files[value.id] = file

    def put_cause(self, cause: Cause, file: Path) -> None:
        """Define a cause, or add to the one it extends."""
        if cause.extends is None:
            self.put(self.causes, cause, file)
            return
        base = self.causes.get(cause.extends)
        if base is None:
            hint = did_you_mean(cause.extends, self.causes)
            raise KnowledgeError(f"extends {cause.extends!r}, which no loaded file defines{hint}", file=file)
        both = {name: (*getattr(base, name), *getattr(cause, name)) for name in _JOINED}
        first = {name: (*getattr(cause, name), *getattr(base, name)) for name in ("fixes", "decide")}
        self.causes[base.id] = base.model_copy(update={**both, **first})
        self.extensions[base.id] = (*self.extensions.get(base.id, ()), file)
        self.notes.append(f"{base.id} is extended by {file}")

    def freeze(self) -> Knowledge:
        """Return what was read."""
        return Knowledge(
            signatures=self.signatures,
            causes=self.causes,
            experiments=self.experiments,
            records=self.records,
            taxonomy=self.taxonomy,
            untestable=self.untestable,
            files=self.files,
            extensions=self.extensions,
            notes=tuple(self.notes),
            calibration=self.calibration,
            outcomes=self.outcomes,
            outcomes_file=self.outcomes_file,
        )


def _add_folder(knowledge: Knowledge, folder: Path, *, checked: bool) -> Knowledge:
    """Add a folder. `checked` refuses patterns outside RE2; what comes with `rca` passed that test before."""
    draft = _Draft(knowledge)
    for file, data in documents(sorted(_rule_files(folder))):
        shape = _shape(data, file)
        if shape is SignatureFile:
            for index, signature in enumerate(validate(SignatureFile, data, file=file).signatures):
                if checked:
                    _refuse(signature.pattern, file, ("signatures", index, "pattern"))
                draft.put(draft.signatures, signature, file)
        elif shape is ExperimentRule:
            draft.put(draft.experiments, validate(ExperimentRule, data, file=file), file)
        elif shape is RecordFile:
            draft.records.update({record.id: record for record in validate(RecordFile, data, file=file).records})
        elif shape is LikelihoodFile:
            draft.outcomes.update(validate(LikelihoodFile, data, file=file).outcomes)
            draft.outcomes_file = file
        elif shape is Taxonomy:
            taxonomy = validate(Taxonomy, data, file=file)
            draft.taxonomy.update(taxonomy.causes)
            draft.untestable.update(taxonomy.untestable)
        else:
            cause = validate(Cause, _extension(data), file=file)
            if checked:
                _refuse_patterns(cause, file)
            draft.put_cause(cause, file)
    fitted = folder / CALIBRATION
    if fitted.is_file():
        draft.calibration = validate(Calibration, read_yaml(fitted), file=fitted)
    return draft.freeze()


def _refuse_patterns(cause: Cause, file: Path) -> None:
    for section in ("evidence", "contradicts"):
        for index, rule in enumerate(getattr(cause, section)):
            for loc, condition in located(rule, (section, index)):
                for key, pattern in patterns_of(condition):
                    _refuse(pattern, file, (*loc, key))


def _refuse(pattern: str, file: Path, loc: Location) -> None:
    reason = refusal(pattern)
    if reason is not None:
        raise KnowledgeError(reason, file=file, line=line_of(file, loc))


def documents(files: Sequence[Path]) -> list[tuple[Path, Any]]:
    """Parse YAML files; what the same files parsed to last time is taken from the cache."""
    try:
        texts = [file.read_bytes() for file in files]
    except OSError:
        texts = []
    name = f"knowledge-{hashlib.sha256(repr(texts).encode()).hexdigest()[:32]}.json"
    stored = cache.read(name) if texts else None
    if stored is not None:
        return list(zip(files, msgspec.json.decode(stored), strict=True))
    parsed = [read_yaml(file) for file in files]
    if texts:
        # Dates and the like have no place in a rule; where one stands, the file is parsed anew every time.
        with suppress(TypeError):
            cache.write(name, msgspec.json.encode(parsed, enc_hook=_refused))
    return list(zip(files, parsed, strict=True))


def _rule_files(folder: Path) -> Iterator[Path]:
    """Yield the files that hold rules: no cases, no translations, and nothing of the recorded runs of a cause."""
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.endswith(".cases") and Path(top, name) != folder / LANGUAGES]
        for name in names:
            file = Path(top, name)
            if name == REMEDIES and Path(top) == folder:
                continue
            if name.endswith(".yaml") and not name.endswith(".cases.yaml") and not file.is_symlink() and file.is_file():
                yield file


def _refused(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _shape(data: Any, file: Path) -> type[BaseModel]:
    if not isinstance(data, dict):
        raise KnowledgeError(
            "expected a mapping; see knowledge/README.md for the shape of each file", file=file, line=1
        )
    if "signatures" in data:
        return SignatureFile
    if "question" in data or "predicts" in data:
        return ExperimentRule
    if "outcomes" in data:
        return LikelihoodFile
    if set(data) <= {"records"}:
        return RecordFile
    if set(data) <= {"causes", "untestable"}:
        return Taxonomy
    return Cause


def _extension(data: dict[str, Any]) -> dict[str, Any]:
    """Fill what a file with `extends:` may leave out: all but the evidence comes from the cause it extends."""
    if "extends" not in data:
        return data
    return {"id": data["extends"], "title": "-", "sentence": "-", "summary": "-", "prior": 0.5, **data}


def _without(knowledge: Knowledge, disabled: Iterable[str]) -> Knowledge:
    known = {**knowledge.signatures, **knowledge.causes, **knowledge.experiments}
    off = set()
    for name in disabled:
        if name not in known:
            raise KnowledgeError(
                f"cannot disable {name!r}: no signature, cause or experiment has this id{did_you_mean(name, known)}"
            )
        off.add(name)
    if not off:
        return knowledge
    return replace(
        knowledge,
        signatures={key: item for key, item in knowledge.signatures.items() if key not in off},
        causes={key: item for key, item in knowledge.causes.items() if key not in off},
        experiments={key: item for key, item in knowledge.experiments.items() if key not in off},
        notes=(*knowledge.notes, *(f"{name} is disabled" for name in sorted(off))),
    )
