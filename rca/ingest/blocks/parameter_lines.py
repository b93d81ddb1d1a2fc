"""Lines that describe the parameters of a model, one each: name, shape, mean, standard deviation, norm."""

from __future__ import annotations

import re

from rca.events import EventBuilder
from rca.ingest.logs.document import Document
from rca.ingest.settings.described import PARAMETER, cell, is_parameter, statistic
from rca.ingest.training_metrics.pairs import NUMBER

_NAME = re.compile(
    rf"[^\w]{{0,6}}(?:(?:param(?:eter)?|layer|(?P<of>grad(?:ient)?s?(?: norm)? (?:of|for))) |"
    rf"(?:name|layer|param)[:=] ?)?['\"]?(?P<name>{PARAMETER.pattern})['\"]?[:,|\s]",
    re.I,
)
_STATISTIC = re.compile(
    rf"(?<![\w.])(?P<key>[A-Za-z_][\w ]{{0,14}}?)\s{{0,4}}[:= ]\s{{0,4}}(?P<value>{NUMBER}|True|False)(?![\w.])"
)
_SHAPE = re.compile(
    r"(?<![\w.+-])(?:shape|size)?[=: ]{0,3}[\[(]{0,2}(?P<shape>\d{1,9}(?:(?:x|, ?)\d{1,9}){0,5})[\])]{0,2}(?=[ |,]|$)"
)
_BARS = re.compile(
    r"[|‖]{1,2}(?P<of>w|weight|p|param|theta|g|grad|dw|dl/dw)[|‖]{1,2}(?:[_ ](?:mean|avg|norm|l2))?(?=\s?[:= ])", re.I
)
"""Norms in the notation of mathematics: `|w|=7.1`, `||grad||: 3e-11`."""
_SIZE_OF_GRADIENT = re.compile(
    r"(?:\b(?:has )?(?:abs(?:olute)? |mean |avg |average )*grad(?:ient)?s?(?:[ _](?:norm|l2|abs|mean|avg|magnitude))*"
    r"(?: of| is)?)(?=\s?[:= ]\s?[\d.])",
    re.I,
)
"""What one line says of a gradient: `has gradient mean of 3e-5`, `Mean Gradient: 3e-5`, `grad norm 3e-5`."""
_GRADIENTS = frozenset({"g", "grad", "dw", "dl/dw"})
_MOST = 400
_WIDE = frozenset({"std", "norm", "grad_norm", "grad_absmax", "absmax", "trainable"})


def _in_words(bars: re.Match[str]) -> str:
    return "grad_norm" if bars["of"].lower() in _GRADIENTS else "norm"


class ParameterLinesParser:
    """Adds `model.parameter` for each line; a line needs the name of a parameter and a statistic with its word."""

    name = "parameter lines"
    triggers: tuple[str, ...] = (
        r"(?i)\w\.\w[\w.]*\b.{1,80}\b(?:std|stddev|norm|absmax|abs_max|grad_norm|requires_grad|grad_max)\b ?[:= ]",
        r"(?i)\w\.(?:weight|bias|kernel)\w*\b.{1,60}\bgrad(?:ient)?s?\b.{0,24}[:= ] ?\d",
        r"(?i)^\W*grad(?:ient)?s?(?: norm)? (?:of|for) \w[\w.]*\.\w+.{0,12}[:= ] ?\d",
        r"(?i)[|‖](?:w|weight|p|param|theta|g|grad|dw|dl/dw)[|‖]{1,2} ?[:= ]",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read one line."""
        text = document.prefix(line).message[:_MOST]
        head = _NAME.match(text)
        if head is None or not is_parameter(head["name"]):
            return line
        rest = _SIZE_OF_GRADIENT.sub("grad_norm", _BARS.sub(_in_words, text[head.end("name") :]))
        if head["of"]:
            rest = re.sub(r"^['\"]?\s*[:=]", " grad_norm:", rest)
        attrs: dict[str, object] = {"name": head["name"][:200]}
        for found in _STATISTIC.finditer(rest):
            name = statistic(found["key"])
            if name is not None and name not in attrs:
                attrs[name] = cell(name, found["value"])
        if not _WIDE.intersection(attrs):
            return line
        shape = _SHAPE.search(rest[:80])
        if shape is not None and "shape" not in attrs:
            attrs["shape"] = shape["shape"].replace(", ", "x").replace(",", "x")
        prefix = document.prefix(line)
        out.add(
            kind="artifact",
            name="model.parameter",
            line=line,
            offset=document.offset(line),
            time=document.time(line),
            step=document.step(line),
            rank=prefix.rank,
            attrs={key: value for key, value in attrs.items() if value is not None},
        )
        return line + 1
