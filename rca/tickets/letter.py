"""A diagnosis as a letter: summary, page, and the mark by which it is found again."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import replace

from rca.diagnosis import Diagnosis
from rca.report.html import HtmlReport
from rca.report.jira import FIELD, wiki
from rca.report.json_report import JsonReport
from rca.report.markdown import LIMIT, markdown
from rca.report.scripts import file_stem
from rca.report.words import say
from rca.tickets.interface import Attachment, Letter

_FOOTER = 400
"""Characters kept free for the line with the mark."""


def letter(diagnosis: Diagnosis) -> Letter:
    """Return what is sent of a diagnosis."""
    name = file_stem(diagnosis)
    page = Attachment(f"{name}.html", HtmlReport().render(diagnosis).encode(), "text/html")
    return Letter(
        mark="rca-" + hashlib.sha256(diagnosis.run.name.encode()).hexdigest()[:12],
        subject=f"rca: {diagnosis.verdict.sentence or diagnosis.verdict.title} ({diagnosis.run.name})",
        markdown=markdown(diagnosis, limit=LIMIT - _FOOTER),
        wiki=wiki(diagnosis, limit=FIELD - _FOOTER),
        page=page,
        page_label=say("text.whole_report"),
        data=JsonReport().render(diagnosis),
    )


def fitted(page: Attachment, limit: int | None) -> Attachment | None:
    """Return the attachment, zipped where it is larger than `limit` bytes, or None where that is too large as well."""
    if limit is None or len(page.data) <= limit:
        return page
    packed = zipped(page)
    return packed if len(packed.data) <= limit else None


def zipped(page: Attachment) -> Attachment:
    """Return the attachment as a zip archive with one file in it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr(zipfile.ZipInfo(page.name), page.data, compress_type=zipfile.ZIP_DEFLATED)
    return replace(page, name=page.name + ".zip", data=packed.getvalue(), media_type="application/zip")


def size(attachment: Attachment) -> str:
    """Return the size of an attachment for a reader."""
    return f"{len(attachment.data) / 1000:,.0f} kB"
