"""Recorded and repeated calls of Triton's built-in functions return the results of Triton's own code."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, interpreted

if HAS_TORCH:
    import triton.language as tl
    from triton.language import core, standard
    from triton.runtime import interpreter

    from tests.helpers.interpreted_calls import Recorder, repeating

pytestmark = [
    interpreted,
    pytest.mark.filterwarnings("ignore:(overflow|invalid value|divide by zero) encountered:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:tl.where with a non-boolean:UserWarning"),
]
INTEGERS = ["int1", "int8", "uint8", "int32", "uint32", "int64", "uint64"]
DTYPES = [*INTEGERS, "float16", "bfloat16", "float32", "float64"]
SHAPES = [((), ()), ((4,), ()), ((), (2, 4)), ((2, 1), (4,)), ((2, 4), (2, 4))]
ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"]
OPERATORS = [*ARITHMETIC, "lt", "le", "gt", "ge", "eq", "ne"]


def block(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Any:
    """Make a tensor of small numbers, none of which is 0."""
    kind = getattr(tl, dtype)
    data = np.random.default_rng(seed).integers(1, 6, shape or 1).astype(interpreter._get_np_dtype(kind))
    return core.tensor(interpreter.TensorHandle(data, kind), core.block_type(kind, list(shape)) if shape else kind)


def outcome(call: Any, *given: Any, **options: Any) -> Any:
    try:
        made = call(*given, **options)
    except Exception as error:
        return type(error), str(error)
    return [
        (
            str(each.type),
            [int(side.value) for side in each.shape],
            each.handle.dtype,
            data.dtype,
            data.shape,
            data.tobytes(),
        )
        for each in (made if isinstance(made, tuple) else [made])
        for data in [each.handle.data]
    ]


def compare(member: Any, *many: list[Any], **options: Any) -> None:
    """Compare calls with the same types and other values, of which the first is recorded, and the same two again."""
    semantic = interpreter.interpreter_semantic
    call = repeating(member, semantic)
    for given in [*many, *many]:
        expected = outcome(member, *given, **options, _semantic=semantic)
        assert outcome(call, *given, **options) == expected, (member, [str(each) for each in given])
    assert not isinstance(semantic.builder, Recorder)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    member = getattr(core.tensor, f"__{name}__")
    for (one, other), (left, right) in itertools.product(zip(DTYPES, DTYPES[3:] + DTYPES[:3], strict=True), SHAPES):
        for dtype in (one, other):
            compare(member, *([block(one, left, seed), block(dtype, right, seed + 1)] for seed in (0, 5)))
    constants = (3, -1, 1, True, 1.0, 0.0, -0.0, 2.5, core.constexpr(2), 1 << 40)
    for dtype in DTYPES:
        compare(member, *([block(dtype, (2, 4), seed), constant] for constant in constants for seed in (0, 5)))


def test_an_operand_with_itself() -> None:
    x, y = block("int32", (4,)), block("int32", (4,), 1)
    compare(core.tensor.__sub__, [x, x], [x, y], [y, x])


def test_choices() -> None:
    for dtype, shapes in itertools.product(
        DTYPES, [((4,), (4,), ()), ((), (4,), (2, 4)), ((2, 1), (), ()), ((), (), ())]
    ):
        compare(
            tl.where,
            *([block("int1", shapes[0], at), *(block(dtype, each, at) for each in shapes[1:])] for at in (0, 1)),
        )
        for member in (tl.maximum, tl.minimum):
            compare(member, *([block(dtype, shapes[1], at), block(dtype, shapes[2], at + 1)] for at in (0, 1)))
    compare(tl.where, [block("int1", (4,)), 1, 0.0], [block("int1", (4,)), 1, -0.0], [block("int1", (4,), 1), 1, -0.0])


def test_options_have_names() -> None:
    call = repeating(tl.cast, interpreter.interpreter_semantic)
    x = block("float32", (4,))
    assert call(x, dtype=tl.int32).handle.data.tolist() == x.handle.data.tolist()
    assert call(x, tl.int32, bitcast=True).handle.data.tolist() == x.handle.data.view("int32").tolist()
    with pytest.raises(TypeError):
        call(x, other=tl.int32)


def test_casts() -> None:
    for one, other in itertools.product(DTYPES, DTYPES):
        compare(tl.cast, *([block(one, (4,), seed), getattr(tl, other)] for seed in (0, 5)))


def test_shapes() -> None:
    x, y = block("float32", (2, 4)), block("float32", (2, 4), 1)
    compare(tl.reshape, [x, (4, 2)], [y, (4, 2)], [y, (8,)], [y, (3,)])
    compare(tl.broadcast_to, [block("int32", (1, 4)), (2, 4)], [block("int32", (1, 4), 1), (2, 4)])
    compare(core.tensor.__getitem__, *([each, at] for each in (x, y) for at in ((slice(None), None), None, (0,))))
    compare(tl.full, [(2, 4), 1.5, tl.float32], [(2, 4), 1.5, tl.float16], [[8], 1.5, tl.float32])
    compare(tl.arange, [0, 4], [0, 8], [4, 8], [0, 3])
    compare(tl.split, [block("int32", (4, 2))], [block("int32", (4, 2), 1)])
    compare(
        tl.dot, *([block("float32", (2, 4), at), block("float32", (4, 2), at)] for at in (0, 1)), out_dtype=tl.float32
    )


def test_programs_have_their_own_numbers() -> None:
    call = repeating(tl.program_id, interpreter.interpreter_semantic)
    interpreter.interpreter_builder.set_grid_dim(3, 1, 1)
    for at in range(3):
        interpreter.interpreter_builder.set_grid_idx(at, 0, 0)
        assert call(0).handle.data.tolist() == [at]


def test_reductions() -> None:
    for dtype, keep, axis in itertools.product(DTYPES, (False, True), (0, 1)):
        for combine in (standard._sum_combine, standard._elementwise_max, standard._elementwise_min):
            if dtype != "bfloat16":
                compare_reductions(combine, axis, keep, [block(dtype, (2, 4), seed) for seed in (0, 5)])
    compare_reductions(standard._sum_combine, 0, False, [block("float64", (4,), seed) for seed in (0, 5)])


def compare_reductions(combine: Any, axis: int, keep: bool, several: list[Any]) -> None:
    for x in [*several, *several]:
        reduce = interpreter.ReduceOps(axis, combine, keep).apply
        assert outcome(reduce, x) == outcome(reduce, (x,))  # of several tensors, by Triton's own code
