"""Compile the kernels of recorded launches in parallel, and look them up in Triton's cache on disk.

Triton's own code makes the keys of the cache, so other processes load the variants that this process compiles. Nine
tenths of the work are passes of MLIR and LLVM, ptxas, and gcc for the launcher of a kernel. They do not hold the
interpreter's lock, so threads can share this work. The translation from Python holds the lock and is done for one
kernel after another, starting with the kernels that take longest to compile:

    translate    a b c d              by the thread that has the turn
    compile        aaaaaaaaa          by the thread that has translated it
                     bbbbbbb
                       ccc
                         d
"""

from __future__ import annotations

import contextlib
import dis
import functools
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from typing import Any, TypeAlias

from tonari.core.progress import Progress, ProgressLike
from tonari.core.workers import default_threads
from tonari.cuda.rehearsal import Call

logger = logging.getLogger("tonari")

compiling = threading.RLock()  # held while Triton compiles or loads a kernel: each device launches from its own thread

# Of the interpreter, for what is longer when it is compiled: see _effort.
INSTRUCTIONS_OF_STEP = 100  # of a sorting network (select/cuda/kernels/network.py)
INSTRUCTIONS_OF_PRODUCT = 3000  # of matrices
LOOPS_FROM, UNROLLED = 64, 5  # pairs from which on a network has loops, of which so many steps are unrolled

_Job: TypeAlias = tuple[Callable[[], Any], "Future[Any]"]


class _Missing(Exception):
    """Raised when Triton would begin to compile."""


def compile_together(calls: Sequence[Call], progress: ProgressLike = None) -> None:
    """Compile the variants of some calls and load them on the current device, with all threads that tonari may use.

    Parameters
    ----------
    calls : sequence of Call
    progress : None, bool or callable(done, total)
        As for :func:`tonari.search`; a callable is not called. A bar counts kernels.

    Notes
    -----
    A kernel that fails to compile is logged as a warning; its launch then compiles it again, and raises the error.
    """
    from triton import AsyncCompileMode

    count = min(default_threads(), len(calls))
    logger.info("%d kernels are compiled, by %d threads, and kept in Triton's cache", len(calls), count)
    shown: ProgressLike = False if callable(progress) else progress
    with contextlib.ExitStack() as stack:
        stack.enter_context(compiling)
        bar = stack.enter_context(Progress(shown, total=len(calls), seconds=None, label="compiling", unit="kernel"))
        pool = _Loading(count)
        stack.callback(pool.shutdown)  # also if Ctrl-C comes while threads start
        pool.start()
        # Triton's mode waits for all futures when it ends, so those that have not begun are taken back before.
        stack.enter_context(AsyncCompileMode(pool, ignore_errors=True))
        stack.callback(pool.cancel)
        for call in sorted(calls, key=_effort, reverse=True):
            with _instead_of_making_ir(call.kernel, pool.translate):
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


def _effort(call: Call) -> int:
    """Estimate the effort of compiling a kernel, from the amount of its unrolled code.

    Calls are inlined and loops over constants are unrolled. The longest of these loops run over the TILES of a screen,
    the LEVELS of a tree, and the steps of a network that sorts SIZE pairs or SLOTS candidates. A matrix product is one
    line but many instructions.
    """
    size = call.constants.get("SIZE")
    size = size if isinstance(size, int) else 1
    steps = _steps(size) if size < LOOPS_FROM else UNROLLED
    slots: int = call.constants.get("SLOTS", 1)
    times: int = call.constants.get("TILES", 1) * call.constants.get("LEVELS", 1)
    return _instructions(call.kernel.fn) * times + INSTRUCTIONS_OF_STEP * (steps + _steps(slots))


def _steps(size: int) -> int:
    """Return the number of steps of a network that sorts `size` pairs."""
    bits = size.bit_length() - 1
    return bits * (bits + 1) // 2


