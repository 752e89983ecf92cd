"""Compile the kernels of recorded launches in parallel, and look them up in Triton's cache on disk.

Triton's own code makes the keys of its cache, so other processes can load the variants that this process compiles. Nine
tenths of the work are passes of MLIR and LLVM, ptxas, and gcc for the launcher of a kernel. This work does not hold the
interpreter's lock, so threads share it. The translation of a kernel from Python holds the lock; linking libdevice would
hold it too (metrics/kernels/instructions.py). Kernels are therefore translated one after another. The kernels that take
longest to compile are first:

    look up      a b c d              in Triton's cache on disk, by one thread after another
    translate      a b c d            by one thread after another
    compile          aaaaaaaaa        by the thread that has translated the kernel
                       bbbbbbb
                         ccc
                           d
    launchers      a b c d            until Triton 3.6: from the signature, in C, by other threads at the same time

Other processes would not share the interpreter's lock. But 8 processes, started while the search was imported, did not
make the first graph of a million rows faster on an H100 with 16 processors: their imports slowed down the imports of
the search.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import as_completed
from typing import Any

from tonari.core.process.garbage import collection_off
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.process.workers import default_threads
from tonari.cuda.compiling.beginning import begin
from tonari.cuda.compiling.effort import effort
from tonari.cuda.compiling.keys import hash_in_order
from tonari.cuda.compiling.loading import Loading
from tonari.cuda.compiling.rehearsal import Call
from tonari.cuda.compiling.translation import binaries_alone, translating

logger = logging.getLogger("tonari")

compiling = threading.RLock()  # held while Triton compiles or loads a kernel: each device launches from its own thread


class _Missing(Exception):
    """Raised when Triton would begin to compile."""


def compile_together(calls: Collection[Call], progress: ProgressLike = None) -> int:
    """Compile the variants of calls that are not in Triton's cache, and load them on the current device.

    As many threads as tonari may use share the work.

    Parameters
    ----------
    calls : collection of Call
    progress : None, bool or callable(done, total)
        As for :func:`tonari.search`; a callable is not called. A bar counts kernels.

    Returns
    -------
    int
        The number of kernels.

    Notes
    -----
    A kernel that fails to compile is logged as a warning; its launch then compiles it again, and raises the error.
    """
    from triton import AsyncCompileMode

    shown: ProgressLike = False if callable(progress) else progress
    with contextlib.ExitStack() as stack:
        stack.enter_context(compiling)
        stack.enter_context(binaries_alone())
        stack.enter_context(collection_off())  # collecting would take a sixth of the time of translation
        stack.enter_context(translating())
        pool = Loading(min(default_threads(), len(calls)))
        stack.callback(pool.shutdown)  # also after Ctrl-C while threads start
        # Triton's mode waits for all futures when it ends, so futures that have not begun are cancelled before.
        stack.enter_context(AsyncCompileMode(pool, ignore_errors=True))
        stack.callback(pool.cancel)
        pool.start()
        for call in sorted(calls, key=effort, reverse=True):
            with _instead_of_making_ir(call.kernel, pool.translate, pool.prepare):
                compile_call(call)
        with Progress(shown, total=len(pool.futures), seconds=None, label="compiling", unit="kernel") as bar:
            for _ in as_completed(pool.futures):
                bar.add(1)
    count = pool.missing
    if count:
        logger.info(
            "%d kernels are compiled, by %d threads, and kept in Triton's cache", count, min(pool.threads, count)
        )
    failed = [error for future in pool.futures if (error := future.exception()) is not None]
    if failed:
        logger.warning(
            "%d of %d kernels could not be compiled ahead, and are compiled when they are launched: %s: %s",
            len(failed),
            count,
            type(failed[0]).__name__,
            failed[0],
        )
    return count


def compile_call(call: Call) -> Any:
    """Compile the variant of a call, or load it from Triton's cache on disk; return Triton's record of the variant."""
    with compiling:
        hash_in_order(call)
        return call.kernel.warmup(grid=(1,), **call.arguments, **call.constants, **call.options)


def is_compiled(call: Call) -> bool:
    """Whether this process has the variant of a call, or has just loaded it from Triton's cache on disk."""
    with compiling:
        begin()
        try:
            with _instead_of_making_ir(call.kernel, _not_made):
                compile_call(call)
        except _Missing:
            return False
    return True


@contextlib.contextmanager
def _instead_of_making_ir(
    kernel: Any, make_ir: Callable[..., Any], prepare: Callable[[Any], None] | None = None
) -> Iterator[None]:
    """Return a context in which Triton's compilation of a kernel begins with `make_ir` instead of its usual method.

    `make_ir` receives the usual method and its arguments. A kernel in Triton's cache is loaded as usual. `prepare` is
    called before, with the source of the kernel.
    """
    from triton.runtime import driver

    kernel.device_caches[driver.active.get_current_device()]  # sets kernel.ASTSource
    usual = kernel.ASTSource

    class Source(usual):  # type: ignore[misc, valid-type]
        """The source of a kernel with a different first step of compilation."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if prepare is not None:
                prepare(self)

        def make_ir(self, *given: Any, **named: Any) -> Any:
            return make_ir(super().make_ir, *given, **named)

    kernel.ASTSource = Source
    try:
        yield
    finally:
        kernel.ASTSource = usual


def _not_made(usual: Callable[..., Any], *given: Any, **named: Any) -> Any:
    raise _Missing
