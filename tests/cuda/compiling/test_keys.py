"""The keys of Triton's cache: another process, which launches kernels in another order, finds them again."""

from __future__ import annotations

import collections
import importlib
from pathlib import Path
from typing import Any

import pytest

import tonari
from tests.helpers.devices import HAS_TORCH, needs_torch

pytestmark = needs_torch
if HAS_TORCH:
    import triton.language as tl
    from triton.runtime.jit import DependenciesFinder, JITFunction

    from tonari.cuda.compiling.keys import hash_in_order
    from tonari.cuda.compiling.rehearsal import Call

    _LIMIT = tl.constexpr(2)


def limited(x: Any) -> Any:
    return min(x, _LIMIT)


def twice(x: Any) -> Any:
    return inner(x) + inner(x)


def thrice(x: Any) -> Any:
    return twice_of(x) + inner(x) + recursive(x)


def down(x: Any) -> Any:
    return recursive(inner(x))


inner, twice_of, recursive = (JITFunction(each) for each in (limited, twice, down)) if HAS_TORCH else (None,) * 3


def collected_before_hashing(self: Any, func: Any) -> None:
    """Merge constants as Triton 3.6 does: a function that has not been hashed seems to have none."""
    self.used_global_vals.update(func.used_global_vals)
    self.hasher.update(func.cache_key.encode())


def test_keys_do_not_depend_on_the_order_of_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DependenciesFinder, "_update_hash", collected_before_hashing)

    def keys(*order: Any) -> dict[str, str]:
        """Return the keys of kernels that are launched in this order in a new process."""
        for each in (inner, twice_of, recursive):
            each.hash, each.used_global_vals = None, {}
        kernel = JITFunction(thrice)
        calls = {"first": Call(kernel, {}, {}, {}, ()), "second": Call(None, {}, {"TERM": recursive}, {}, ())}
        for name in order:
            hash_in_order(calls[name])
        return {"first": kernel.cache_key, "second": recursive.cache_key, "inner": inner.cache_key}

    assert keys("first", "second") == keys("second", "first")
    assert "_LIMIT" in str(twice_of.used_global_vals)


def test_a_constant_of_a_kernel_has_one_value() -> None:
    """Triton 3.6 would sort two constants of one name by the addresses of their modules, which differ by process."""
    found: dict[Any, dict[str, set[str]]] = {}

    def constants(function: Any) -> dict[str, set[str]]:
        """Return the values, by name, of the constants of a function and of the functions that it calls."""
        if function not in found:
            values = found[function] = collections.defaultdict(set)
            for name in function.__code__.co_names:
                used = function.__globals__.get(name)
                if isinstance(used, tl.constexpr):
                    values[name].add(repr(used))
                elif hasattr(used, "fn"):
                    for called_name, called_values in constants(used.fn).items():
                        values[called_name] |= called_values
        return found[function]

    source = Path(tonari.__file__).parents[1]
    for path in source.glob("tonari/**/kernels/**/[!_]*.py"):
        if "papers" not in path.parts:
            module = importlib.import_module(".".join(path.relative_to(source).with_suffix("").parts))
            for value in vars(module).values():
                if hasattr(value, "fn"):
                    constants(value.fn)
    assert len(found) > 150
    each = [(function.__name__, name, values) for function in found for name, values in found[function].items()]
    assert [one for one in each if len(one[2]) > 1] == []
