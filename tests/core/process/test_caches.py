"""All caches of the process are registered, so that they can be emptied, and are empty when a test begins."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

import pytest

import tonari
from tests.helpers import checks
from tonari.core.process import caches
from tonari.exact.planning import planner as exact_plan
from tonari.methods import repeated

SOURCES = Path(tonari.__file__).parent

# Values that stay for the whole process; no answer and no plan depends on them. The list only names what the sources
# contain.
LASTING = {
    "core.process.compiling._QUIET": "functions with Dynamo switched off, which takes it milliseconds",
    "core.process.leaving._begun": "that the interpreter is exiting",
    "cuda.compiling.beginning.begin": "that Triton is hashed, for the keys of its cache on disk",
    "cuda.compiling.beginning.begin_soon": "that Triton is being hashed and its driver loaded, once in a process",
    "cuda.compiling.effort._own_instructions": "instructions of a kernel, which are as they were written",
    "cuda.device_threads._linear_algebra": "that torch has loaded its linear algebra",
    "cuda.devices._stream_between": "a stream of a device",
    "cuda.host_rows._LOCKS": "page-locked memory, as long as it is used",
    "cuda.launch._compiled": "compiled kernels",
    "cuda.launch._pickers": "names of the arguments of kernels",
    "cuda.matrix_units._adds_as_assumed": "what a device was probed for by running products on it",
    "cuda.recorded._side_stream": "a stream of a device",
    "exact.cuda.attempts.in_batches.IDLE": "who can give memory up",
    "exact.cuda.routes.codes.replays._ALL": "points whose graphs can be dropped",
    "shards.workers.on_dask._jobs": "the job of a Dask worker's process",
}

MUTATORS = {
    "add",
    "append",
    "appendleft",
    "clear",
    "extend",
    "insert",
    "move_to_end",
    "pop",
    "popitem",
    "setdefault",
} | {
    "discard",
    "remove",
    "update",
}
FACTORIES = {
    "Counter",
    "OrderedDict",
    "WeakKeyDictionary",
    "WeakSet",
    "WeakValueDictionary",
    "defaultdict",
    "deque",
} | {
    "dict",
    "list",
    "set",
}


def caches_of(module: str, tree: ast.Module, changing: Set[str]) -> Iterator[str]:
    """Return the names of a module through which one call may affect the next, without registered caches.

    `changing` are the names of classes whose objects have state.
    """
    emptied = " ".join(
        ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.Expr) and ast.unparse(node).startswith("emptied_by(")
    )
    objects = _kept_in_objects(tree, changing)
    for name in _kept_by_functions(tree) | objects | _changed_by_functions(tree):
        if f"{name}." not in emptied:
            yield f"{module}.{name}"


def _kept_by_functions(tree: ast.Module) -> set[str]:
    """Return functions whose results functools caches."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(_called(each) in ("cache", "lru_cache") for each in node.decorator_list):
                found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            calls = [each.func for each in ast.walk(node.value) if isinstance(each, ast.Call)]
            if any(_called(each) in ("cache", "lru_cache") for each in calls):
                found |= _targets(node)
    return found


def _called(node: ast.expr) -> str:
    """Return the last part of the name of a called function, or of a decorator with or without arguments."""
    return ast.unparse(node).partition("(")[0].rpartition(".")[2]


def _kept_in_objects(tree: ast.Module, changing: Set[str]) -> set[str]:
    """Return objects of a module or a class that are empty at first."""
    found = set()
    for body in [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
        for node in body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            empty = isinstance(value, ast.Dict | ast.List) and not ast.unparse(value)[1:-1]
            made = isinstance(value, ast.Call) and (
                (_called(value.func) in FACTORIES and not value.args)
                or (isinstance(value.func, ast.Name) and value.func.id in changing)
            )
            if empty or made:
                found |= _targets(node)
    return found


def _changed_by_functions(tree: ast.Module) -> set[str]:
    """Return names of the module that functions assign, or whose items they set, add or remove."""
    names = set().union(*(_targets(node) for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)))
    found = set()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        nodes = list(ast.walk(function))
        given = {node.arg for node in nodes if isinstance(node, ast.arg)}
        declared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
        own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)} - declared
        found |= declared
        for node in nodes:
            target = None
            if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                target = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
                target = node.func.value
            if isinstance(target, ast.Name) and target.id in names - given - own:
                found.add(target.id)
    return found


def _targets(node: Any) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}


