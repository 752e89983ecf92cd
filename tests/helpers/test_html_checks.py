"""The check of HTML refuses pages that are not well-formed or use other files."""

from __future__ import annotations

import pytest

from tests.helpers.html_checks import check_page


@pytest.mark.parametrize(
    "page",
    [
        "<p>",
        "</p>",
        "<b><i>x</b></i>",
        "<p class='a' class='b'></p>",
        "<script></script>",
        "<p onclick='x()'></p>",
        "<a href='x'></a>",
        "<img>",
        "<style>p { background: url(x) }</style>",
        "<p>see https://host</p>",
        "<p>nan</p>",
        "<p>to inf.</p>",
        "<p>None</p>",
    ],
)
def test_pages_that_are_refused(page: str) -> None:
    with pytest.raises(AssertionError):
        check_page(page)


def test_a_page_that_is_taken() -> None:
    assert check_page("<p>a<br>  b</p><style>p { }</style><svg><path d='M0'/></svg>") == "a b"
