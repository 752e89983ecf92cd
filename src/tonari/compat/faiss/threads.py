"""The number of threads of searches in ``tonari.compat.faiss``, set as in FAISS by functions with OpenMP's names."""

from __future__ import annotations

import math

from tonari import inputs
from tonari.core.process.compiling import not_compiled
from tonari.core.process.workers import default_threads


class _Setting:
    """The number of threads set by the last call of :func:`omp_set_num_threads`; None before the first call."""

    threads: int | None = None


@not_compiled
def omp_set_num_threads(num_threads: int) -> None:
    """Set the number of threads of all later searches of :mod:`tonari.compat.faiss`.

    Before the first call, tonari chooses the number for each search by its amount of work. Answers do not depend on it.

    Examples
    --------
    >>> from tonari.compat import faiss
    >>> faiss.omp_set_num_threads(faiss.omp_get_max_threads())
    """
    _Setting.threads = inputs.check_count(num_threads, "num_threads")


@not_compiled
def omp_get_max_threads() -> int:
    """Return the number of threads that was set, or else the number of processors that the process may use."""
    return _Setting.threads or default_threads(math.inf)


def threads() -> int | None:
    """Return the argument `threads` of tonari's searches: the number of threads that was set, or None."""
    return _Setting.threads
