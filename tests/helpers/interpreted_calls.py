"""Faster calls of Triton's built-in functions in the interpreter: the operations of a call are recorded and repeated.

From the types and constants of its arguments, a built-in function, such as ``tl.where`` or the operator + of two
tensors, determines which arguments are cast and broadcast, and which functions of NumPy are applied. The interpreter
determines this anew for every call, which takes twenty times as long as NumPy. Here, the first call with certain types
and constants runs Triton's code, and records which functions of the interpreter's builder it calls; further calls with
the same types and constants call only these functions. Operands of operators are not broadcast explicitly, because
NumPy broadcasts them.

A call with arguments of other kinds, such as tensor descriptors, runs Triton's code each time.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from triton.language import core
from triton.runtime import interpreter

BUILDER, Handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
PLAIN = frozenset([int, bool, str, type(None)])
# Functions of the builder that return constants if they are called without tensors.
CONSTANT = ("get_", "create_make_range", "create_splat", "create_broadcast", "create_int_cast", "create_fp_to_fp")
BROADCAST = ("create_splat", "create_broadcast")
BOOL = np.dtype(bool)
# Functions that convert elements as NumPy does, except to or from bfloat16, which NumPy lacks.
CASTS = {"create_int_cast", "create_si_to_fp", "create_ui_to_fp", "create_fp_to_si", "create_fp_to_ui"}
CASTS |= {"create_fp_ext", "create_fp_trunc"}
# Operators that treat truth values in the same way as numbers.
OF_BITS = {np.bitwise_and, np.bitwise_or, np.bitwise_xor}
OF_BITS |= {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}


class Unrepeatable(Exception):
    """Raised if a call cannot be repeated, so that Triton's code has to run each time."""


class _Asked:
    """A builder whose operators return the function of NumPy that they would apply."""

    def binary_op(self, lhs: Any, rhs: Any, op: Any) -> Any:
        return op


def _operators() -> dict[str, Any]:
    """Return, for the builder's operators of two tensors by name, the functions of NumPy that they apply."""
    found = {}
    for name, member in inspect.getmembers(BUILDER, inspect.isfunction):
        if len(inspect.signature(member).parameters) == 3 and "binary_op" in member.__code__.co_names:
            found[name] = member(_Asked(), None, None) if member.__name__ == "<lambda>" else None
    return {name: op for name, op in found.items() if op is not None}


OPERATORS = _operators()
ELEMENTWISE = {*OPERATORS, "create_select", "create_addptr"}


@dataclass
class _Step:
    """A call of one of the builder's functions.

    Attributes
    ----------
    name : str
    function : callable
    places : list of (int, int)
        Arguments that are handles: their position, and their place among all handles of the recorded call.
    arguments : list
        All arguments, in which handles are replaced when the step is repeated.
    results : tuple of TensorHandle
    at : int
        Place of the first result.
    """

    name: str
    function: Callable[..., Any]
    places: list[tuple[int, int]]
    arguments: list[Any]
    results: tuple[Any, ...]
    at: int


class Recorder:
    """A builder that records which functions of another builder are called on which tensors' handles."""

    def __init__(self, builder: Any, handles: list[Any]) -> None:
        self.builder = builder
        self.seen = list(handles)
        self.place = {id(handle): at for at, handle in enumerate(handles)}
        self.constants: list[Any] = []  # kept, as `seen` are, so that no two have the same id
        self.steps: list[_Step] = []

    def __getattr__(self, name: str) -> Any:
        member = getattr(self.builder, name)
        if not callable(member):
            return member

        def recorded(*arguments: Any) -> Any:
            if any(
                isinstance(each, (list, tuple)) and any(isinstance(one, Handle) for one in each) for each in arguments
            ):
                raise Unrepeatable
            result = member(*arguments)
            places = [(at, self.place[id(each)]) for at, each in enumerate(arguments) if id(each) in self.place]
            if name.startswith(CONSTANT) and not places:
                self.constants.append(result)
                return result
            results = result if isinstance(result, tuple) else (result,)
            self.steps.append(_Step(name, member, places, list(arguments), results, len(self.seen)))
            for each in results:
                self.place[id(each)] = len(self.seen)
                self.seen.append(each)
            return result

        return recorded


