"""How a split was evaluated: random transforms where there should be none, training data that scores below held-out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rca.events import Event, EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "eval.augmented": "the transforms of a data set that is evaluated contain random augmentation",
    "eval.train_split_score": "score on training data in an evaluation of its own",
    "eval.held_out_score": "score of the same kind on held-out data",
    "eval.train_split_worse": "training data scores less than seven tenths of held-out data, both evaluated",
}

_AUGMENTATION = re.compile(
    r"^(?:Random(?!Resize$|Sampler|Apply$)\w+|ColorJitter|RandAug\w*|TrivialAugment\w*|AutoAugment\w*|AugMix|MixUp|"
    r"Mixup|CutMix|CutOut|Cutout|CoarseDropout|Mosaic|SpecAugment|TimeMasking|FrequencyMasking|ShiftScaleRotate|HorizontalFlip|"
    r"VerticalFlip|PhotoMetricDistortion\w*|LargeScaleJitter|ElasticTransform|GridDistortion|RandomGamma|MotionBlur)$"
)
"""Random training transforms of torchvision, timm, DETR, albumentations, mmcv and torchaudio. DETR calls its plain
resize `RandomResize` also where it has one size to choose from."""
_HELD_OUT_TRANSFORMS = re.compile(
    r"(?<![a-z])(?:val(?:id(?:ation)?)?|test|eval)(?:[_./]\w{1,30}){0,3}?[_./]?(?:transforms?|pipeline|augment\w*|augs?)(?![a-z])",
    re.I,
)
_REFERENCE = re.compile(r"\$\{\.{0,4}([A-Za-z_][\w.]{1,100})\}")
"""How OmegaConf lets one setting stand for another."""
_NAME = re.compile(r"[A-Za-z]\w{0,30}(?:transforms?|pipeline|augment\w*|augs?)")
_WORD = re.compile(r"[A-Za-z]\w{2,60}")
_SPLIT_KEYS = ("eval_split", "split", "data_split", "dataset_split", "subset", "eval_subset", "gen_subset", "eval_on")
_SCORES = (
    "eval_map",
    "eval_map50",
    "eval_accuracy",
    "eval_f1",
    "eval_auc",
    "eval_miou",
    "eval_dice",
    "map",
    "auc",
    "miou",
)
_TRAIN = re.compile(r"(?<![a-z])train(?:ing)?(?![a-z])", re.I)
_HELD_OUT = re.compile(r"(?<![a-z])(?:val(?:id(?:ation)?)?|test|dev|held[_-]?out)(?![a-z])", re.I)
WORSE = 0.7
"""A model fits what it was trained on at least as well as what it never saw; three tenths are beyond sampling noise."""


def augmented(events: EventTable) -> Iterator[Fact]:
    """Are random transforms applied where a model is evaluated?"""
    shown = events.named("data.transforms", kind="artifact")
    told: list[tuple[Event, list[str]]] = []
    for event in shown:
        names = event.attr("names")
        random = [str(name) for name in names if _AUGMENTATION.match(str(name))] if isinstance(names, list) else []
        if _evaluates(events, event):
            told.append((event, random))
    told += _configured(events)
    found = next(((event, random) for event, random in told if random), None)
    if not told:
        return
    event, random = found or (told[0][0], [])
    says = f"The data set that is evaluated goes through {', '.join(random[:4])}." if random else "No random transform."
    yield from emit("eval.augmented", bool(random), says, events=[event.event_id])


def _configured(events: EventTable) -> list[tuple[Event, list[str]]]:
    """Return settings of the transforms of a held-out split, with the random ones among them."""
    found: list[tuple[Event, list[str]]] = []
    for setting in events.of_kind("config"):
        key = str(setting.attr("key") or setting.name)
        if _HELD_OUT_TRANSFORMS.search(key[:200]):
            words = _WORD.findall(f"{key} {setting.text}"[:2000]) + _referred(events, setting.text)
            found.append((setting, [word for word in words if _AUGMENTATION.match(word)]))
    return found


def _referred(events: EventTable, text: str) -> list[str]:
    """Return the words of the settings that a setting points to: `${data.train_transforms}`, or the name of a key."""
    named = _REFERENCE.findall(text[:400]) or ([text.strip()] if _NAME.fullmatch(text.strip()) else [])
    found: list[str] = []
    for name in named:
        for other in events.of_kind("config"):
            key = str(other.attr("key") or other.name)
            if re.search(rf"(?:^|\.){re.escape(name.strip('.'))}(?:$|[.\[])", key[:200]):
                found += _WORD.findall(f"{key} {other.text}"[:2000])
    return found


def _evaluates(events: EventTable, event: Event) -> bool:
    """Say whether transforms belong to an evaluation: by their name, or by a source that only evaluates."""
    if event.attr("for") is not None:
        return str(event.attr("for")) == "held out"
    if event.attr("split") == "held out":
        return True
    switched = any(
        setting.source == event.source and setting.attr("value") is True
        for key in ("eval", "evaluate", "eval_only", "test_only", "do_eval_only")
        for setting in events.named(key, kind="config")
    )
    return switched and not any(
        events.get(int(series.event_id[0])).source == event.source for series in events.all_metrics("loss")
    )


class _Score(NamedTuple):
    source: str
    value: float
    event: int


def splits(events: EventTable) -> Iterator[Fact]:
    """Does training data score worse than held-out data when both are evaluated?"""
    by_source = {name: split for name in _sources(events) if (split := _split(events, name)) is not None}
    if set(by_source.values()) != {"train", "held out"}:
        return
    for metric in _SCORES:
        last: dict[str, _Score] = {}
        for series in events.all_metrics(metric):
            for value, event_id in zip(series.value, series.event_id, strict=True):
                event = events.get(int(event_id))
                split = by_source.get(event.source)
                if split is not None:
                    last[split] = _Score(event.source, float(value), event.event_id)
        if len(last) == 2 and last["held out"].value > 0:
            train, held = last["train"], last["held out"]
            says = f"The {metric} is {number(train.value)} on training data and {number(held.value)} on held-out data."
            seen = [train.event, held.event]
            yield from emit("eval.train_split_score", train.value, says, events=seen)
            yield from emit("eval.held_out_score", held.value, says, events=seen)
            yield from emit("eval.train_split_worse", train.value < WORSE * held.value, says, events=seen)
            return


def _sources(events: EventTable) -> list[str]:
    return sorted(
        {
            events.get(int(event)).source
            for metric in _SCORES
            for series in events.all_metrics(metric)
            for event in series.event_id
        }
    )


def _split(events: EventTable, source: str) -> str | None:
    """Return which split a source evaluates: a setting, the place of its data, or the name of the file says so."""
    told = [
        setting.text for key in _SPLIT_KEYS for setting in events.named(key, kind="config") if setting.source == source
    ]
    told += [
        str(event.attr("root"))
        for event in events.named("data.transforms", kind="artifact")
        if event.source == source and event.attr("root")
    ]
    for text in (*told, source.rsplit("/", 1)[-1]):
        train, held = _TRAIN.search(text), _HELD_OUT.search(text)
        if bool(train) != bool(held):
            return "train" if train else "held out"
    return None


FACTS: tuple[FactFunction, ...] = (augmented, splits)