@functools.cache
def _instructions(function: Any, inside: frozenset[Any] = frozenset()) -> int:
    """Return the number of the interpreter's instructions in a kernel and in the Triton functions that it calls.

    A function that calls itself with smaller constants counts once.
    """
    own = list(dis.get_instructions(function))
    used = (function.__globals__.get(one.argval) for one in own if one.opname == "LOAD_GLOBAL")
    product = INSTRUCTIONS_OF_PRODUCT * any(one.argval == "dot" for one in own)
    inside |= {function}
    called = [one.fn for one in used if hasattr(one, "arg_names") and one.fn not in inside]
    return len(own) + product + sum(_instructions(one, inside) for one in called)


class _Loading(Executor):
    """Threads that compile kernels and load them on the current device of their creator.

    Kernels are translated one at a time, in the order of submission, because a translation holds the interpreter's
    lock: if all were translated together, all would finish late.

    A ThreadPoolExecutor can lose a thread if Ctrl-C interrupts its start. This class records all threads before it
    starts them.
    """

    def __init__(self, threads: int) -> None:
        import torch

        self.futures: list[Future[Any]] = []
        self._device = torch.cuda.current_device() if torch.cuda.is_available() else -1  # -1: any
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._turn = threading.Lock()  # held from taking a job until its kernel is translated
        self._translator: int | None = None  # the thread that has the turn
        self._threads = [threading.Thread(target=self._work) for _ in range(threads)]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def submit(self, compile: Callable[[], Any]) -> Future[Any]:  # type: ignore[override]
        """Call a function that compiles a kernel in one of the threads, and load the compiled kernel."""
        future: Future[Any] = Future()
        self.futures.append(future)
        self._jobs.put((compile, future))
        return future

    def translate(self, usual: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Translate a kernel in Triton's way, then let the next thread begin."""
        try:
            return usual(*given, **named)
        finally:
            self._pass_turn()

    def _work(self) -> None:
        while True:
            self._turn.acquire()
            self._translator = threading.get_ident()
            job = self._jobs.get()
            try:
                if job is None:
                    return
                compile, future = job
                if future.set_running_or_notify_cancel():
                    self._finish(compile, future)
            finally:
                self._pass_turn()  # of what is in Triton's cache, or cancelled, nothing was translated

    def _finish(self, compile: Callable[[], Any], future: Future[Any]) -> None:
        try:
            loaded = self._loaded(compile)
        except BaseException as error:  # compile_together reads it from the future
            future.set_exception(error)
        else:
            future.set_result(loaded)

    def _pass_turn(self) -> None:
        if self._translator == threading.get_ident():
            self._translator = None
            self._turn.release()

    def _loaded(self, compile: Callable[[], Any]) -> Any:
        import torch

        with torch.cuda.device(self._device):
            compiled = compile()
            _ = compiled.run  # loads the kernel, and until Triton 3.6 compiles its launcher in C
        return compiled

    def cancel(self) -> None:
        """Cancel the work that has not begun."""
        for future in self.futures:
            future.cancel()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel the work that has not begun, and wait for running work and for the threads."""
        self.cancel()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            if thread.is_alive():  # Ctrl-C may have come before it was started
                thread.join()


def compile_call(call: Call) -> Any:
    """Compile the variant of a call, or load it from Triton's cache on disk; return Triton's record of it."""
    with compiling:
        return call.kernel.warmup(grid=(1,), **call.arguments, **call.constants, **call.options)


def is_compiled(call: Call) -> bool:
    """Whether this process has the variant of a call, or has just loaded it from Triton's cache on disk."""
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
    """Hash Triton for the keys of its cache while another thread loads its driver, a part of which is compiled C."""
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
        """The source of a kernel with a different first step of compilation."""

        def make_ir(self, *given: Any, **named: Any) -> Any:
            return make_ir(super().make_ir, *given, **named)

    kernel.ASTSource = Source
    try:
        yield
    finally:
        kernel.ASTSource = usual


def _not_made(usual: Callable[..., Any], *given: Any, **named: Any) -> Any:
    raise _Missing
