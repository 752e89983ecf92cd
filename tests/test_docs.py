"""The documents: what is public is in the reference, links lead to files, Python runs. `make docs` builds them."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.consumers import consumer
from tonari.core.plan import Plan
from tonari.methods.registry import NAMES, method_for

ROOT = Path(__file__).parents[1]
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.rst"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LOOKALIKES = ("faiss", "pyg", "pytorch3d", "scipy", "sentence_transformers")
PUBLIC = (
    *("tonari", "tonari.estimators", "tonari.io", "tonari.select", "tonari.core.errors", "tonari.debug"),
    *(f"tonari.compat.{name}" for name in LOOKALIKES),
)


@pytest.fixture
def described() -> dict[str, Any]:
    """What the reference describes, by the path that its directive has."""
    pytest.importorskip("sklearn", reason="the reference describes the estimators, which need scikit-learn")
    text = "\n".join(page.read_text() for page in REFERENCE)
    return {path: named(path) for path in re.findall(r"^\.\. auto\w+:: (\S+)$", text, re.MULTILINE)}


def named(path: str) -> Any:
    """The object of a path such as tonari.io.read."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def public_names(module: str) -> list[str]:
    """The names that a module offers: its __all__, else the classes that it defines."""
    held = importlib.import_module(module)
    own = [name for name, value in vars(held).items() if getattr(value, "__module__", None) == module]
    return [f"{module}.{name}" for name in getattr(held, "__all__", own)]


def dead_links(page: Path) -> list[str]:
    """Relative links of a Markdown page to files that there are not."""
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:|#", target)]
    return [target for target in targets if not (page.parent / target.partition("#")[0]).exists()]


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(module: str, described: dict[str, Any]) -> None:
    names = public_names(module)
    assert names
    there = {id(thing) for thing in described.values()}
    assert [name for name in names if id(named(name)) not in there and not isinstance(named(name), int)] == []


def test_the_plan_of_every_method_is_in_the_reference(described: dict[str, Any]) -> None:
    for name in NAMES:
        method_for(name, "cpu")
    importlib.import_module("tonari.exact.cuda.plan")
    plans = {kind for kind in Plan.__subclasses__() if kind.__module__.startswith("tonari.")}
    assert len(plans) > len(NAMES)
    assert plans - {thing for thing in described.values() if isinstance(thing, type)} == set()


def test_nothing_is_described_twice(described: dict[str, Any]) -> None:
    things = [id(thing) for thing in described.values()]
    assert len(things) == len(set(things))


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_relative_links_lead_to_files(page: Path) -> None:
    assert dead_links(page) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "there.md").write_text("")
    page.write_text(
        "[a](there.md) [b](there.md#part) [c](https://host/x) [d](#part) `[e](no.md)` [f](gone.md)\n"
        "```\n[g](no.md)\n```\n![h](images/gone.svg)\n"
    )
    assert dead_links(page) == ["gone.md", "images/gone.svg"]


# A block of Python, and the comment before it: `needs: library` (make interop has it), or `not run: why`.
BLOCK = re.compile(r"^(?:<!-- (needs|not run): (.*?) -->\n\n)?```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[Any]:
    """The blocks of Python of all pages but recipes.md, which has a test of its own."""
    found = []
    for page in PAGES:
        if page.name in ("recipes.md", "CHANGELOG.md"):
            continue
        for number, (mark, about, code) in enumerate(BLOCK.findall(page.read_text()), 1):
            marks: list[Any] = []
            if mark == "needs":  # what another library warns of is not of tonari
                marks = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]
            elif mark == "not run":
                marks = [pytest.mark.skip(reason=f"needs {about}")]
            found.append(pytest.param(code, id=f"{page.relative_to(ROOT)}-{number}", marks=marks))
    return found


@pytest.mark.parametrize("code", blocks())
def test_python_runs_as_copied(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone, in an empty folder."""
    for library in re.findall(r"^(?:import|from) (?:numpy as np, )?(\w+)", code, re.MULTILINE):
        consumer(library)
    if ".plot." in code:
        pytest.importorskip("matplotlib", reason="what draws").use("agg")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "<document>", "exec"), {"__name__": "__main__"})


def test_every_block_is_found() -> None:
    fences = [page for page in PAGES if page.name not in ("recipes.md", "CHANGELOG.md")]
    assert len(blocks()) == sum(page.read_text().count("```python\n") for page in fences)


def test_every_guide_is_on_the_start_page() -> None:
    text = (ROOT / "docs" / "index.md").read_text()
    guides = re.search(r":caption: Guide\n\n(.*?)\n```", text, re.DOTALL)
    assert guides is not None
    assert [guide for guide in guides[1].split() if f"({guide}.md)" not in text] == []
