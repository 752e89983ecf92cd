"""The documents: the reference has all public names, links lead to files, and Python blocks run.

`make docs` builds them.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.consumers import consumer
from tonari.core.plan import Plan
from tonari.methods.registry import NAMES, method_for
from tonari.metrics import BIT_METRICS, CHANGED, MAPPED, METRICS, MISSING_METRICS, get_metric

ROOT = Path(__file__).parents[1]
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.rst"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LOOKALIKES = ("astropy", "faiss", "pyg", "pytorch3d", "scipy", "sentence_transformers")
PUBLIC = (
    *("tonari", "tonari.estimators", "tonari.io", "tonari.select", "tonari.core.errors", "tonari.debug"),
    *(f"tonari.compat.{name}" for name in LOOKALIKES),
)


@pytest.fixture
def described() -> dict[str, Any]:
    """Return the objects that the reference describes, by the path in their directives."""
    pytest.importorskip("sklearn", reason="the reference describes the estimators, which need scikit-learn")
    text = "\n".join(page.read_text() for page in REFERENCE)
    return {path: named(path) for path in re.findall(r"^\.\. auto\w+:: (\S+)$", text, re.MULTILINE)}


def named(path: str) -> Any:
    """Return the object of a path such as tonari.io.read."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def public_names(module: str) -> list[str]:
    """Return the public names of a module: its __all__, otherwise the classes that it defines."""
    held = importlib.import_module(module)
    own = [name for name, value in vars(held).items() if getattr(value, "__module__", None) == module]
    return [f"{module}.{name}" for name in getattr(held, "__all__", own)]


