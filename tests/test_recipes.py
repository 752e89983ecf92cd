"""Every recipe of the documents runs, and prints the output below it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers.consumers import consumer

PAGES = sorted((Path(__file__).parents[1] / "docs").glob("recipes*.md"))
RECIPE = re.compile(r"^## (.+?)\n(.*?)^```python\n(.*?)^```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
FOUND = [recipe for page in PAGES for recipe in RECIPE.findall(page.read_text())]


def _cases() -> list[object]:
    cases = []
    for title, text, code, printed in FOUND:
        # tonari is not responsible for warnings of other libraries, such as deprecations.
        marks = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")] if "*Needs" in text else []
        cases.append(pytest.param(code, printed, id=title.replace(" ", "-"), marks=marks))
    return cases


def test_every_heading_is_a_recipe() -> None:
    titles = [title for page in PAGES for title in re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)]
    assert [title for title, *_ in FOUND] == titles
    assert len(titles) > 10


@pytest.mark.parametrize(("code", "printed"), _cases())
def test_it_prints_what_it_says(code: str, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    for library in re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE):
        consumer(library)
    exec(compile(code, "<recipe>", "exec"), {})
    assert capsys.readouterr().out == printed
