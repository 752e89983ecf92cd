"""Caches of the process, such as plans of earlier searches, and a function that empties them all.

Functions with cached results are decorated with :func:`cached`. Every other cache registers, by :func:`emptied_by`, a
function that empties it. Compiled kernels are not caches in this sense: they are kept as long as the process lives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

T = TypeVar("T")
Empty = TypeVar("Empty", bound=Callable[[], object])

_emptied: list[Callable[[], object]] = []


def cached(maxsize: int | None = None) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """Return a decorator that caches the last `maxsize` results of a function, as functools.lru_cache does.

    >>> @cached()
    ... def square(x):
    ...     print("computed")
    ...     return x * x
    >>> square(3), square(3)
    computed
    (9, 9)
    >>> square.cache_info().currsize
    1
    """

    def decorate(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        wrapped = functools.lru_cache(maxsize)(function)
        emptied_by(wrapped.cache_clear)
        return wrapped

    return decorate


def emptied_by(empty: Empty) -> Empty:
    """Register a function that empties a cache, and return it; the function takes no arguments and must be cheap."""
    _emptied.append(empty)
    return empty


def empty_caches() -> None:
    """Empty all caches of the process, so that the next call plans and decides like the first call of a process.

    >>> import numpy as np, tonari
    >>> x = np.eye(3, dtype=np.float32)
    >>> before = tonari.search(x, x, 1).indices.tolist()
    >>> empty_caches()
    >>> tonari.search(x, x, 1).indices.tolist() == before
    True
    """
    for empty in _emptied:
        empty()
