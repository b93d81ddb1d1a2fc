"""The diagnosis as JSON, its schema, and the way back from a saved report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rca.diagnosis import SCHEMA_VERSION, Diagnosis
from rca.errors import UsageError
from rca.report.migrations import migrated
from rca.report.words import catalogue, languages

DATA_ID = "rca-report"
"""Id of the element of the HTML report that holds the JSON."""

_NUMBER = r'(?:[-+.\deE]+|"-?Infinity"|"NaN")'
_SHORT_ROW = re.compile(rf"\[\n\s+({_NUMBER}(?:,\n\s+{_NUMBER})*)\n\s+\]")
"""A list of numbers as `json.dumps(indent=2)` prints it; inside a JSON string there is no raw line end."""
_MARKER = f'<script type="application/json" id="{DATA_ID}">'
_MAX_BYTES = 256 * 1024 * 1024


class JsonReport:
    """One JSON document, the machine-readable form that all others can be made from."""

    name = "json"
    suffix = ".json"

    def render(self, diagnosis: Diagnosis) -> str:
        """The diagnosis, two spaces deep, short rows of numbers on one line."""
        text = json.dumps(json.loads(diagnosis.model_dump_json()), indent=2, ensure_ascii=False, allow_nan=False)
        return _SHORT_ROW.sub(lambda row: "[" + " ".join(row[1].split()) + "]", text) + "\n"


def schema() -> dict[str, Any]:
    """JSON Schema of a diagnosis, committed as docs/diagnosis.schema.json."""
    document = Diagnosis.model_json_schema(mode="serialization")
    document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    document["title"] = f"rca diagnosis {SCHEMA_VERSION}"
    return document


def schema_text() -> str:
    """The schema as the committed file holds it."""
    return json.dumps(schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def embedded(diagnosis: Diagnosis) -> str:
    """The JSON for inside a `<script>` element: no character that could end it."""
    document = json.loads(diagnosis.model_dump_json())
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def load_saved(path: Path) -> Diagnosis:
    """Read the diagnosis back from a saved `.json` or `.html` report.

    Reports of older schema versions are read as the present one. Raises UsageError when the file cannot be read, is no
    report, or is of a newer version.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path}: larger than 256 MiB, so it is no report of rca; name the .json or .html report")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"{path}: cannot be read as a report: {reason}") from error
    start = text.find(_MARKER)
    if start >= 0:
        start += len(_MARKER)
        text = text[start : text.find("</script>", start)]
    elif text.lstrip()[:1] != "{":
        raise UsageError(f"{path}: holds no diagnosis; name a .json or .html report written by `rca analyze`")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: the diagnosis inside is damaged ({error}); run `rca analyze` again") from error
    try:
        document = migrated(document if isinstance(document, dict) else {})
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error
    try:
        return Diagnosis.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{path}: not a valid diagnosis: {place}: {first['msg']}") from error


def shortened(diagnosis: Diagnosis) -> str:
    """The notice of a page that was cut to stay small, in whatever language; nothing where all is there."""
    starts = tuple(catalogue(language)["trim.notice"].partition("{")[0] for language in languages())
    return next((warning for warning in diagnosis.warnings[:1] if warning.startswith(starts)), "")
