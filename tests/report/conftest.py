"""Samples of diagnoses and their pages, rendered once."""

from __future__ import annotations

import pytest

from rca.diagnosis import Diagnosis
from rca.report.html import HtmlReport

from .page import Page
from .samples import every

SAMPLES = every()


@pytest.fixture(params=sorted(SAMPLES))
def sample(request: pytest.FixtureRequest) -> Diagnosis:
    """Each sample diagnosis in turn."""
    return SAMPLES[request.param]


@pytest.fixture(scope="session")
def pages() -> dict[str, str]:
    """The HTML of every sample by its name."""
    return {name: HtmlReport().render(diagnosis) for name, diagnosis in SAMPLES.items()}


@pytest.fixture(params=sorted(SAMPLES))
def html(request: pytest.FixtureRequest, pages: dict[str, str]) -> str:
    """Each sample page in turn."""
    return pages[request.param]


@pytest.fixture
def page(html: str) -> Page:
    """Each sample page, parsed."""
    return Page(html)
