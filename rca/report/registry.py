"""The formats by the name given to `--format`."""

from __future__ import annotations

from rca.report.html import HtmlReport
from rca.report.interface import Renderer
from rca.report.jira import JiraReport
from rca.report.json_report import JsonReport
from rca.report.junit import JunitReport
from rca.report.markdown import MarkdownReport
from rca.report.text import TextReport

FORMATS: dict[str, Renderer] = {
    renderer.name: renderer
    for renderer in (HtmlReport(), JsonReport(), MarkdownReport(), JiraReport(), JunitReport(), TextReport())
}
