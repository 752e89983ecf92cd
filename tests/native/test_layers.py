"""Folders of native/ include only lower folders, as those of src/tonari import; the #include lines are checked."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"
# From the bottom up.
ROOMS = ["core", "simd", "select", "exact", "bits", "missing", "sparse", "kdtree", "spanning", "nn_descent", "bind"]


def included(source: str) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*"([^"]+)"', source, re.MULTILINE)


def files() -> dict[str, list[str]]:
    """Return the includes of each file from native/, as paths relative to native/."""
    sources = sorted(NATIVE.rglob("*.[ch]pp"))
    return {path.relative_to(NATIVE).as_posix(): included(path.read_text(encoding="utf-8")) for path in sources}


def upward(includes: dict[str, list[str]], rooms: list[str]) -> list[str]:
    level = {room: at for at, room in enumerate(rooms)}
    return [
        f"{name} includes {other}"
        for name, others in includes.items()
        for other in others
        if level[other.split("/")[0]] > level[name.split("/")[0]]
    ]


def test_every_file_is_in_a_room() -> None:
    assert {name.split("/")[0] for name in files()} == set(ROOMS)
    assert all(name.count("/") == 1 for name in files())


def test_includes_are_paths_from_native() -> None:
    includes = files()
    assert [
        f"{name} includes {other}" for name, others in includes.items() for other in others if other not in includes
    ] == []


def test_rooms_include_downwards_only() -> None:
    assert upward(files(), ROOMS) == []


def test_an_upward_include_is_found() -> None:
    source = '#include <vector>\n#include "exact/form.hpp"\n  # include "core/rows.hpp"\n// #include "bind/binds.hpp"\n'
    assert included(source) == ["exact/form.hpp", "core/rows.hpp"]
    assert upward({"select/keys.hpp": included(source)}, ROOMS) == ["select/keys.hpp includes exact/form.hpp"]


def test_no_file_includes_itself_by_way_of_others() -> None:
    TopologicalSorter(files()).prepare()  # raises CycleError


@pytest.mark.parametrize("room", ROOMS[:-1])
def test_python_is_known_to_bindings_alone(room: str) -> None:
    heads = ("<Python.h>", "<nanobind/")
    sources = sorted((NATIVE / room).glob("*.[ch]pp"))
    assert sources
    assert [path.name for path in sources if any(head in path.read_text(encoding="utf-8") for head in heads)] == []
