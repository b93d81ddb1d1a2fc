"""`tokenizer_round_trip`: is this the model's tokenizer: its ids, its special tokens, its way through text and back?"""

from __future__ import annotations

from rca.errors import ExperimentError
from rca.experiments.checks.check import Asked, Check, Found, Outcome
from rca.experiments.checks.files import sample_root, together
from rca.experiments.checks.tokenizer_reading import read_tokenizers

UNKNOWN = 0.02
"""Share of unknown pieces in the run's own text from which the vocabulary does not fit; a byte-level one has none."""
SPARE = 0.9
"""Share of the embedding rows that a tokenizer uses at least; rows are padded to round numbers, rarely by a tenth."""
_SCOPE = "files of the run directory, loaded as data; whether the job used these files is not known"


def judge(asked: Asked) -> Outcome:
    """Measure and judge what the rule's metric names."""
    place = sample_root(asked.material)
    if asked.material.folder is None or place is None:
        raise ExperimentError("there is no run directory")
    view = asked.view({"ids": _ids, "special": _special, "round_trip": _round_trip})
    settings = {"folder": str(asked.material.folder.resolve()), "samples": str(place[0]), "named": place[1]}
    found = asked.measure(settings)["tokenizers"]
    if not found:
        raise ExperimentError("no folder holds a tokenizer.json, vocab.json or vocab.txt")
    metric = asked.rule.metric
    telling = [
        one
        for one in found
        if (metric != "ids" or one["rows"]) and (metric != "special" or any(one["special"].values()))
    ]
    outcomes = [view(asked, one) for one in telling or found]
    return min(outcomes, key=lambda outcome: _ORDER.index(outcome.verdict))


def _ids(_asked: Asked, one: Found) -> Outcome:
    """Does every id have a row in the embedding?"""
    rows = one["rows"]
    if not rows:
        raise ExperimentError(
            "neither weights nor config.json beside the tokenizer say how many rows the embedding has"
        )
    details = (
        ("folder", one["folder"]),
        ("rows of the embedding", f"{rows:,} ({one['rows_from']})"),
        ("highest id of the tokenizer", f"{one['highest']:,}"),
        ("highest id in the samples", "none" if one["samples_highest"] is None else f"{one['samples_highest']:,}"),
    )
    if one["highest"] >= rows:
        said = f"The tokenizer's ids reach {one['highest']:,}, the embedding has {rows:,} rows"
        return Outcome("confirmed", f"{said}; outside are {together(one['outside'])}.", _SCOPE, details)
    if one["samples_highest"] is not None and one["samples_highest"] >= rows:
        said = f"The samples hold id {one['samples_highest']:,}, the embedding has {rows:,} rows"
        return Outcome("confirmed", f"{said}; the tokenizer's own ids fit.", _SCOPE, details)
    return Outcome(
        "refuted",
        f"Every id (up to {one['highest']:,}) has one of the {rows:,} rows of the embedding.",
        _SCOPE,
        details,
    )


def _special(_asked: Asked, one: Found) -> Outcome:
    """Do the files agree on the end of sequence and padding?"""
    said = one["special"]
    details = tuple(
        (f"{role} in {file}", ", ".join("not in the vocabulary" if number < 0 else str(number) for number in ids))
        for role, files in said.items()
        for file, ids in files.items()
    )
    if not any(said.values()):
        raise ExperimentError("no file names a special token")
    if not said["eos"]:
        return Outcome("confirmed", "No file names an end-of-sequence token.", _SCOPE, details)
    for role in ("eos", "pad"):
        unknown = [file for file, ids in said[role].items() if ids == [-1]]
        if unknown:
            words = f"{unknown[0]} names a {role} token that the tokenizer does not have"
            return Outcome("confirmed", f"{words}.", _SCOPE, details)
    clash = _clash(said["eos"])
    if clash:
        return Outcome("confirmed", f"The files do not agree on the end of sequence: {clash}.", _SCOPE, details)
    clash = _clash(said["pad"])
    if clash:
        return Outcome("inconclusive", f"The files do not agree on padding: {clash}.", _SCOPE, details)
    ends, pads = (set().union(*map(set, said[role].values())) for role in ("eos", "pad"))
    if ends & pads:
        words = "Padding is the end of sequence: where a loss leaves padding out, it leaves out the end as well"
        return Outcome("inconclusive", f"{words}.", _SCOPE, details)
    return Outcome("refuted", "The files agree on the end of sequence, and the tokenizer has it.", _SCOPE, details)


