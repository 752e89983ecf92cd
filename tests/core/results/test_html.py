"""Tables in HTML."""

from __future__ import annotations

from html.parser import HTMLParser

from tonari.core.results.html import table


class Cells(HTMLParser):
    """The texts of a table, by the tags of their cells."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag in ("th", "td"):
            self.cells.append((tag, ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        tag, text = self.cells[-1]
        self.cells[-1] = tag, text + data


def test_any_text_comes_back_and_every_tag_is_closed() -> None:
    texts = ["<b>", "a & b", '"quoted"', "</td>", "", "é\n"]
    page = Cells()
    page.feed(table([texts, ["x"] * 6], texts))
    page.close()
    assert page.open == []
    assert page.cells == [("th", text) for text in texts] + [("td", text) for text in texts] + [("td", "x")] * 6


def test_without_names_there_is_no_head() -> None:
    assert "<th" not in table([("n", "3")])
    assert table([]) == "<table><tbody></tbody></table>"
