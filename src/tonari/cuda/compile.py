"""Compile the variant of a noted launch, and see whether Triton has it in its cache on disk.

Triton's own code makes the key of the cache, so that a variant that one process compiles is the one that another loads.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

from tonari.cuda.rehearsal import Call
from tonari.cuda.stand_ins import as_argument


class _Looked(Exception):
    """Raised in place of a compilation."""


def compile_call(call: Call) -> Any:
    """Compile the variant of a call, or load it from Triton's cache on disk; return Triton's record of it."""
    arguments = {name: as_argument(argument) for name, argument in call.arguments.items()}
    return call.kernel.warmup(grid=(1,), **arguments, **call.constants, **call.options)


def is_compiled(call: Call) -> bool:
    """Whether Triton has compiled the variant of a call for the current device, in this process or on disk."""
    from triton.runtime import driver

    kernel, found = call.kernel, []
    kernel.device_caches[driver.active.get_current_device()]  # makes kernel.compile

    def look(src: Any, *, target: Any, options: Any) -> None:
        found.append(_is_on_disk(src, target, options))
        raise _Looked

    usual, kernel.compile = kernel.compile, look
    try:
        compile_call(call)  # looks only if this process does not have the variant
    except _Looked:
        pass
    finally:
        kernel.compile = usual
    return all(found)


def is_cache_empty() -> bool:
    """Whether Triton's cache on disk has nothing at all; takes no time, unlike the first key of a process."""
    from triton import knobs

    try:
        with os.scandir(knobs.cache.dir) as entries:
            return next(entries, None) is None
    except FileNotFoundError:
        return True


def make_key() -> None:
    """Make the part of all keys that Triton keeps: half a second of hashing Triton itself, on any thread."""
    from triton.runtime.cache import triton_key

    triton_key()


def _is_on_disk(src: Any, target: Any, options: Any) -> bool:
    from triton._C.libtriton import get_cache_invalidating_env_vars
    from triton.compiler.compiler import make_backend
    from triton.runtime.cache import get_cache_key, get_cache_manager

    backend = make_backend(target)
    parsed = backend.parse_options(dict(options) | src.parse_options())
    key = get_cache_key(src, backend, parsed, env_vars=get_cache_invalidating_env_vars())
    group = get_cache_manager(hashlib.sha256(key.encode()).hexdigest()).get_group(f"{src.name[:150]}.json")
    return bool(group) and f"{src.name[:150]}.json" in group
