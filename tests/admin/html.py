"""A page as a browser's parser sees it: its elements, and the text between them."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

__all__ = ["Page", "parse"]

CELLS = ("td", "th")


class Page(HTMLParser):
    """``elements`` are tags with their attributes, in order; ``cells`` the texts in tables; ``text`` all of it."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.pieces: list[str] = []
        self.cells: list[str] = []
        self._in_cell = False
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag in CELLS:
            self.cells.append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in CELLS and self._in_cell:
            self.cells[-1] = " ".join(self.cells[-1].split())
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)
        if self._in_cell:
            self.cells[-1] += data

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def shape(self) -> list[tuple[str, list[str]]]:
        """The elements and the names of their attributes: what data must not change."""
        return [(tag, sorted(attributes)) for tag, attributes in self.elements]

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def links(self) -> list[str]:
        return [attributes.get("href", "") for attributes in self.all("a")]

    def fields(self) -> list[tuple[str, str]]:
        """Name and value of every input and text area."""
        boxes = [*self.all("input"), *self.all("textarea"), *self.all("button")]
        return [(box["name"], box.get("value", "")) for box in boxes if box.get("name")]

    def messages(self) -> list[str]:
        """The texts of the message list."""
        return Messages(self.source).texts


class Messages(HTMLParser):
    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self._inside = False
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "ul":
            self._inside = ("class", "messagelist") in attrs
        elif tag == "li" and self._inside:
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "ul":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside and self.texts:
            self.texts[-1] += data.strip()


def parse(response: Any) -> Page:
    """The page of a response that has one."""
    assert response.status_code == 200, (response.status_code, response.headers)
    return Page(response.content.decode())
