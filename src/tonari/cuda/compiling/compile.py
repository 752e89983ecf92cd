"""Compile the kernels of recorded launches in parallel, and look them up in Triton's cache on disk.

Triton's own code computes the keys of its cache, so other processes can load the variants that this process compiles.
Nine tenths of the work are passes of MLIR and LLVM, ptxas, and gcc for the launcher of a kernel. This part does not
hold the interpreter's lock, so several threads do it at once. The translation of a kernel from Python holds the lock,
so kernels are translated one after another. (Linking libdevice would hold it, too; see
metrics/kernels/instructions.py.) The kernels that take longest to compile are translated first:

    look up      a b c d              one kernel after another, in Triton's cache on disk
    translate      a b c d            one kernel after another
    compile          aaaaaaaaa        at the same time, each by the thread that has translated it
                       bbbbbbb
                         ccc
                           d
    launchers      a b c d            up to Triton 3.6: from the signature, in C, by other threads at the same time

Processes instead of threads would not have to share the interpreter's lock. But on an H100 with 16 processors, 8
processes that were started while the search was imported did not make the first graph of a million rows faster: their
imports slowed down the imports of the search. They could not have saved much: the kernel that takes longest to compile
is translated first, and ends last or nearly last.
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

# Held while Triton compiles or loads a kernel, because each device has a thread that may do so.
compiling = threading.RLock()


class _Missing(Exception):
    """Raised in place of a compilation, when a kernel is only looked up."""


def compile_together(calls: Collection[Call], progress: ProgressLike = None) -> int:
    """Compile those kernel variants of `calls` that are not in Triton's cache, and load all on the current device.

    The work is shared by as many threads as tonari may use.

    Parameters
    ----------
    calls : collection of Call
    progress : None, bool or callable(done, total)
        As for :func:`tonari.search`: a bar counts kernels, and a callable is not called.

    Returns
    -------
    int
        The number of kernels that were compiled.

    Notes
    -----
    A warning is logged if a kernel fails to compile; its launch then compiles it again, and raises the error.
    """
    from triton import AsyncCompileMode

    shown: ProgressLike = False if callable(progress) else progress
    with contextlib.ExitStack() as stack:
        stack.enter_context(compiling)
        stack.enter_context(binaries_alone())
        stack.enter_context(collection_off())  # garbage collection would take a sixth of the time of translation
        stack.enter_context(translating())
        pool = Loading(min(default_threads(), len(calls)))
        stack.callback(pool.shutdown)  # even if Ctrl-C interrupts the start of threads
        # At its end, Triton's context waits for all futures; the ones that have not begun are cancelled before.
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
    """Compile the kernel that a call needs, or load it from Triton's cache on disk; return Triton's compiled kernel."""
    with compiling:
        hash_in_order(call)
        return call.kernel.warmup(grid=(1,), **call.arguments, **call.constants, **call.options)


def is_compiled(call: Call) -> bool:
    """Return whether the variant of a call is compiled; a variant in Triton's cache on disk is loaded."""
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
    """Return a context in which `make_ir` replaces Triton's translation of kernels, the first step of compilation.

    `make_ir` receives Triton's own method and its arguments. A kernel in Triton's cache is loaded as usual, without
    this step. `prepare` is called with the source of each kernel before the kernel is looked up in the cache.
    """
    from triton.runtime import driver

    kernel.device_caches[driver.active.get_current_device()]  # the access sets kernel.ASTSource
    usual = kernel.ASTSource

    class Source(usual):  # type: ignore[misc, valid-type]
        """The source of a kernel whose translation is replaced."""

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
