"""A faster interpreter of Triton, with the same results: tests of kernels take a third of their time.

The original interpreter searches all of triton.language for built-in functions, which it replaces while a kernel runs,
and repeats this for every function that the kernel calls. It computes whether integers overflow, and ignores the result
unless it debugs. It gives every tensor of a kernel its own shape object, which is checked and formatted again, although
there are only a few different shapes. The changes here avoid this work.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from typing import Any

import numpy as np


def hasten() -> None:
    """Change the interpreter so that it does work once that it would repeat for every function, launch or tensor."""
    _remember_builtins()
    _remember_constants()
    _compute_no_overflows()
    _remember_shapes()
    _reduce_at_once()


def _compute_no_overflows() -> None:
    from triton.runtime import interpreter

    builder = interpreter.interpreter_builder
    assert not builder.options.debug  # in debug mode, it stops kernels whose integers overflow
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)


def _remember_shapes() -> None:
    """Let blocks of equal shape share one shape object, and compare shapes as lists of integers."""
    from triton.language import core
    from triton.language.semantic import TritonSemantic
    from triton.runtime import interpreter

    make_block, broadcast, numpy_dtype = (
        core.block_type.__init__,
        TritonSemantic.broadcast_impl_value,
        interpreter._get_np_dtype,
    )
    shapes: dict[tuple[int, ...], tuple[Any, int, str]] = {}
    of_tensors: dict[tuple[int, ...], tuple[Any, Any]] = {}
    numpy_dtypes: dict[str, Any] = {}

    def init_block(self: Any, element_ty: Any, shape: Any) -> None:
        key = tuple([each.value if isinstance(each, core.constexpr) else each for each in shape])
        if key not in shapes:
            make_block(self, element_ty, shape)
            shapes[key] = self.shape, self.numel, str(self.shape)
        self.element_ty = element_ty
        self.shape, self.numel, text = shapes[key]
        self.name = f"<{text}, {element_ty}>"

    def init_tensor(self: Any, handle: Any, type: Any) -> None:
        self.handle, self.type, self.dtype = handle, type, type.scalar
        key = tuple(type.shape.values) if type.is_block() else ()
        if key not in of_tensors:
            make_tensor(self, handle, type)
            of_tensors[key] = self.shape, self.numel
        self.shape, self.numel = of_tensors[key]

    def broadcast_values(self: Any, lhs: Any, rhs: Any) -> Any:
        one, other = lhs.type, rhs.type
        if one.is_block() and other.is_block() and one.shape.values == other.shape.values:
            return lhs, rhs
        return broadcast(self, lhs, rhs)

    def dtype_in_numpy(dtype: Any) -> Any:
        scalar = dtype.scalar
        if scalar.name not in numpy_dtypes:
            numpy_dtypes[scalar.name] = numpy_dtype(scalar)
        return numpy_dtypes[scalar.name]

    make_tensor = core.tensor.__init__
    core.block_type.__init__, core.tensor.__init__ = init_block, init_tensor
    TritonSemantic.broadcast_impl_value = broadcast_values
    interpreter._get_np_dtype = dtype_in_numpy


def _reduce_at_once() -> None:
    """Let sums, and the smallest and largest integers, be reduced without looking at types first."""
    from triton.language import core, standard
    from triton.runtime import interpreter

    reduce = interpreter.ReduceOps.apply
    of_integers = {standard._elementwise_min: np.minimum, standard._elementwise_max: np.maximum}
    kinds: dict[Any, Any] = {}

    def apply(self: Any, given: Any) -> Any:
        if type(given) is not core.tensor or type(self.axis) is not int or type(self.keep_dims) is not bool:
            return reduce(self, given)
        key = self.combine_fn, self.axis, self.keep_dims, given.type.name
        if key not in kinds:
            op = np.add if self.combine_fn is standard._sum_combine else of_integers.get(self.combine_fn)
            result = reduce(self, given)
            simple = op is np.add or (op is not None and given.dtype.is_int())
            kinds[key] = (op, result.handle.data.dtype, result.type) if simple else None
            return result
        if kinds[key] is None:
            return reduce(self, given)
        op, dtype, kind = kinds[key]
        data = op.reduce(given.handle.data, axis=self.axis, keepdims=self.keep_dims)
        handle = interpreter.TensorHandle(
            np.asarray(data).astype(dtype).reshape(kind.shape if kind.is_block() else 1), kind.scalar
        )
        return core.tensor(handle, kind)

    interpreter.ReduceOps.apply = apply


def _remember_builtins() -> None:
    """Let the interpreter look for the built-in functions of triton.language once, and replace them once per launch."""
    from triton import language
    from triton.language import core
    from triton.runtime import interpreter

    from tests.helpers.interpreted_calls import repeating

    replace_all, interpret = interpreter._patch_lang, interpreter.InterpretedFunction.__call__
    missing = interpreter._MISSING
    changes_for: dict[frozenset[Any], list[tuple[Any, str, Any, Any]]] = {}
    replaced_now: list[frozenset[Any]] = []  # the modules of the kernel that runs

    @functools.cache
    def replaced(package: Any, name: str, member: Any) -> Any:
        return repeating(member, interpreter.interpreter_semantic)

    @functools.cache
    def languages_of(function: Any) -> frozenset[Any]:
        return frozenset(value for value in function.__globals__.values() if value is language or value is core)

    def patch_builtin(package: Any, builder: Any, scope: Any) -> None:
        for name, member in inspect.getmembers(package):
            if core.is_builtin(member):
                scope.set_attr(package, name, replaced(package, name, member))

    class Scope:
        """What a launch replaces, and gives back at its end."""

        def __init__(self, languages: frozenset[Any]) -> None:
            self.changes = changes_for[languages]
            for place, name, _, new in self.changes:
                setattr(place, name, new)
            replaced_now.append(languages)

        def restore(self) -> None:
            replaced_now.pop()
            for place, name, original, _ in reversed(self.changes):
                if original is missing:
                    delattr(place, name)
                else:
                    setattr(place, name, original)

    def patch_lang(function: Any) -> Any:
        if replaced_now:  # a kernel runs: what it has replaced must neither be recorded as original nor given back
            return replace_all(function)
        languages = languages_of(function)
        if languages not in changes_for:
            scope = replace_all(function)
            changes_for[languages] = [(*each, getattr(each[0], each[1])) for each in scope._changes]
            scope.restore()
        return Scope(languages)

    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        if not (replaced_now and languages_of(self.fn) <= replaced_now[-1]):
            return interpret(self, *arguments, **options)
        function = self.rewritten_fn.get(self.fn) or self.rewrite()
        try:
            return function(*arguments, **options)
        except Exception as error:
            raise interpreter.InterpreterError(repr(error)) from error

    interpreter._patch_builtin = patch_builtin
    interpreter._patch_lang = patch_lang
    interpreter.InterpretedFunction.__call__ = call


def _remember_constants() -> None:
    """Let the arguments that are constants be found once for each kernel."""
    from triton.runtime import interpreter

    init = interpreter.GridExecutor.__init__
    constants: dict[Any, list[str]] = {}

    def init_once(self: Any, function: Any, names: Any, grid: Any, hooks: Any = ()) -> None:
        if function not in constants:
            init(self, function, names, grid, hooks)
            constants[function] = self.constexprs
        self.fn, self.arg_names, self.grid, self.pre_run_hooks = function, names, grid, hooks
        self.constexprs = constants[function]

    interpreter.GridExecutor.__init__ = init_once
