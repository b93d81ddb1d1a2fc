"""An HTML page as a test sees it: elements with attributes and text, parsed by the standard library."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple

VOID = frozenset({"meta", "link", "br", "hr", "img", "input", "use", "path", "circle", "rect", "line"})


class Element(NamedTuple):
    """One start tag with what stands inside it."""

    tag: str
    attributes: dict[str, str]
    text: list[str]
    above: tuple[str, ...]


class Page(HTMLParser):
    """All elements of a page in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()
        assert not self._open, f"never closed: {[element.tag for element in self._open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"attribute twice in <{tag}>: {names}"
        element = Element(tag, {k: v or "" for k, v in attrs}, [], tuple(e.tag for e in self._open))
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text.append(data)

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Elements of a tag with these attribute values."""
        return [
            element
            for element in self.elements
            if element.tag == tag and all(element.attributes.get(k) == v for k, v in attributes.items())
        ]

    def text_of(self, tag: str, **attributes: str) -> str:
        """The text of the only such element, in one line."""
        (element,) = self.all(tag, **attributes)
        return " ".join("".join(element.text).split())

    def ids(self) -> list[str]:
        """Every id on the page."""
        return [element.attributes["id"] for element in self.elements if "id" in element.attributes]