def without_blocks(page: Path) -> str:
    """Return the text of a Markdown page without blocks of code."""
    return re.sub(r"^(```|~~~).*?^\1", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    titles = re.findall(r"^#{1,3} (.+)$", without_blocks(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower().strip()).replace(" ", "-") for title in titles}


def dead_links(page: Path) -> list[str]:
    """Return relative links of a Markdown page to files, or to sections of pages, that do not exist."""
    targets = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", without_blocks(page)))
    found = []
    for target in targets:
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        if re.match(r"[a-z]+:", target):
            continue
        # The changelog names sections that existed at the time.
        sections = anchors(path) if anchor and path.suffix == ".md" and page.name != "CHANGELOG.md" else {anchor}
        if not path.exists() or anchor not in sections:
            found.append(target)
    return found


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
    (tmp_path / "there.md").write_text("## A *part*, or -1?\n```\n# code\n```\n")
    page.write_text(
        "# Here\n[a](there.md) [b](there.md#a-part-or--1) [c](https://host/x#y) [d](#here) `[e](no.md)` [f](gone.md)\n"
        "```\n[g](no.md)\n```\n![h](images/gone.svg) [i](there.md#code) [j](#there)\n"
    )
    assert dead_links(page) == ["gone.md", "images/gone.svg", "there.md#code", "#there"]


ELSEWHERE = ("recipes.md", "recipes-learning.md", "CHANGELOG.md")
# A block of Python, and the comment before it: `needs: library` (make interop installs it), or `not run: reason`.
BLOCK = re.compile(r"^(?:<!-- (needs|not run): (.*?) -->\n\n)?```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[Any]:
    """Return the Python blocks of all pages except the recipes, which have their own test."""
    found = []
    for page in PAGES:
        if page.name in ELSEWHERE:
            continue
        for number, (mark, about, code) in enumerate(BLOCK.findall(page.read_text()), 1):
            marks: list[Any] = []
            if mark == "needs":  # tonari is not responsible for warnings of another library
                marks = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]
            elif mark == "not run":
                marks = [pytest.mark.skip(reason=f"needs {about}")]
            found.append(pytest.param(code, id=f"{page.relative_to(ROOT)}-{number}", marks=marks))
    return found


@pytest.mark.parametrize("code", blocks())
def test_python_runs_as_copied(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block runs alone, in an empty folder."""
    for library in re.findall(r"^(?:import|from) (?:numpy as np, )?(\w+)", code, re.MULTILINE):
        consumer(library)
    if ".clusters(" in code:
        pytest.importorskip("fast_hdbscan", reason="the labels of a spanning tree need tonari[hdbscan]")
    if ".plot." in code:
        pytest.importorskip("matplotlib", reason="what draws").use("agg")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "<document>", "exec"), {"__name__": "__main__"})


def test_every_block_is_found() -> None:
    fences = [page for page in PAGES if page.name not in ELSEWHERE]
    assert len(blocks()) == sum(page.read_text().count("```python\n") for page in fences)


# --- the guide ---------------------------------------------------------------------------------------------------

INDEX = (ROOT / "docs" / "index.md").read_text()
# A file of the sources, or a commit: seven hexadecimal digits, including a letter and a decimal digit.
INSIDES = re.compile(r"\b(?:src|native|kernels)/\S*|\b(?=\w*\d)(?=\w*[a-f])[0-9a-f]{7}\b")


def guide() -> list[Path]:
    """Return the pages of the guide, in order."""
    names = re.search(r":caption: Guide\n\n(.*?)\n```", INDEX, re.DOTALL)
    assert names is not None
    return [ROOT / "docs" / f"{name}.md" for name in names[1].split()]


def test_every_guide_is_on_the_start_page() -> None:
    assert [page.name for page in guide() if f"({page.name})" not in INDEX] == []


def test_every_page_is_in_the_sidebar() -> None:
    listed = re.findall(r"^([\w-]+)$", "".join(re.findall(r"```{toctree}.*?```", INDEX, re.DOTALL)), re.MULTILINE)
    assert sorted(listed) == sorted(page.stem for page in (ROOT / "docs").glob("*.md") if page.stem != "index")


@pytest.mark.parametrize("page", guide(), ids=lambda page: page.stem)
def test_a_guide_is_short_and_does_not_look_inside(page: Path) -> None:
    text = page.read_text()
    assert len(text.splitlines()) <= 150
    assert INSIDES.findall(text) == []


def test_a_look_inside_is_found() -> None:
    assert INSIDES.findall("`src/tonari/io` at 94ff49e, 1000000 of 1,797") == ["src/tonari/io`", "94ff49e"]


def test_every_extra_for_users_is_on_the_page_of_installation() -> None:
    project = (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]")[1]
    extras = re.findall(r"^([\w-]+) = \[", project.split("\n[")[0], re.MULTILINE)
    developers = {"test-core", "test", "interop", "native", "lint", "docs", "bench"}
    table = (ROOT / "docs" / "install.md").read_text().split("## Extras")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE)
    assert set(listed) == set(extras) - developers


# --- the table of metrics ----------------------------------------------------------------------------------------

HEADS = ["metric", "value", "from", "to", "order", "equal rows", "returned", "k-d tree", "NN-Descent"]


def metric_lines() -> dict[str, dict[str, str]]:
    """Return the lines of the table in which-metric.md, by the name of the metric."""
    table = (ROOT / "docs" / "which-metric.md").read_text().split("<!-- metrics -->\n\n")[1].split("\n\n")[0]
    head, _, *rows = (re.split(r" (?<!\\)\| ", line.strip("| ")) for line in table.splitlines())
    assert head == HEADS
    cells = ([cell.strip("`").replace(r"\|", "|") for cell in row] for row in rows)
    return {name: dict(zip(HEADS[1:], rest, strict=True)) for name, *rest in cells}


def some_rows(metric: str) -> tuple[Any, Any]:
    """Make rows for a metric, the first two of them equal; return also the rows as its formula needs them."""
    rng = np.random.default_rng(0)
    if get_metric(metric).bits:
        rows = rng.integers(0, 256, (40, 4), dtype=np.uint8)
        rows[1] = rows[0]
        return rows, np.unpackbits(rows, axis=1).astype(bool)
    rows = rng.random((40, 6), dtype=np.float32) if metric != "haversine" else rng.uniform(-1.5, 1.5, (40, 2))
    rows[1] = rows[0]
    if metric == "braycurtis":
        rows /= rows.sum(axis=1, keepdims=True)
    return rows, rows.astype(np.float64)


# The arguments that some metrics need.
COLUMNS: dict[str, dict[str, Any]] = {
    "mahalanobis": {"VI": np.eye(6) + 0.25},
    "seuclidean": {"V": np.arange(1.0, 7.0)},
}


def test_every_metric_has_a_line() -> None:
    assert set(metric_lines()) == {*METRICS, *CHANGED, *MAPPED, *BIT_METRICS, *MISSING_METRICS}


@pytest.mark.parametrize("metric", metric_lines())
def test_the_line_of_a_metric_says_what_a_search_returns(metric: str) -> None:
    line = metric_lines()[metric]
    rows, formal = some_rows(metric)
    names = {
        name: getattr(np, name)
        for name in ("sqrt", "sum", "nansum", "isnan", "abs", "corrcoef", "arccos", "sin", "cos", "max")
    }
    names |= COLUMNS.get(metric, {})
    names |= {"norm": np.linalg.norm, "inf": np.inf, "pi": np.pi, "d": formal.shape[1]}
    columns = COLUMNS.get(metric, {})
    found = tonari.search(rows[:1], rows, k=len(rows), metric=metric, **columns)
    values = [eval(line["value"], {**names, "q": formal[0], "x": formal[i]}) for i in found.indices[0]]
    np.testing.assert_allclose(found.distances[0], values, rtol=1e-5, atol=1e-6)
    low, high = (eval(line[end], dict(names)) for end in ("from", "to"))
    assert low <= found.distances.min()
    assert found.distances.max() <= high
    assert line["order"] == ("descending" if get_metric(metric).descending else "ascending")
    equal = tonari.search(rows[:1], rows[1:2], k=1, metric=metric, **columns).distances[0, 0]
    assert equal == pytest.approx(
        eval(line["equal rows"], {"q": formal[0]}), abs=0 if line["equal rows"] == "0" else 1e-5
    )


@pytest.mark.parametrize("metric", metric_lines())
def test_the_line_of_a_metric_says_what_supports_it(metric: str) -> None:
    line = metric_lines()[metric]
    rows, _ = some_rows(metric)
    for kind in [np.uint8] if rows.dtype == np.uint8 else [np.float32, np.float64]:
        own = rows.astype(kind)
        returned = tonari.search(own[:1], own, k=1, metric=metric, **COLUMNS.get(metric, {})).distances.dtype
        assert returned == (kind if line["returned"] == "as the rows" else line["returned"])
    for method, column in (("kdtree", "k-d tree"), ("nn-descent", "NN-Descent")):
        supported = refusal(metric, method) is None
        assert line[column] == ("yes" if supported else "no"), method


def refusal(metric: str, method: str) -> str | None:
    """Return why a method does not build the graph of a few rows by a metric."""
    rows, _ = some_rows(metric)
    try:
        tonari.knn_graph(rows, 3, metric=metric, method=method, **COLUMNS.get(metric, {}))
    except tonari.core.errors.Unsupported as error:
        return str(error)
    return None