def repeating(member: Callable[..., Any], semantic: Any) -> Callable[..., Any]:
    """Return a function that calls a built-in function of Triton, and repeats what it did for the same types."""
    plans: dict[Any, Any] = {}
    tensor = core.tensor

    def call(*arguments: Any, _semantic: Any = None, **options: Any) -> Any:
        key: list[Any] = []
        handles: list[Any] = []
        try:
            for each in arguments:
                kind = type(each)
                if kind is tensor:
                    key.append(each.type.name)
                    handles.append(each.handle)
                elif kind in PLAIN:
                    key += kind, each
                else:
                    _describe(each, key, handles)
            if options:
                for name, each in options.items():
                    key.append(name)
                    _describe(each, key, handles)
        except Unrepeatable:
            return member(*arguments, **options, _semantic=semantic)
        known = tuple(key)
        plan = plans.get(known)
        if plan is None or type(semantic.builder) is Recorder:
            if type(semantic.builder) is Recorder:  # within a call that is recorded
                return member(*arguments, **options, _semantic=semantic)
            result, plans[known] = _record(member, arguments, options, semantic)
            return result
        if plan is Unrepeatable:
            return member(*arguments, **options, _semantic=semantic)
        return plan(handles)

    return call


def _describe(given: Any, key: list[Any], handles: list[Any]) -> None:
    """Add the type of a tensor, or another argument and its type, to `key`, and the handle of a tensor to `handles`."""
    kind = type(given)
    if kind is core.tensor:
        key.append(given.type.name)
        handles.append(given.handle)
        return
    key.append(kind)
    if kind in PLAIN:
        key.append(given)
    elif kind is float:
        key.append(given.hex())
    elif kind is core.constexpr:
        _describe(given.value, key, handles)
    elif kind in (list, tuple, core.tuple):
        key.append(len(given))
        for each in given:
            _describe(each, key, handles)
    elif kind is builtins.slice:
        _describe((given.start, given.stop, given.step), key, handles)
    elif isinstance(given, core.dtype):
        key.append(given.name)
    elif kind is core.PropagateNan:
        key.append(int(given))
    else:
        raise Unrepeatable


def _own(given: Any, handles: list[Any]) -> Any:
    """Return a copy of an argument with new handles, so that the same tensor in two arguments has two handles."""
    kind = type(given)
    if kind is core.tensor:
        handles.append(Handle(given.handle.data, given.handle.dtype))
        return core.tensor(handles[-1], given.type)
    if kind is core.constexpr:
        return core.constexpr(_own(given.value, handles))
    if kind in (list, tuple):
        return kind([_own(each, handles) for each in given])
    if kind is core.tuple:
        return core.tuple([_own(each, handles) for each in given], given.type)
    return given


def _record(member: Any, arguments: Any, options: Any, semantic: Any) -> tuple[Any, Any]:
    """Return the result of a call, and a function that computes the same result from other tensors' handles."""
    handles: list[Any] = []
    own = [_own(each, handles) for each in arguments]
    own_options = {name: _own(each, handles) for name, each in options.items()}
    builder = semantic.builder
    semantic.builder = recorder = Recorder(builder, handles)
    try:
        result = member(*own, **own_options, _semantic=semantic)
        template = _template(result, recorder)
    except Unrepeatable:
        semantic.builder = builder
        return member(*arguments, **options, _semantic=semantic), Unrepeatable
    finally:
        semantic.builder = builder
    return result, _plan(recorder, template)


def _template(result: Any, recorder: Recorder) -> Any:
    """Return a template from which `_filled` makes results like this one: a tensor, several tensors, or None."""
    if result is None:
        return None
    if isinstance(result, tuple):
        return [_template(each, recorder) for each in result]
    if type(result) is not core.tensor:
        raise Unrepeatable
    at = recorder.place.get(id(result.handle))
    return at, result.handle if at is None else None, result.type, result.dtype, result.shape, result.numel


def _used(template: Any) -> set[Any]:
    """Return the places of the handles that a template's results use."""
    if template is None:
        return set()
    return set().union(*map(_used, template)) if type(template) is list else {template[0]}


def _filled(template: Any, handles: list[Any]) -> Any:
    if template is None:
        return None
    if type(template) is list:
        return tuple([_filled(each, handles) for each in template])
    at, constant, kind, dtype, shape, numel = template
    made = core.tensor.__new__(core.tensor)
    made.handle = constant if at is None else handles[at]
    made.type, made.dtype, made.shape, made.numel = kind, dtype, shape, numel
    return made


def _plan(recorder: Recorder, template: Any) -> Callable[[list[Any]], Any]:
    """Return a function that repeats the recorded steps with other handles, and returns the result."""
    same = _broadcast_by_numpy(recorder, _used(template))
    steps = [
        (_function(step, recorder.builder), [(at, same.get(place, place)) for at, place in step.places], step.arguments)
        for step in recorder.steps
    ]
    left_out = [step.at in same for step in recorder.steps]
    if left_out.count(False) == 1 and type(template) is tuple and template[0] == len(recorder.seen) - 1:
        return _of_one_step(*steps[left_out.index(False)], template)

    def several(handles: list[Any]) -> Any:
        for (function, places, given), skipped in zip(steps, left_out, strict=True):
            for at, place in places:
                given[at] = handles[place]
            result = None if skipped else function(*given)
            if type(result) is tuple:
                handles += result
            else:
                handles.append(result)
        return _filled(template, handles)

    return several


