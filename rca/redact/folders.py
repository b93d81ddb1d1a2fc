"""Folders of paths and addresses, which name projects, teams and customers."""

from __future__ import annotations

from collections.abc import Iterator

import re2 as re

from rca.redact.vocabulary import DOCUMENTATION, PUBLIC_PATHS

Span = tuple[int, int]

_WORD = r"[A-Za-z0-9._@+~<>=%\-]"
_PATH = re.compile(rf"(?:^|[\s\"'`=(:,\[{{>])((?:~?/{_WORD}+|~){{1}}(?:/{_WORD}+){{1,24}}/?)")
_WINDOWS = re.compile(r"\b([A-Za-z]:(?:\\{1,2}[A-Za-z0-9._@+~<>\-]+){2,24})")
_ADDRESS = re.compile(
    r"(?i)\b[a-z][a-z0-9+]{1,12}://(?:[^/\s@]{1,200}@)?([A-Za-z0-9.<>\-]{1,120}(?::\d+)?)((?:/[^\s\"'<>?#)]*)?)"
)
_STORES = ("s3", "gs", "az", "abfs", "abfss", "hdfs", "file", "wasbs", "oss", "cos", "r2", "dbfs")


def path_spans(text: str) -> Iterator[Span]:
    """Folders of absolute paths, without the file name and without what lies in an installed package."""
    if "/" in text:
        for match in _PATH.finditer(text):
            path = match.group(1)
            if path.startswith(PUBLIC_PATHS):
                continue
            folder = path.rstrip("/").rpartition("/")[0]
            for public in ("/site-packages", "/dist-packages"):
                if public in folder:
                    folder = folder[: folder.index(public)]
            if folder.count("/") >= 1:
                yield match.start(1), match.start(1) + len(folder)
    if ":\\" in text:
        for match in _WINDOWS.finditer(text):
            yield match.start(1), match.start(1) + match.group(1).rindex("\\")
    if "://" in text:
        for match in _ADDRESS.finditer(text):
            if not _is_documentation(match.group(1).lower()):
                scheme = match.group().partition("://")[0].lower()
                yield from _of_address(scheme, match.span(1), match.span(2), text)


def relative_span(text: str) -> Span | None:
    """The folders of a path relative to the run, where there are any."""
    return (0, text.rindex("/")) if "/" in text.strip("/") and not text.startswith("/") else None


def _is_documentation(host: str) -> bool:
    return host.startswith("docs.") or ".".join(host.rsplit(".", 2)[-2:]) in DOCUMENTATION


def _of_address(scheme: str, host: Span, path: Span, text: str) -> Iterator[Span]:
    """In a store the bucket is a folder as well."""
    end = path[0] + max(0, text[path[0] : path[1]].rstrip("/").rfind("/"))
    start = host[0] if scheme in _STORES else path[0] + 1
    if end > start:
        yield start, end
