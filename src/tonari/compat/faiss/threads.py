"""The number of threads of all searches, as OpenMP's functions set it for FAISS."""

from __future__ import annotations

import math

from tonari import inputs
from tonari.core.process.compiling import not_compiled
from tonari.core.process.workers import default_threads


class _Setting:
    """The number that was set last; None by default."""

    threads: int | None = None


@not_compiled
def omp_set_num_threads(num_threads: int) -> None:
    """Set the number of threads of all later searches of :mod:`tonari.compat.faiss`.

    By default, the amount of work decides. Answers do not depend on the number.

    Examples
    --------
    >>> from tonari.compat import faiss
    >>> faiss.omp_set_num_threads(faiss.omp_get_max_threads())
    """
    _Setting.threads = inputs.check_count(num_threads, "num_threads")


@not_compiled
def omp_get_max_threads() -> int:
    """Return the number that was set; by default, the number of processors that the process may use."""
    return _Setting.threads or default_threads(math.inf)


def threads() -> int | None:
    """Return the number that was set, for the argument `threads`."""
    return _Setting.threads
