"""The report in Jira's wiki markup: the Markdown report, converted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rca.diagnosis import Diagnosis
from rca.report.markdown import LIMIT, MARK, markdown

if TYPE_CHECKING:
    from mistletoe.contrib.jira_renderer import JiraRenderer

FIELD = 32_767
"""Characters that Jira takes in a text field, by the message with which its API refuses more."""
_DETAILS = re.compile(r"<details>\n<summary>(.*?)</summary>\n(.*?)\n</details>", re.S)
_BRACE = "{\u200b"
"""A brace that opens no macro: the character after it has no width."""


class JiraReport:
    """Wiki markup for a comment or description in Jira; log text stands in code and can neither link nor mention."""

    name = "jira"
    suffix = ".jira.txt"

    def render(self, diagnosis: Diagnosis) -> str:
        """The whole report, least important parts dropped until it fits a text field."""
        return wiki(diagnosis, limit=FIELD)


def wiki(diagnosis: Diagnosis, *, limit: int) -> str:
    """Return the report with at most `limit` characters."""
    room = min(LIMIT, limit)
    while True:
        text = converted(markdown(diagnosis, limit=room))
        if len(text) <= limit or room < 1000:
            return text[:limit]
        room -= max(500, len(text) - limit)


def converted(text: str) -> str:
    """Return our Markdown as wiki markup; what folds becomes a macro that folds."""
    parts: list[str] = []
    at = 0
    for found in _DETAILS.finditer(text := text.removeprefix(MARK)):
        parts.append(_converted(text[at : found.start()]))
        parts.append(f"{{expand:{found[1]}}}\n{_converted(found[2])}\n{{expand}}\n")
        at = found.end()
    parts.append(_converted(text[at:]))
    return "\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def _converted(text: str) -> str:
    import mistletoe

    return str(mistletoe.markdown(text, _renderer()))


def _renderer() -> type[JiraRenderer]:
    from mistletoe.contrib.jira_renderer import JiraRenderer

    class Renderer(JiraRenderer):
        """Jira's markup with code that no text inside can end."""

        def render_block_code(self, token: Any) -> str:
            language = f":{token.language}" if token.language else ""
            return f"{{code{language}}}\n{token.children[0].content.replace('{', _BRACE)}{{code}}\n\n"

        def render_inline_code(self, token: Any) -> str:
            inner: str = self.render_inner(token)  # type: ignore[no-untyped-call]  # the library has no types
            return f"{{{{{inner.replace('}}', '} }')}}}}}"

        @staticmethod
        def render_html_block(token: Any) -> str:  # noqa: ARG004 - what is HTML in our Markdown is only a mark
            return ""

    return Renderer
