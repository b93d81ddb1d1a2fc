"""The child process that turns Vega-Lite specifications into SVG.

It reads one JSON line `[spec, ...]` at a time and answers with one line `[{"svg": ...} or {"error": ...}, ...]`.
A child, because the engine takes most of a second to start and holds the interpreter lock while it does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

_FIRST: dict[str, Any] = {
    "data": {"values": [{"x": 0, "y": 1}]},
    "mark": "line",
    "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
}


def main() -> None:
    """Start the engine, then answer until standard input ends."""
    import vl_convert

    vl_convert.vegalite_to_svg(_FIRST)
    for line in sys.stdin:
        answers = [_draw(vl_convert.vegalite_to_svg, spec) for spec in json.loads(line)]
        sys.stdout.write(json.dumps(answers) + "\n")
        sys.stdout.flush()


def _draw(to_svg: Callable[[dict[str, Any]], str], spec: dict[str, Any]) -> dict[str, str]:
    try:
        return {"svg": to_svg(spec)}
    except ValueError as error:
        return {"error": str(error)[:300]}
