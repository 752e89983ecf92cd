"""The documents: every public name is in the reference, and relative links lead to files. `make docs` builds them."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

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
