"""Translation without repeated work: the same results, and Triton is unchanged afterwards."""

from __future__ import annotations

import inspect
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.ahead import run
from tests.helpers.devices import HAS_TORCH, needs_torch

pytestmark = needs_torch
if HAS_TORCH:
    from triton.compiler import code_generator
    from triton.language import core
    from triton.runtime.jit import JITCallable

    from tonari.cuda.compiling.translation import translating


@pytest.mark.process
def test_translations_are_the_same_and_sources_are_parsed_once(tmp_path: Path) -> None:
    ran = run(
        """
import contextlib
from tonari.cuda.compiling import translation
from triton.runtime.jit import JITCallable
usual, texts, parsed = JITCallable.parse, [], []
def parse(function):
    parsed.append(function.fn)
    return usual(function)
JITCallable.parse = parse
class Translated(Exception):
    pass
def translated(usual, *given, **named):
    texts.append(str(usual(*given, **named)))
    raise Translated
def all_texts():
    texts.clear()
    for call in some:
        with contextlib.suppress(Translated), compile._instead_of_making_ir(call.kernel, translated):
            compile_call(call)
    return list(texts)
some = [call for call in calls() if call.name in ("certify_kernel", "refine_kernel")]
before = all_texts()
parsed.clear()
with translation.translating():
    within = [all_texts(), all_texts()]
print(json.dumps([len(before), [each == before for each in within], len(parsed), len(set(parsed))]))
""",
        tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    count, same, parsed, functions = json.loads(ran.stdout)
    assert count >= 2
    assert same == [True, True]
    assert parsed == functions > 5


def test_triton_is_as_it_was_after_an_error() -> None:
    parse, make, make_type = JITCallable.parse, core.tensor.__init__, core.block_type.__init__
    with translating():
        assert core.tensor.__init__ is not make
        assert core.block_type.__init__ is not make_type
        assert code_generator.warnings is not warnings
        assert code_generator.inspect is not inspect
        assert JITCallable.parse is not parse
    with pytest.raises(ZeroDivisionError), translating():
        raise ZeroDivisionError
    assert (code_generator.warnings, code_generator.inspect, JITCallable.parse) == (warnings, inspect, parse)
    assert (core.tensor.__init__, core.block_type.__init__) == (make, make_type)


def test_tensors_of_equal_shapes_share_them() -> None:
    def tensors() -> list[Any]:
        types = [core.block_type(kind, shape) for kind in (core.float32, core.int64) for shape in ([4, 8], [8, 4])]
        return [core.tensor(None, kind) for kind in (*types, core.float32)]

    usual = tensors()
    with translating():
        tensors()
        shared = tensors()
    for one, other in zip(shared, usual, strict=True):
        assert vars(one).keys() == vars(other).keys()
        assert (str(one), one.type, one.dtype, one.numel) == (str(other), other.type, other.dtype, other.numel)
    assert shared[0].shape is shared[2].shape
    assert shared[0].shape.type.name == usual[0].shape.type.name


def test_stand_ins_know_what_the_modules_know() -> None:
    def named(a, b=1):  # type: ignore[no-untyped-def]
        return a, b

    def gathered(a, *rest):  # type: ignore[no-untyped-def]
        return a, rest

    with translating():
        for given, more in (((1, 2), {}), ((1,), {}), ((1,), {"b": 3})):
            assert code_generator.inspect.getcallargs(named, *given, **more) == inspect.getcallargs(
                named, *given, **more
            )
        assert code_generator.inspect.getcallargs(gathered, 1, 2) == {"a": 1, "rest": (2,)}
        with pytest.raises(TypeError, match="missing"):
            code_generator.inspect.getcallargs(named)
        for function in (named, gathered, "".join, Path().joinpath, Path("a").joinpath):
            assert code_generator.inspect.signature(function) == inspect.signature(function)
        assert code_generator.warnings.warn is warnings.warn
