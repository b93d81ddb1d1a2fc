"""The page for `unknown` in every format: odd lines, likeness, what to record, and the draft of a rule."""

from __future__ import annotations

from rca.leads import Unexplained
from rca.report.html import HtmlReport
from rca.report.markdown import MarkdownReport
from rca.report.text import TextReport

from .page import Page
from .samples import lr_too_high, unknown

PAGE = Page(HtmlReport().render(unknown()))


def text_of(tag: str, **attributes: str) -> str:
    found = PAGE.all(tag, **attributes)
    assert found, attributes
    return "".join(found[0].text)


def test_the_page_shows_the_odd_lines_first_and_says_why() -> None:
    ids = [
        element.attributes["id"] for element in PAGE.elements if element.tag == "section" and "id" in element.attributes
    ]
    assert ids[:4] == ["odd", "decide", "draft", "candidates"]
    shown = text_of("li", id="odd-1f0c2a9b3d")
    assert "<b>giving up</b>" in shown
    for part in ("rank_3.log:1182", "ranks 3, 5", "tells of trouble", "said once", "2 lines like it", "less +1182"):
        assert part in shown
    assert "1 log not looked at" in text_of("section", id="odd")


def test_likeness_is_called_no_probability_and_leads_to_its_line() -> None:
    section = text_of("section", id="odd")
    assert "it is no probability and no evidence" in section
    assert "similarity 0.23" in section
    assert "words in common: reset, peer" in section
    assert "gloo.peer_reset" in section
    assert PAGE.all("a", href="#odd-1f0c2a9b3d")


def test_what_to_record_and_the_draft_can_be_copied() -> None:
    assert "dmesg -T > dmesg.txt" in text_of("code", id="record-1")
    assert text_of("code", id="draft-command").startswith("sed -n 1182p rank_3.log")
    assert "lease \\d+ was not renewed" in text_of("code", id="draft-rule")
    assert "fires:" in text_of("code", id="draft-cases")
    assert "rank_3.log:1182" in text_of("section", id="draft")


def test_the_terminal_shows_the_same_in_short() -> None:
    lines = TextReport().render(unknown()).splitlines()
    assert any(line.startswith("   = odd: rank_3.log:1182: ") for line in lines)
    assert any(line.startswith("   = resembles: distributed.network in words, 0.23, which is no") for line in lines)
    assert "          dmesg -T > dmesg.txt" in lines
    assert "          sed -n 1182p rank_3.log | rca rules new team.lease --rules team -" in lines


def test_the_ticket_shows_it_too() -> None:
    text = MarkdownReport().render(unknown())
    assert "### Lines that stand out" in text
    assert "`rank_3.log:1182`" in text
    assert "Record it: `dmesg -T > dmesg.txt`" in text
    assert "```sh\nsed -n 1182p rank_3.log" in text


def test_nothing_odd_is_said_so() -> None:
    bare = unknown().model_copy(update={"unexplained": Unexplained()})
    page = Page(HtmlReport().render(bare))
    assert "No line stands out" in "".join(page.all("section", id="odd")[0].text)
    assert not page.all("section", id="draft")
    assert "No line stands out" in MarkdownReport().render(bare)


def test_a_weak_suspicion_shows_the_odd_lines_below_its_reasons() -> None:
    weak = lr_too_high().model_copy(update={"unexplained": unknown().unexplained})
    ids = [
        element.attributes["id"]
        for element in Page(HtmlReport().render(weak)).all("section")
        if "id" in element.attributes
    ]
    assert ids.index("odd") == ids.index("why") + 1
    assert not Page(HtmlReport().render(lr_too_high())).all("section", id="odd")
