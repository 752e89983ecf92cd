"""SciPy's own tests of KDTree with tonari's class in its place: only refusals listed in docs/compat.md fail."""

from __future__ import annotations

import importlib.util
import inspect
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.spatial

from tonari.compat import scipy as ours

# By the beginning of the test's name.
REFUSED = {
    "test_query_pairs_eps": "expects the pairs that SciPy's tree finds with eps; ours are exact",
    "Test_random_ball_largep": "p = 100",
    "test_query_raises_for_k_none": "another message",
    "test_kdtree_complex_data": "another message",
    "test_kdtree_nan": "another message",
    "test_nonfinite_inputs": "another message",
    "test_kdtree_comparisons": "nodes",
    "test_ckdtree_view": "nodes",
    "test_kdtree_weights": "nodes",
    "test_kdtree_duplicated_inputs": "nodes",
    "test_kdtree_tree_access": "nodes",
    "test_ckdtree_parallel": "os.cpu_count is not asked",
    "test_return_sorted_None": "lists of a single point are sorted, too",
}
SLOW = ("test_ckdtree_memuse", "test_kdtree_box", "test_query_ball_point_multithreading", "test_kdtree_count_neighbous")


def module(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """SciPy's module of tests, with tonari's trees."""
    try:
        spec = importlib.util.find_spec("scipy.spatial.tests.test_kdtree")
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        pytest.skip("this installation of SciPy has no tests")
    for name in ("KDTree", "cKDTree"):
        monkeypatch.setattr(scipy.spatial, name, getattr(ours, name))
    text = re.sub(r"^@pytest\.mark\.fail_slow.*\n", "", Path(spec.origin).read_text(), flags=re.MULTILINE)
    made = types.ModuleType("scipys_tests")
    exec(compile(text, spec.origin, "exec"), vars(made))
    return made


def cases(within: types.ModuleType) -> Iterator[tuple[str, Callable[[], object]]]:
    """Return the names of the tests of KDTree, and calls of them."""

    def method(kind: type[Any], name: str) -> Callable[[], object]:
        def call() -> None:
            one = kind()
            one.setup_method()
            getattr(one, name)()

        return call

    for name, thing in vars(within).items():
        if name.startswith("Test") and not name.endswith("cKDTree"):
            for test in dir(thing):
                if test.startswith("test_"):
                    yield f"{name}::{test}", method(thing, test)
        elif name.startswith("test_") and list(inspect.signature(thing).parameters) == ["kdtree_type"]:
            yield name, lambda thing=thing: thing(ours.KDTree)  # type: ignore[misc]


@pytest.mark.interop
def test_what_fails_is_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    state = np.random.get_state()  # noqa: NPY002, which SciPy's tests set
    failed, passed = {}, 0
    for name, call in cases(module(monkeypatch)):
        parts = name.split("::")
        if any(part.startswith(SLOW) for part in parts):
            continue
        refused = any(part.startswith(tuple(REFUSED)) for part in parts)
        try:
            call()
        except Exception as error:  # either an assertion or a refusal
            if not refused:
                failed[name] = error
        else:
            passed += not refused
    np.random.set_state(state)  # noqa: NPY002
    assert failed == {}
    assert passed > 60
