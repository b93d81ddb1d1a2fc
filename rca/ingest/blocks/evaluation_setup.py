"""What an evaluation says about itself: the transforms of a data set, and the summary of detection scores."""

from __future__ import annotations

import re

from rca.events import EventBuilder
from rca.ingest.blocks.lines import place_of
from rca.ingest.logs.document import Document
from rca.ingest.settings.reprs import call_end

_COMPOSE = re.compile(r"\b(?:Compose|Sequential|AugmentationSequential|ImageAugmentation)\(")
_STEP = re.compile(r"(?<![\w.])(?:[A-Za-z_]\w*\.){0,6}(?P<name>[A-Z]\w{2,60})(?=\(| object at )")
_SPLIT = re.compile(
    r"(?<![a-z])(?P<train>train(?:ing)?)(?![a-z])|(?<![a-z])(?P<held>val(?:id(?:ation)?)?|test(?:ing)?|eval(?:uation)?|dev)(?![a-z])",
    re.I,
)
_ROOT = re.compile(
    r"(?:Root location|root|ann_file|img_folder|data_root|path)\s{0,4}[:=]\s{0,4}(?P<path>\S{1,200})", re.I
)
_BEFORE = 8
"""Lines above the transforms on which the printed data set names its place."""
_LINES = 60
_CHARS = 16_384
_COCO = re.compile(
    r"Average Precision\s{1,4}\(AP\) @\[ IoU=(?P<iou>[\d.]{4}(?::[\d.]{4})?)\s{0,8}\| area=\s{0,4}all \| "
    r"maxDets=\s{0,4}\d{2,4} \]"
    r" = (?P<value>-?\d\.\d{1,6})"
)


def split_named(text: str) -> str | None:
    """Return `train` or `held out` where a text names one of them and not both."""
    found = {kind for item in _SPLIT.finditer(text[:400]) for kind in ("train", "held") if item[kind]}
    return {"train": "train", "held": "held out"}[found.pop()] if len(found) == 1 else None


class TransformsParser:
    """Adds one `data.transforms` for each printed composition of transforms."""

    name = "transforms"
    triggers: tuple[str, ...] = (r"\b(?:Compose|AugmentationSequential|ImageAugmentation)\(",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read up to the bracket that closes the composition."""
        message = document.prefix(line).message
        head = _COMPOSE.search(message)
        if head is None:
            return line
        text, last = message[head.end() - 1 :], line
        while (end := call_end(text, 0)) is None and last - line < _LINES and len(text) < _CHARS:
            if last >= len(document):
                break
            last += 1
            text += "\n" + document.prefix(last).message
        names = [item["name"] for item in _STEP.finditer(text[: end or _CHARS]) if item["name"] != "Compose"]
        if not names:
            return line
        before = [document.prefix(number).message for number in range(max(1, line - _BEFORE), line)]
        root = next((found["path"] for above in reversed(before) if (found := _ROOT.search(above))), None)
        out.add(
            kind="artifact",
            name="data.transforms",
            line=line,
            offset=document.offset(line),
            attrs={
                "names": names[:40],
                "for": split_named(message[: head.start()]),
                "root": root,
                "split": None if root is None else split_named(root),
            },
        )
        # The line may tell other settings too, so it stays open to other parsers.
        return line if last == line else last + 1


class CocoSummaryParser:
    """Adds `eval_map` and `eval_map50` from the summary that pycocotools prints."""

    name = "COCO summary"
    triggers: tuple[str, ...] = (r"Average Precision +\(AP\) @\[ IoU=",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read one line of the summary."""
        found = _COCO.search(document.prefix(line).message)
        name = {"0.50:0.95": "eval_map", "0.50": "eval_map50"}.get(found["iou"]) if found else None
        if found is None or name is None:
            return line + 1
        out.add(
            kind="metric",
            name=name,
            **place_of(document, line),
            step=document.step(line),
            phase="eval",
            value=float(found["value"]),
        )
        return line + 1
