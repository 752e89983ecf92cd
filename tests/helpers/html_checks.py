"""A check that an HTML page is well-formed and uses no other file."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_VOID = {"meta", "br", "hr", "img", "link", "input"}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice"
        for name, value in attrs:
            assert not name.startswith("on"), f"<{tag}> has a script in {name}"
            assert name not in ("src", "href", "action"), f"<{tag}> leads to {value}"
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        last = self.open.pop()
        assert last == tag, f"<{last}> is closed by </{tag}>"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)


def check_page(page: str) -> str:
    """Check that tags are balanced and that no script or other file is used; return the visible text."""
    tags = _Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    assert not {"script", "link", "iframe", "img", "object"} & set(tags.seen)
    assert not re.search(r"url\(|@import|https?://", page)
    assert not re.search(r"\b(nan|inf|None)\b", page), "a number that is none"
    return re.sub(r"\s+", " ", " ".join(tags.texts))