# Parsing all sources takes seconds, so these patterns exclude most files.
WITH_A_STATE = re.compile(r"^class (\w+)(?:(?!^class )[^\0])*?^    def __init__\(", re.MULTILINE)
NAMED = re.compile(r"^(\w+)(?::[^=\n]+)? = ", re.MULTILINE)
EMPTY = re.compile(r"^ *\w+(?::[^=\n]+)? = (?:\{\}|\[\]|(?:\w+\.)*(\w+)\()", re.MULTILINE)


def may_have_caches(text: str, changing: Set[str]) -> bool:
    """Return whether any line of a module looks like a cache; False only if there is none."""
    if "cache(" in text or "cache\n" in text or re.search(r"^ +global ", text, re.MULTILINE):
        return True
    if any(each[1] is None or each[1] in FACTORIES | changing for each in EMPTY.finditer(text)):
        return True
    names = "|".join(set(NAMED.findall(text)))
    changed = rf"\b(?:{names})(?:\[.*=|\.(?:{'|'.join(MUTATORS)})\()|\bdel (?:{names})\["
    return bool(names) and re.search(changed, text, re.MULTILINE) is not None


def test_every_cache_is_emptied_with_the_others() -> None:
    texts = {
        ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__"): path.read_text("utf-8")
        for path in sorted(SOURCES.rglob("*.py"))
    }
    del texts["core.process.caches"]
    changing = set().union(*(set(WITH_A_STATE.findall(text)) for text in texts.values()))
    assert "Graphs" in changing
    found = {
        name
        for module, text in texts.items()
        if may_have_caches(text, changing)
        for name in caches_of(module, ast.parse(text), changing)
    }
    assert sorted(found - set(LASTING)) == [], "use tonari.core.process.caches: cached, or emptied_by beside the cache"
    assert sorted(set(LASTING) - found) == [], "no longer in the sources: take it out of LASTING"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("@functools.cache\ndef f(x): ...", {"m.f"}),
        ("@lru_cache(maxsize=3)\ndef f(x): ...", {"m.f"}),
        ("f = functools.lru_cache(maxsize=3)(g)", {"m.f"}),
        ("@functools.cached_property\ndef f(self): ...", set()),
        ("@cached(maxsize=3)\ndef f(x): ...", set()),
        ("_kept: dict[str, int] = {}", {"m._kept"}),
        ("_kept = collections.OrderedDict()", {"m._kept"}),
        ("_kept = weakref.WeakKeyDictionary()", {"m._kept"}),
        ("class A:\n    kept = []", {"m.kept"}),
        ("_kept = {}\nemptied_by(_kept.clear)", set()),
        ("NAMES = {'a': 1}\ndef f(x): return NAMES[x]", set()),
        ("NAMES = {'a': 1}\ndef f(x): NAMES[x] = 2", {"m.NAMES"}),
        ("NAMES = {'a': 1}\ndef f(x): NAMES.pop(x)", {"m.NAMES"}),
        ("NAMES = {'a': 1}\ndef f(NAMES): NAMES.pop('a')", set()),
        ("NAMES = {'a': 1}\ndef f():\n    NAMES = {}\n    NAMES['b'] = 1", set()),
        ("KEPT = Graphs()", {"m.KEPT"}),
        ("KEPT = Graphs()\nemptied_by(KEPT.clear)", set()),
        ("last = None\ndef f(x):\n    global last\n    last = x", {"m.last"}),
    ],
)
def test_a_cache_made_otherwise_is_seen(source: str, expected: set[str]) -> None:
    assert set(caches_of("m", ast.parse(source), {"Graphs"})) == expected
    assert may_have_caches(source, {"Graphs"}) >= bool(expected)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("place", ["first", "second"])
def test_no_test_sees_what_another_left(metric: str, place: str) -> None:
    assert not repeated._kept
    assert exact_plan._remembered.cache_info().currsize == 0
    points = checks.gaussian(40, 3)
    tonari.search(points[:4].copy(), points, 2, metric=metric, method="exact")
    assert repeated._kept
    assert exact_plan._remembered.cache_info().currsize == 1


def test_a_decision_is_not_kept_beyond_what_it_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    points = checks.gaussian(40, 3)
    queries = points[:4].copy()
    tonari.search(queries, points, 2, method="exact")
    planned: list[Any] = []
    plan = exact_plan._planned
    monkeypatch.setattr(exact_plan, "_planned", lambda *given: planned.append(given) or plan(*given))
    tonari.search(queries, points, 2, method="exact")
    assert not planned  # correct outside of tests
    caches.empty_caches()
    tonari.search(queries, points, 2, method="exact")
    assert len(planned) == 1