def _of_one_step(function: Any, places: list[tuple[int, int]], given: list[Any], template: Any) -> Any:
    _, _, kind, dtype, shape, numel = template
    tensor, new = core.tensor, core.tensor.__new__

    if [at for at, _ in places] == [0, 1] and len(given) == 2:
        left, right = (place for _, place in places)

        def of_two(handles: list[Any]) -> Any:
            made = new(tensor)
            made.handle = function(handles[left], handles[right])
            made.type, made.dtype, made.shape, made.numel = kind, dtype, shape, numel
            return made

        return of_two

    def one(handles: list[Any]) -> Any:
        for at, place in places:
            given[at] = handles[place]
        made = new(tensor)
        made.handle = function(*given)
        made.type, made.dtype, made.shape, made.numel = kind, dtype, shape, numel
        return made

    return one


def _broadcast_by_numpy(recorder: Recorder, used: set[Any]) -> dict[int, int]:
    """Map the places of broadcast handles that can be skipped to the places of the handles before broadcasting."""
    same: dict[int, int] = {}
    for step in recorder.steps:
        users = [each for each in recorder.steps if any(place == step.at for _, place in each.places)]
        if step.name in BROADCAST and step.at not in used and all(each.name in ELEMENTWISE for each in users):
            alike = {**same, step.at: same.get(step.places[0][1], step.places[0][1])}
            if all(_shape(each, alike, recorder.seen) == each.results[0].data.shape for each in users):
                same = alike
    return same


def _shape(step: _Step, same: Mapping[int, int], seen: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape of an elementwise result if skipped broadcasts (`same`) are replaced by their operands."""
    given = list(step.arguments)
    for at, place in step.places:
        given[at] = seen[same.get(place, place)]
    return np.broadcast_shapes(*(each.data.shape for each in given))


def _function(step: _Step, builder: Any) -> Callable[..., Any]:
    """Return a function that does what the builder's does for handles of the types of a step."""
    if step.name in OPERATORS:
        return _operator(OPERATORS[step.name], builder)
    if step.name in CASTS and core.bfloat16 not in (step.arguments[0].dtype.scalar, step.arguments[1].scalar):
        return _cast(step.arguments[1])
    if step.name == "create_addptr":
        return _addition_to(step.arguments[0])
    if step.name == "create_masked_load" and step.arguments[2] is not None:
        return _load_from(step.arguments[0])
    return _select if step.name == "create_select" else step.function


def _handle(data: Any, dtype: Any) -> Any:
    handle = Handle.__new__(Handle)
    handle.data, handle.dtype, handle.attr = data, dtype, {}
    return handle


def _operator(op: Any, builder: Any) -> Callable[[Any, Any], Any]:
    """Return a function that does what the builder's operator for a function of NumPy does, faster for most types."""
    plain = op in OF_BITS

    def operator(lhs: Any, rhs: Any) -> Any:
        left = lhs.data
        if plain or left.dtype is not BOOL:
            output = op(left, rhs.data)
            if output.dtype is left.dtype or output.dtype is BOOL:
                return _handle(output, lhs.dtype.scalar)
        return builder.binary_op(lhs, rhs, op)

    return operator


def _cast(kind: Any) -> Callable[..., Any]:
    dtype, scalar = interpreter._get_np_dtype(kind), kind.scalar

    def cast(given: Any, *_: Any) -> Any:
        return _handle(given.data.astype(dtype), scalar)

    return cast


def _addition_to(pointers: Any) -> Callable[[Any, Any], Any]:
    width, dtype = max(1, pointers.get_element_ty().primitive_bitwidth // 8), pointers.dtype

    def add(given: Any, offsets: Any) -> Any:
        return _handle(given.data + width * offsets.data.astype(np.uint64), dtype)

    return add


def _load_from(pointers: Any) -> Callable[..., Any]:
    kind, read = pointers.get_element_ty(), interpreter._interpreter.load
    dtype = interpreter._get_np_dtype(kind)

    def load(given: Any, mask: Any, other: Any, *_: Any) -> Any:
        return _handle(read(given.data, mask.data, other.data, dtype), kind)

    return load


def _select(condition: Any, lhs: Any, rhs: Any) -> Any:
    output = np.where(condition.data, lhs.data, rhs.data)
    assert output.dtype == rhs.data.dtype
    return _handle(output, rhs.dtype.scalar)
