"""The child process that turns Vega-Lite specifications into SVG.

It reads one JSON line `[spec, ...]` at a time and answers with one line `[{"svg": ...} or {"error": ...}, ...]`.
A child, because the engine takes most of a second to start and holds the interpreter lock while it does.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from typing import Any

from rca.report.chart_specs.curves import Line, Panel, curves_spec


def _rehearsal() -> dict[str, Any]:
    """A chart with all that the real ones have: drawing it compiles the engine and halves the time of the next."""
    rising = [(float(step), math.nan if step > 30 else 1.0 + step**3) for step in range(40)]
    panels = [Panel("a", (Line("b", rising), Line("c", rising))), Panel("d", (Line("e", rising),))]
    return curves_spec(panels, x_title="step", failure=30, evidence=[20])


def main() -> None:
    """Start the engine, then answer until standard input ends."""
    import vl_convert

    vl_convert.vegalite_to_svg(_rehearsal())
    for line in sys.stdin:
        answers = [_draw(vl_convert.vegalite_to_svg, spec) for spec in json.loads(line)]
        sys.stdout.write(json.dumps(answers) + "\n")
        sys.stdout.flush()


def _draw(to_svg: Callable[[dict[str, Any]], str], spec: dict[str, Any]) -> dict[str, str]:
    try:
        return {"svg": to_svg(spec)}
    except ValueError as error:
        return {"error": str(error)[:300]}
