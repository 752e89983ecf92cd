"""Make the keys of Triton's cache the same in every process.

The key of a kernel contains the values of the constants that the kernel and its functions use. Triton 3.6 collects the
constants of a called function before it hashes that function. If the function has not been hashed for another kernel
before, its constants are not known, and are left out. So a process that launches kernels in another order would look up
other keys, and compile kernels that are on disk.
"""

from __future__ import annotations

from typing import Any

from tonari.cuda.compiling.rehearsal import Call


def hash_in_order(call: Call) -> None:
    """Hash the kernel of a call, and the Triton functions among its constants, after the functions that they call."""
    from triton.runtime.jit import JITCallable

    for each in (call.kernel, *call.constants.values()):
        if isinstance(each, JITCallable):
            _hash(each, JITCallable)


def _hash(function: Any, kind: type, inside: tuple[Any, ...] = ()) -> None:
    """Hash a function after the functions that it calls; its callers are `inside`, since functions may recur."""
    if function.hash is not None or any(function is one for one in inside):
        return
    for name in function.fn.__code__.co_names:
        one = function.fn.__globals__.get(name)
        if isinstance(one, kind):
            _hash(one, kind, (*inside, function))
    _ = function.cache_key
