"""`weight_files`: are the weight files whole, complete, and those of the model that config.json names?

A header says what a file should hold; here the bytes are read, hashed, and fitted to the model class by its own loader.
"""

from __future__ import annotations

from rca.errors import ExperimentError
from rca.experiments.checks.check import Asked, Check, Found, Outcome
from rca.experiments.checks.files import together
from rca.experiments.checks.weight_reading import read_weights

FP16_MAX = 65504.0
"""Largest finite value of float16 (IEEE 754)."""
_HEADS = ("lm_head", "classifier", "score", "head", "qa_outputs", "pooler", "cls.")
"""First or last parts of the names of layers that a fresh task starts anew."""
_LOADED_BAD = frozenset({"nan_at_start"})


def judge(asked: Asked) -> Outcome:
    """Measure and judge what the rule's metric names."""
    if asked.material.folder is None:
        raise ExperimentError("there is no run directory")
    view = asked.view({"whole": _whole, "complete": _complete, "keys": _keys, "shapes": _shapes, "range": _range})
    part = "class" if asked.rule.metric in {"keys", "shapes"} else "files"
    return view(asked, asked.measure({"folder": str(asked.material.folder.resolve()), "part": part}))


def _whole(asked: Asked, found: Found) -> Outcome:
    """Are the bytes those that were written?"""
    files, sums = found["files"], found["checksums"]
    if not files and not sums["compared"]:
        raise ExperimentError("the run left no weight file that can be read without executing it")
    broken = [f"{file['path']} {file['problem']}" for file in files if file["problem"]]
    unwritten = [
        f"{file['path']} ends in {file['zero_tail']:,} bytes of tensors that are all zero"
        for file in files
        if file.get("zero_tail")
    ]
    wrong = [f"{name} differs from its checksum" for name in sums["wrong"]]
    odd = [file for file in files if file.get("not_finite_count")]
    scope = _scope(found)
    details = (
        ("files", str(len(files))),
        ("bytes read", f"{sum(file['scanned'] for file in files):,}"),
        ("files compared with a checksum", str(sums["compared"])),
        *((f"not finite in {file['path']}", _tensors(file)) for file in odd[:4]),
        *((f"zero matrices in {file['path']}", together(file["zero"])) for file in files if file.get("zero")),
    )
    damage = [*broken, *wrong, *unwritten]
    if damage:
        more = f" ({len(damage) - 1} more)" if len(damage) > 1 else ""
        return Outcome("confirmed", f"{damage[0]}{more}.", scope, details)
    if odd:
        said = f"{odd[0]['path']} holds values that are not finite in {odd[0]['not_finite_count']} tensors"
        if _LOADED_BAD & set(asked.profile.symptoms):
            return Outcome("confirmed", f"{said}, and the run's loss was not finite from its start.", scope, details)
        return Outcome(
            "inconclusive", f"{said}: what a run saves after its loss has left the finite range.", scope, details
        )
    if not all(file["whole"] for file in files):
        return Outcome("inconclusive", "What could be read is in order; not every tensor was read.", scope, details)
    hashed = f", {sums['compared']} files agree with their checksum" if sums["compared"] else ""
    return Outcome(
        "refuted", f"All {len(files)} weight files are whole, every value in them is finite{hashed}.", scope, details
    )


def _complete(_asked: Asked, found: Found) -> Outcome:
    """Is every file there that belongs to the model?"""
    indexes = found["indexes"]
    if not indexes:
        raise ExperimentError("no index names the files that belong to the model")
    worst = max(indexes, key=lambda item: (item["missing_count"], item["lost_count"]))
    details = tuple((item["path"], f"{item['files']} files, {item['missing_count']} missing") for item in indexes)
    scope = "names in the index against the files beside it; whether the job saw the same folder is not known"
    if worst["missing_count"] == worst["files"]:
        return Outcome(
            "inconclusive",
            f"None of the files in {worst['path']} is here: the weights were not copied.",
            scope,
            details,
        )
    if worst["missing_count"]:
        said = f"{worst['path']} names {worst['files']} files, {worst['missing_count']} are not there"
        return Outcome("confirmed", f"{said}: {together(worst['missing'])}.", scope, details)
    if worst["lost_count"]:
        said = f"{worst['lost_count']} tensors of {worst['path']} are not in the file it names"
        return Outcome("inconclusive", f"Every file is there, but {said}: {together(worst['lost'])}.", scope, details)
    return Outcome("refuted", f"All {worst['files']} files of {worst['path']} are there.", scope, details)


