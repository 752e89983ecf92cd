"""Compile the variants of noted launches, several at once, and see whether Triton has one in its cache on disk.

Triton's own code makes the key of the cache, so that a variant that one process compiles is the one that another loads.
Two thirds of the work are passes of MLIR and LLVM, ptxas, and gcc for what launches a kernel: none of them holds the
interpreter's lock, so threads share it.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from typing import Any

from tonari.core.progress import Progress, ProgressLike
from tonari.core.workers import default_threads
from tonari.cuda.rehearsal import Call

logger = logging.getLogger("tonari")

compiling = threading.RLock()  # held while Triton compiles or loads a kernel: each device launches from its own thread
_turn = threading.Lock()  # held while one kernel is translated from Python


class _Missing(Exception):
    """Raised where Triton begins to compile."""


def compile_together(calls: Sequence[Call], progress: ProgressLike = None) -> None:
    """Compile the variants of some calls and load them on the current device, by as many threads as tonari may use.

    Parameters
    ----------
    calls : sequence of Call
    progress : None, bool or callable(done, total)
        As for :func:`tonari.search`; a callable is not called. A bar counts kernels.

    Notes
    -----
    A kernel that fails is logged as a warning: whoever launches it compiles it then, and gets the error.
    """
    from triton import AsyncCompileMode

    count = min(default_threads(), len(calls))
    logger.info("%d kernels are compiled, by %d threads, and kept in Triton's cache", len(calls), count)
    shown: ProgressLike = False if callable(progress) else progress
    with contextlib.ExitStack() as stack:
        stack.enter_context(compiling)
        bar = stack.enter_context(Progress(shown, total=len(calls), seconds=None, label="compiling", unit="kernel"))
        pool = stack.enter_context(_Loading(count))
        # Triton's mode waits for all futures when it ends, so those that have not begun are taken back before.
        stack.enter_context(AsyncCompileMode(pool, ignore_errors=True))
        stack.callback(pool.cancel)
        for call in sorted(calls, key=_effort, reverse=True):
            with _instead_of_making_ir(call.kernel, _made_in_turn):
                compile_call(call)
        for _ in as_completed(pool.futures):
            bar.add(1)
    failed = [error for future in pool.futures if (error := future.exception()) is not None]
    if failed:
        logger.warning(
            "%d of %d kernels could not be compiled ahead, and are compiled when they are launched: %s: %s",
            len(failed),
            len(calls),
            type(failed[0]).__name__,
            failed[0],
        )


def _effort(call: Call) -> tuple[bool, int]:
    """Return what orders kernels about as long as they take to compile.

    The screen on Hopper's matrix units takes a quarter of the time of all; of the others those with many constants.
    """
    return call.has_descriptors, len(call.constants)


class _Loading(Executor):
    """Threads that compile kernels and load them on the device that is current where they are made."""

    def __init__(self, threads: int) -> None:
        import torch

        self.futures: list[Future[Any]] = []
        self._pool = ThreadPoolExecutor(threads)
        self._device = torch.cuda.current_device() if torch.cuda.is_available() else -1  # -1: any

    def submit(self, compile: Callable[[], Any]) -> Future[Any]:  # type: ignore[override]
        """Call a function that compiles a kernel, in one of the threads, and load what it returns."""
        self.futures.append(self._pool.submit(self._loaded, compile))
        return self.futures[-1]

    def _loaded(self, compile: Callable[[], Any]) -> Any:
        import torch

        with torch.cuda.device(self._device):
            compiled = compile()
            _ = compiled.run  # loads the kernel, and until Triton 3.6 compiles its launcher in C
        return compiled

    def cancel(self) -> None:
        """Take back what has not begun."""
        for future in self.futures:
            future.cancel()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


def compile_call(call: Call) -> Any:
    """Compile the variant of a call, or load it from Triton's cache on disk; return Triton's record of it."""
    with compiling:
        return call.kernel.warmup(grid=(1,), **call.arguments, **call.constants, **call.options)


def is_compiled(call: Call) -> bool:
    """Whether this process has the variant of a call, or can load it from Triton's cache on disk, which it does."""
    with compiling:
        _begin()
        try:
            with _instead_of_making_ir(call.kernel, _not_made):
                compile_call(call)
        except _Missing:
            return False
    return True


@functools.cache
def _begin() -> None:
    """Hash Triton, for the keys of its cache, while its driver is loaded, of which it compiles a part in C."""
    from triton.runtime import driver
    from triton.runtime.cache import triton_key

    with ThreadPoolExecutor(1) as pool:
        hashed = pool.submit(triton_key)
        driver.active.get_current_device()
        hashed.result()


@contextlib.contextmanager
def _instead_of_making_ir(kernel: Any, make_ir: Callable[..., Any]) -> Iterator[None]:
    """Within, what Triton is told to compile of a kernel begins with `make_ir`, given the usual method and its
    arguments; whatever is in Triton's cache is loaded as usual."""
    from triton.runtime import driver

    kernel.device_caches[driver.active.get_current_device()]  # sets kernel.ASTSource
    usual = kernel.ASTSource

    class Source(usual):  # type: ignore[misc, valid-type]
        """The source of a kernel, with another first step."""

        def make_ir(self, *given: Any, **named: Any) -> Any:
            return make_ir(super().make_ir, *given, **named)

    kernel.ASTSource = Source
    try:
        yield
    finally:
        kernel.ASTSource = usual


def _not_made(usual: Callable[..., Any], *given: Any, **named: Any) -> Any:
    raise _Missing


def _made_in_turn(usual: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Translate one kernel at a time: this holds the interpreter's lock, and side by side all would end last."""
    with _turn:
        return usual(*given, **named)