def _clash(files: Found) -> str:
    """Return two files that give a role ids with nothing in common, in words."""
    said = list(files.items())
    for place, (file, ids) in enumerate(said):
        for other, others in said[place + 1 :]:
            if not set(ids) & set(others):
                return f"{file} says {', '.join(map(str, ids))}, {other} says {', '.join(map(str, others))}"
    return ""


def _round_trip(_asked: Asked, one: Found) -> Outcome:
    """Does text come back, do the samples' ids come from here, does the template's markup exist?"""
    template = one["template"]
    details = (
        ("folder", one["folder"]),
        ("size of the vocabulary", f"{one['size']:,}"),
        ("rows of the embedding", f"{one['rows']:,} ({one['rows_from']})" if one["rows"] else "not known"),
        ("lines that come back", f"{one['lossless']} of {one['lines']}"),
        ("the run's texts that come back", f"{one['own_lossless']} of {one['own']}"),
        ("unknown pieces in the run's texts", f"{one['own_unknown']} of {one['own_pieces']}"),
        ("samples whose ids this tokenizer gives", f"{one['pairs_equal']} of {one['pairs']}"),
        ("chat template", "present" if template["present"] else "none"),
        *(("line that does not come back", line) for line in one["lost"][:2]),
    )
    if one["pairs"] and one["pairs_equal"] * 2 < one["pairs"]:
        said = (
            f"{one['pairs'] - one['pairs_equal']} of {one['pairs']} samples have ids that this tokenizer does not give"
        )
        return Outcome("confirmed", f"{said} for their text: they were made with another one.", _SCOPE, details)
    if template["broken"]:
        said = f"The chat template uses {together(template['broken'])}, which the tokenizer breaks into pieces"
        return Outcome("confirmed", f"{said}.", _SCOPE, details)
    if one["own_pieces"] and one["own_unknown"] > UNKNOWN * one["own_pieces"]:
        share = one["own_unknown"] / one["own_pieces"]
        said = f"{share:.1%} of the pieces of the run's own text are unknown to the tokenizer"
        return Outcome("confirmed", f"{said}: its vocabulary does not fit the text.", _SCOPE, details)
    if one["rows"] and one["highest"] >= one["rows"]:
        said = (
            f"The tokenizer has ids up to {one['highest']:,}, the model {one['rows']:,} rows: they are not of one model"
        )
        return Outcome("confirmed", f"{said}.", _SCOPE, details)
    if one["rows"] and one["size"] < SPARE * one["rows"]:
        said = f"The tokenizer uses {one['size']:,} of {one['rows']:,} rows of the embedding: it may be another model's"
        return Outcome("inconclusive", f"{said}.", _SCOPE, details)
    lossless = one["lossless"] == one["lines"] and one["own_lossless"] == one["own"]
    if lossless and one["rows"]:
        said = f"All {one['lines'] + one['own']} texts come back unchanged and every id has its row"
        return Outcome("refuted", f"{said}.", _SCOPE, details)
    said = f"{one['lossless']} of {one['lines']} lines come back"
    why = "which may be by design" if not lossless else "and the rows of the embedding are not known"
    return Outcome("inconclusive", f"{said}, {why}.", _SCOPE, details)


_ORDER = ("confirmed", "inconclusive", "refuted")
CHECK = Check(judge, read_tokenizers)
