"""A path can be guessed: `src/tonari/a/b/name.py` is tested by `tests/a/b/test_name.py`.

Kernels are tested with their launchers (`kernels/screen.py` by `test_screen.py`), and a package of at most five modules
may have a single test file with its name, next to its folder: `tests/compat/test_faiss.py`. Modules that define no
function have no tests. All other cases are exceptions.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCES = TESTS.parent / "src" / "tonari"
SMALL = 5  # number of modules of a package that may have a single test file

# Modules without a test of their name. The list may only become shorter: the test fails for one that has its test.
MOST_EXCEPTIONS = 24
EXCEPTIONS = """
exact/cuda: dispatch divisions memory method planning
exact/cuda/attempts: first
exact/cuda/refine: candidate_parts group_lists lowest within
exact/cuda/replay: cache few kept
exact/cuda/routes: host_refine host_search streamed within
exact/cuda/rows: form part tiles
exact/cuda/screens: contracted sampling screener wide_rows
"""


def homes_of(module: str, packages: dict[str, int]) -> list[str]:
    """Return the paths at which the test of a module may be."""
    folder, _, name = module.rpartition("/")
    package, _, last = folder.rpartition("/")
    own = f"{folder}/test_{name.lstrip('_')}.py".lstrip("/")
    return [own, f"{package}/test_{last}.py".lstrip("/")] if folder and packages[folder] <= SMALL else [own]


def modules() -> list[str]:
    """Return the modules that define functions, except kernels and the modules of packages themselves."""
    found = [path for path in SOURCES.rglob("*.py") if not path.name.startswith("__") and "kernels" not in path.parts]
    functions = re.compile(r"^ *(?:async )?def ", re.MULTILINE)
    return sorted(
        path.relative_to(SOURCES).with_suffix("").as_posix()
        for path in found
        if functions.search(path.read_text(encoding="utf-8"))
    )


def packages_of(names: list[str]) -> dict[str, int]:
    """Return the number of modules in each package, without those of its subpackages."""
    return {folder: len(list((SOURCES / folder).glob("[!_]*.py"))) for folder in {n.rpartition("/")[0] for n in names}}


def listed() -> list[str]:
    """Return the exceptions from lines such as "io: npz vecs"."""
    lines = [line.partition(": ") for line in EXCEPTIONS.split("\n") if line]
    return [f"{folder}/{name}".removeprefix("./") for folder, _, names in lines for name in names.split()]


def test_a_module_has_its_test_at_the_same_path() -> None:
    names = modules()
    packages = packages_of(names)
    lacking = [name for name in names if not any((TESTS / each).is_file() for each in homes_of(name, packages))]
    exceptions = listed()
    assert sorted(set(lacking) - set(exceptions)) == [], "put its tests at the path that mirrors it"
    assert sorted(set(exceptions) - set(lacking)) == [], "has its test, or is gone: take it out of EXCEPTIONS"
    assert len(exceptions) == len(set(exceptions)) == MOST_EXCEPTIONS, "the list may only become shorter"


@pytest.mark.parametrize(
    ("module", "sizes", "expected"),
    [
        ("debug", {"": 1}, ["test_debug.py"]),
        ("io/_atomic", {"io": 20}, ["io/test_atomic.py"]),
        ("compat/pyg/edges", {"compat/pyg": 4}, ["compat/pyg/test_edges.py", "compat/test_pyg.py"]),
        ("exact/cpu/join", {"exact/cpu": 6}, ["exact/cpu/test_join.py"]),
    ],
)
def test_where_tests_are_looked_for(module: str, sizes: dict[str, int], expected: list[str]) -> None:
    assert homes_of(module, sizes) == expected
