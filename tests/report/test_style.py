"""The style sheet: contrast of every text colour in both themes, and nothing that needs the network."""

from __future__ import annotations

import re

import pytest

from rca.report.html import TEMPLATES

STYLE = (TEMPLATES / "style.css").read_text(encoding="utf-8")


def tokens() -> dict[str, tuple[str, str]]:
    """Colour variables as (light, dark)."""
    return {
        name: (light, dark)
        for name, light, dark in re.findall(r"--([\w-]+):\s*light-dark\((#[0-9a-f]{6}),\s*(#[0-9a-f]{6})\)", STYLE)
    }


def luminance(colour: str) -> float:
    channels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize(
    ("text", "grounds"),
    [
        ("text", ("page", "card", "sunk", "hit", "red-soft")),
        ("muted", ("page", "card", "sunk", "red-soft", "hit")),
        ("accent", ("page", "card", "sunk", "accent-soft")),
        ("red", ("page", "card", "red-soft")),
        ("amber", ("page", "card", "amber-soft")),
        ("green", ("card", "green-soft")),
    ],
)
def test_text_contrast(text: str, grounds: tuple[str, ...], theme: int) -> None:
    colours = tokens()
    for ground in grounds:
        assert contrast(colours[text][theme], colours[ground][theme]) >= 4.5, (text, ground)


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("line", ["c1", "c2", "c3", "c4", "c5", "c6", "bar"])
def test_lines_of_charts_stand_out(line: str, theme: int) -> None:
    assert contrast(tokens()[line][theme], tokens()["card"][theme]) >= 3


def test_light_values_are_the_fallback() -> None:
    fallback = dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", STYLE.split("@supports", maxsplit=1)[0]))
    assert {name: light for name, (light, _) in tokens().items()} == fallback


def test_nothing_is_loaded() -> None:
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    assert "@font-face" not in STYLE


def test_motion_print_and_focus_are_taken_care_of() -> None:
    for part in (
        "prefers-reduced-motion",
        "@media print",
        "details::details-content",
        ":focus-visible",
        "max-width: 44rem",
    ):
        assert part in STYLE
