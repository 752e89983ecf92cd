"""Make the keys of Triton's cache the same in every process.

The key of a kernel contains the values of all constants that the kernel and the functions that it calls use. But Triton
3.6 collects the constants of a called function before it hashes the function. Unless the function has been hashed
before, for another kernel, its constants are then not known, and are missing in the key. A process that launches
kernels in another order would therefore look up other keys, and compile kernels that are already on disk.
"""

from __future__ import annotations

from typing import Any

from tonari.cuda.compiling.rehearsal import Call


def hash_in_order(call: Call) -> None:
    """Hash the kernel of a call and the Triton functions among its constants, each after the functions it calls."""
    from triton.runtime.jit import JITCallable

    for each in (call.kernel, *call.constants.values()):
        if isinstance(each, JITCallable):
            _hash(each, JITCallable)


def _hash(function: Any, kind: type, inside: tuple[Any, ...] = ()) -> None:
    """Hash the functions that a function calls, then the function itself; skip its callers, which are in `inside`."""
    if function.hash is not None or any(function is one for one in inside):
        return
    for name in function.fn.__code__.co_names:
        one = function.fn.__globals__.get(name)
        if isinstance(one, kind):
            _hash(one, kind, (*inside, function))
    _ = function.cache_key