def _fitted(found: Found) -> Found:
    models = found["models"]
    if not models:
        raise ExperimentError("no folder holds both a config.json and safetensors files")
    known = [model for model in models if "unknown" not in model]
    if not known:
        raise ExperimentError(models[0]["unknown"])
    chosen: Found = max(
        known, key=lambda model: (model["mismatched_count"], model["missing_count"] + model["unexpected_count"])
    )
    return chosen


def _keys(_asked: Asked, found: Found) -> Outcome:
    """Does every parameter of the class get a stored tensor, and the other way round?"""
    model = _fitted(found)
    missing, unexpected = model["missing"], model["unexpected"]
    details = (
        ("model class", model["class"]),
        ("parameters without a stored tensor", _counted(model["missing_count"], missing)),
        ("stored tensors without a parameter", _counted(model["unexpected_count"], unexpected)),
    )
    scope = f"{model['path']} and the tensor names beside it, loaded without values by the class's own loader"
    said = (
        f"{model['class']} has {model['expected']} parameters; {model['missing_count']} find no stored tensor and "
        f"{model['unexpected_count']} stored tensors find no parameter"
    )
    if model.get("without_prefix"):
        return Outcome("confirmed", f"{said}; without the prefix `{model['without_prefix']}` they fit.", scope, details)
    if not model["missing_count"] and not model["unexpected_count"]:
        return Outcome(
            "refuted", f"All {model['tensors']} stored tensors fit {model['class']} by name.", scope, details
        )
    if not model["missing_count"]:
        return Outcome("inconclusive", f"{said}: nothing starts anew, but something is left unused.", scope, details)
    if model["missing_count"] <= len(missing) and all(_is_head(name) for name in missing):
        return Outcome("inconclusive", f"{said}: only a head starts anew, as for a new task.", scope, details)
    return Outcome("confirmed", f"{said}, e.g. {missing[0]}: these start from random values.", scope, details)


def _shapes(_asked: Asked, found: Found) -> Outcome:
    """Do the stored tensors have the shapes of the class?"""
    model = _fitted(found)
    details = tuple(
        (name, f"stored {'x'.join(map(str, stored))}, model {'x'.join(map(str, wanted))}")
        for name, stored, wanted in model["mismatched"][:6]
    )
    scope = f"{model['path']} and the shapes in the headers beside it, loaded by the class's own loader"
    if model["mismatched_count"]:
        name, words = details[0]
        said = f"{model['mismatched_count']} stored tensors do not have the shape of {model['class']}"
        return Outcome("confirmed", f"{said}, e.g. {name}: {words}.", scope, details)
    if model["missing_count"] > model["expected"] // 2:
        return Outcome("inconclusive", "Most parameters find no stored tensor, so few were compared.", scope, details)
    return Outcome("refuted", f"Every stored tensor that {model['class']} takes has its shape.", scope, details)


def _range(asked: Asked, found: Found) -> Outcome:
    """Do the weights themselves fit into float16?"""
    files = [file for file in found["files"] if file.get("largest")]
    if not files:
        raise ExperimentError("the run left no safetensors file with values")
    if asked.profile.precision not in {"fp16", None} and asked.profile.weight_dtype != "fp16":
        raise ExperimentError(f"the run computed in {asked.profile.precision}")
    top = max(files, key=lambda file: file["largest"])
    said = f"The largest weight is {top['largest']:.4g} ({top['largest_in']} in {top['path']})"
    details = (("room up to the largest fp16 value", f"{FP16_MAX / top['largest']:.3g} times"),)
    scope = "stored weights only; activations, which overflow far more often, cannot be seen in a file"
    if top["largest"] > FP16_MAX:
        return Outcome("confirmed", f"{said}: cast to fp16 it is infinite.", scope, details)
    return Outcome("inconclusive", f"{said}: the weights themselves fit into fp16.", scope, details)


def _is_head(name: str) -> bool:
    return name.startswith(_HEADS) or any(f".{part}" in name for part in ("lm_head", "classifier", "score", "pooler"))


def _counted(count: int, names: list[str]) -> str:
    return f"{count}: {together(names)}" if count else "none"


def _tensors(file: Found) -> str:
    return ", ".join(f"{name} ({count:,} values)" for name, count in file["not_finite"][:4])


def _scope(found: Found) -> str:
    checked = (
        "and their checksums"
        if found["checksums"]["compared"]
        else "(there is no checksum: damage that leaves ordinary values does not show)"
    )
    return f"headers, sizes and values of the weight files {checked}; pickled content is not opened"


CHECK = Check(judge, read_weights)
