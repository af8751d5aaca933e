"""A page of HTML as a browser reads it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

EMPTY = {"meta", "input", "br", "path", "rect", "circle"}  # tags that are not closed, or close themselves


class Page(HTMLParser):
    """Tags, texts, scripts and the data of figures; tags that are not closed, or closed twice, are errors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words, self.scripts, self.figures = "", list[str](), list[dict[str, Any]]()
        self._open: list[str] = []
        self._inside = ""
        self.feed(text)
        self.close()
        assert self._open == [], "all tags are closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self._open.append(tag)
        self._inside = f"{tag} {dict(attrs).get('type') or ''}".strip()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script application/json":
            self.figures.append(json.loads(data))
        elif self._inside == "script":
            self.scripts.append(data)
        elif self._inside != "style":
            self.words += data

    @property
    def identifiers(self) -> list[str | None]:
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]

    @property
    def targets(self) -> list[str]:
        """Where links lead."""
        return [attributes["href"] or "" for tag, attributes in self.tags if tag == "a"]

    def count(self, tag: str) -> int:
        return sum(own == tag for own, _ in self.tags)
