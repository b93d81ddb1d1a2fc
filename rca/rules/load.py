"""Reads knowledge folders into validated values, with errors that name the file, the line and the way out."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from pydantic import BaseModel, ValidationError

from rca import cache
from rca.errors import KnowledgeError
from rca.rules.schema import Cause, Condition, ExperimentRule, Signature, SignatureFile, Taxonomy

_Model = TypeVar("_Model", bound=BaseModel)
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
ENTRY_POINT = "rca.knowledge"


@dataclass(frozen=True)
class Knowledge:
    """Everything that is known: what software says, what goes wrong, how to test it."""

    signatures: Mapping[str, Signature] = field(default_factory=dict)
    causes: Mapping[str, Cause] = field(default_factory=dict)
    experiments: Mapping[str, ExperimentRule] = field(default_factory=dict)
    taxonomy: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    """Id of a signature, cause or experiment -> the file that defines it."""
    notes: tuple[str, ...] = ()
    """Overrides, extensions and disabled ids, one sentence each."""

    @cached_property
    def patterns(self) -> tuple[Signature, ...]:
        """All signatures, and one for every inline `log:` pattern of a cause: the same objects every time."""
        inline = {signature.id: signature for cause in self.causes.values() for signature in _inline_signatures(cause)}
        return (*self.signatures.values(), *inline.values())


def builtin_folder() -> Path:
    """Return the folder of the knowledge that comes with `rca`: in the wheel, or at the root of a checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_knowledge", package.parent / "knowledge"):
        if (folder / "causes").is_dir():
            return folder
    raise KnowledgeError("the knowledge base is missing from this installation; reinstall rca-dl", file=package)


def load(folders: Sequence[Path] = (), *, disabled: Iterable[str] = (), builtin: bool = True) -> Knowledge:
    """Load the built-in knowledge, then installed packages, then `folders`; the same id later wins and is noted.

    Raises KnowledgeError where a file is wrong or a folder does not exist.
    """
    knowledge = Knowledge()
    places = [*([builtin_folder()] if builtin else []), *_installed_folders(), *map(Path, folders)]
    for place in places:
        if not place.is_dir():
            raise KnowledgeError("this rules folder does not exist; check the path given to --rules", file=place)
        knowledge = _add_folder(knowledge, place)
    return _without(knowledge, disabled)


def inline_id(pattern: str) -> str:
    """Return the signature id under which an inline `log:` pattern is searched."""
    return "inline.p" + hashlib.sha256(pattern.encode()).hexdigest()[:12]


def read_yaml(file: Path) -> Any:
    """Parse one YAML file. Raises KnowledgeError with the line of a syntax error."""
    try:
        return yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise KnowledgeError(f"not valid YAML: {error.problem}", file=file, line=line) from error
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:  # dates of month 13 are a ValueError
        raise KnowledgeError(f"cannot be read: {error}", file=file) from error


def validate(model: type[_Model], data: Any, *, file: Path) -> _Model:
    """Check parsed YAML against a model. Raises KnowledgeError that names the line, the key and a likely correction."""
    if not isinstance(data, dict):
        raise KnowledgeError(f"expected a mapping with the keys of a {model.__name__.lower()}", file=file, line=1)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise KnowledgeError(_sentence(first, model), file=file, line=_line_of(file, first["loc"])) from error


def walk(condition: Condition) -> Iterator[Condition]:
    """Yield a condition and all conditions inside it."""
    yield condition
    for inner in (*(condition.all or ()), *(condition.any or ()), *((condition.not_,) if condition.not_ else ())):
        yield from walk(inner)


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


def _installed_folders() -> list[Path]:
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
        self.taxonomy = dict(knowledge.taxonomy)
        self.files = dict(knowledge.files)
        self.notes = list(knowledge.notes)

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
            hint = _did_you_mean(cause.extends, self.causes)
            raise KnowledgeError(f"extends {cause.extends!r}, which no loaded file defines{hint}", file=file)
        added = ("evidence", "contradicts", "explains", "experiments", "fixes", "references")
        both = {name: (*getattr(base, name), *getattr(cause, name)) for name in added}
        self.causes[base.id] = base.model_copy(update={**both, "fixes": (*cause.fixes, *base.fixes)})
        self.notes.append(f"{base.id} is extended by {file}")

    def freeze(self) -> Knowledge:
        """Return what was read."""
        return Knowledge(
            signatures=self.signatures,
            causes=self.causes,
            experiments=self.experiments,
            taxonomy=self.taxonomy,
            files=self.files,
            notes=tuple(self.notes),
        )


def _add_folder(knowledge: Knowledge, folder: Path) -> Knowledge:
    draft = _Draft(knowledge)
    for file, data in _documents(folder):
        shape = _shape(data, file)
        if shape is SignatureFile:
            for signature in validate(SignatureFile, data, file=file).signatures:
                draft.put(draft.signatures, signature, file)
        elif shape is ExperimentRule:
            draft.put(draft.experiments, validate(ExperimentRule, data, file=file), file)
        elif shape is Taxonomy:
            draft.taxonomy.update(validate(Taxonomy, data, file=file).causes)
        else:
            draft.put_cause(validate(Cause, _extension(data), file=file), file)
    return draft.freeze()


def _documents(folder: Path) -> list[tuple[Path, Any]]:
    """Parse the files of a folder; what the same files parsed to last time is taken from the cache."""
    files = [
        file
        for file in sorted(folder.rglob("*.yaml"))
        if not file.name.endswith(".cases.yaml") and not file.is_symlink() and file.is_file()
    ]
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
    if set(data) <= {"causes"}:
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
                f"cannot disable {name!r}: no signature, cause or experiment has this id{_did_you_mean(name, known)}"
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


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _sentence(error: Any, model: type[BaseModel]) -> str:
    """Turn one pydantic error into a sentence for the author of the file."""
    place = ".".join(str(part) for part in error["loc"])
    key = str(error["loc"][-1]) if error["loc"] else ""
    if error["type"] == "missing":
        return f"{place}: the key {key!r} is missing; add it"
    if error["type"] == "extra_forbidden":
        return f"{place}: unknown key {key!r}{_did_you_mean(key, _field_names(model))}"
    return f"{place}: {error['msg'].removeprefix('Value error, ')}"


def _field_names(model: type[BaseModel]) -> set[str]:
    names: set[str] = set()
    seen: set[type[BaseModel]] = set()
    pending = [model]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        for name, info in current.model_fields.items():
            names.add(info.alias or name)
            pending.extend(_models_in(info.annotation))
    return names


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [inner for part in getattr(annotation, "__args__", ()) for inner in _models_in(part)]


def _line_of(file: Path, loc: tuple[int | str, ...]) -> int | None:
    """Return the 1-based line of the deepest part of `loc` that stands in the file."""
    node = yaml.compose(file.read_text(encoding="utf-8"), Loader=_Loader)
    if node is None:
        return 1
    line: int = node.start_mark.line + 1
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            entry = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if entry is None:
                break
            line, node = entry[0].start_mark.line + 1, entry[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line
