"""Compile the kernels of recorded launches in parallel, and look them up in Triton's cache on disk.

Triton's own code makes the keys of its cache, so other processes can load the variants that this process compiles. Nine
tenths of the work are passes of MLIR and LLVM, ptxas, and gcc for the launcher of a kernel. This work does not hold the
interpreter's lock, so threads share it. The translation of a kernel from Python holds the lock, and so would linking
libdevice (metrics/kernels/instructions.py). Kernels are therefore translated one after another, first the kernels that
take longest to compile:

    look up      a b c d              in Triton's cache on disk, by the thread that searches
    translate      a b c d            by one thread after another
    compile          aaaaaaaaa        by the thread that has translated the kernel
                       bbbbbbb
                         ccc
                           d
    launchers        a b c d          until Triton 3.6: from the signature, in C, by other threads at the same time
"""

from __future__ import annotations

import contextlib
import contextvars
import dis
import functools
import logging
import mmap
import os
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

from tonari.core.process.garbage import collection_off
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.process.workers import default_threads
from tonari.cuda import tuning
from tonari.cuda.compiling.rehearsal import Call
from tonari.cuda.compiling.translation import translating

logger = logging.getLogger("tonari")

compiling = threading.RLock()  # held while Triton compiles or loads a kernel: each device launches from its own thread

LOOPS_FROM, UNROLLED = 64, 5  # networks of 64 pairs or more have loops, and five unrolled steps

_Job: TypeAlias = tuple[Callable[[], Any], "Future[Any]"]


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
        stack.enter_context(_binaries_alone())
        stack.enter_context(collection_off())  # collecting would take a sixth of the time of translation
        stack.enter_context(translating())
        pool = _Loading(min(default_threads(), len(calls)))
        stack.callback(pool.shutdown)  # also after Ctrl-C while threads start
        # Triton's mode waits for all futures when it ends, so futures that have not begun are cancelled before.
        stack.enter_context(AsyncCompileMode(pool, ignore_errors=True))
        stack.callback(pool.cancel)
        for call in sorted(calls, key=_effort, reverse=True):
            if contextvars.Context().run(is_compiled, call):  # outside of Triton's mode
                continue
            pool.start()
            with _instead_of_making_ir(call.kernel, pool.translate):
                compile_call(call)
        count = len(pool.futures)
        if count:
            logger.info(
                "%d kernels are compiled, by %d threads, and kept in Triton's cache", count, min(pool.threads, count)
            )
        with Progress(shown, total=count, seconds=None, label="compiling", unit="kernel") as bar:
            for _ in as_completed(pool.futures):
                bar.add(1)
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


@contextlib.contextmanager
def _binaries_alone() -> Iterator[None]:
    """Make Triton keep only the binaries of kernels within this context, unless its own setting decides.

    It would otherwise print and store the kernel after each step of compilation, with the interpreter's lock held. That
    takes a tenth of the time of translation.
    """
    from triton import knobs

    settings, name = vars(knobs.compilation), "store_binary_only"
    if name in settings or "TRITON_STORE_BINARY_ONLY" in os.environ:
        yield
        return
    settings[name] = True  # an assignment would also set the variable of the environment
    try:
        yield
    finally:
        settings.pop(name, None)


def _effort(call: Call) -> int:
    """Estimate the effort of compiling a kernel, from the amount of its unrolled code.

    Calls are inlined and loops over constants are unrolled. The longest of these loops run over the TILES of a screen,
    the LEVELS of a tree, and the steps of a network that sorts SIZE pairs or SLOTS candidates. A matrix product is one
    line but many instructions; so is a line that processes the A runs of RUN values of a thread. A kernel contains code
    for all metrics, but compiles only the code of one.
    """
    size = call.constants.get("SIZE")
    size = size if isinstance(size, int) else 1
    steps = _steps(size) if size < LOOPS_FROM else UNROLLED
    slots: int = call.constants.get("SLOTS", 1)
    times: int = call.constants.get("TILES", 1) * call.constants.get("LEVELS", 1)
    if "RUN" in call.constants:
        times *= max(1, call.constants["A"] * call.constants["RUN"] // tuning.VALUES_OF_THREAD)
    own = _instructions(call.kernel.fn) // (tuning.METRICS if "METRIC" in call.constants else 1)
    return own * times + tuning.INSTRUCTIONS_OF_STEP * (steps + _steps(slots))


def _steps(size: int) -> int:
    """Return the number of steps of a network that sorts `size` pairs."""
    bits = size.bit_length() - 1
    return bits * (bits + 1) // 2


def _instructions(function: Any, inside: frozenset[Any] = frozenset()) -> int:
    """Return the number of the interpreter's instructions in a kernel and in the Triton functions that it calls.

    A function that calls itself with smaller constants counts once.
    """
    own, called = _own_instructions(function)
    inside |= {function}
    return own + sum(_instructions(one, inside) for one in called if one not in inside)


@functools.cache
def _own_instructions(function: Any) -> tuple[int, list[Any]]:
    """Return the number of a function's instructions (a product counts as many) and its calls of Triton functions."""
    own = list(dis.get_instructions(function))
    used = (function.__globals__.get(one.argval) for one in own if one.opname == "LOAD_GLOBAL")
    product = tuning.INSTRUCTIONS_OF_PRODUCT * any(one.argval == "dot" for one in own)
    return len(own) + product, [one.fn for one in used if hasattr(one, "arg_names")]


class _Loading(Executor):
    """Threads that compile kernels and load them on the current device of their creator.

    Kernels are translated one at a time, in the order of submission. A translation holds the interpreter's lock, so if
    all were translated at the same time, all would finish late.

    A ThreadPoolExecutor can lose a thread if Ctrl-C interrupts its start. This class records all threads before it
    starts them.

    Attributes
    ----------
    futures : list of Future
        The futures of all submitted functions.
    threads : int
        The number of threads.
    """

    def __init__(self, threads: int) -> None:
        import torch

        self.futures: list[Future[Any]] = []
        self.threads = threads
        self._device = torch.cuda.current_device() if torch.cuda.is_available() else -1  # -1: any
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._launchers: SimpleQueue[_Launcher | None] = SimpleQueue()
        self._launcher_of = threading.local()  # future of the kernel that this thread has translated
        self._turn = threading.Lock()  # a thread holds it from the start of a job until its kernel is translated
        self._translator: int | None = None  # the thread that translates at present
        self._started = False
        self._threads = [threading.Thread(target=self._work) for _ in range(threads)]
        builders = -(-threads // 2) if _launchers_are_compiled() else 0  # a launcher takes half as long or less
        self._builders = [threading.Thread(target=self._build) for _ in range(builders)]

    def start(self) -> None:
        """Start the threads, if they have not been started."""
        if self._started:
            return
        self._started = True
        for thread in [*self._builders, *self._threads]:  # the waiting thread is last
            thread.start()

    def submit(self, compile: Callable[[], Any]) -> Future[Any]:  # type: ignore[override]
        """Queue a function that compiles a kernel, for one of the threads; return the future of the loaded kernel."""
        future: Future[Any] = Future()
        self.futures.append(future)
        self._jobs.put((compile, future))
        return future

    def translate(self, usual: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Translate a kernel as Triton does, then let the next thread begin; another thread compiles the launcher."""
        try:
            return usual(*given, **named)
        finally:
            self._pass_turn()
            if self._builders:
                self._launcher_of.built = built = threading.Event()
                self._launchers.put(_Launcher(usual.__self__, built))  # type: ignore[attr-defined]

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
                self._pass_turn()  # a kernel from Triton's cache, or a cancelled one, was not translated

    def _build(self) -> None:
        while (launcher := self._launchers.get()) is not None:
            try:
                _compile_launcher(launcher.source)
            except Exception:  # the kernel's thread compiles it again, and raises the error
                logger.debug("a launcher is compiled after its kernel", exc_info=True)
            finally:
                launcher.built.set()

    def _finish(self, compile: Callable[[], Any], future: Future[Any]) -> None:
        self._launcher_of.built = None
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
            if self._launcher_of.built is not None:
                self._launcher_of.built.wait()
            _ = compiled.run  # loads the kernel and its launcher, which it compiles if it has to
        return compiled

    def cancel(self) -> None:
        """Cancel the work that has not begun."""
        for future in self.futures:
            future.cancel()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel work that has not begun; wait for running work, and for the threads to end."""
        self.cancel()
        for threads, jobs in ((self._threads, self._jobs), (self._builders, self._launchers)):
            for _ in threads:
                jobs.put(None)
            for thread in threads:
                if thread.is_alive():  # Ctrl-C may have prevented its start
                    thread.join()


class _Launcher(NamedTuple):
    """A launcher that is compiled from C: the source of its kernel, and an event that is set at the end."""

    source: Any
    built: threading.Event


def _launchers_are_compiled() -> bool:
    """Whether Triton compiles a launcher in C for each kernel."""
    import triton

    return tuple(map(int, triton.__version__.split(".")[:2])) < (3, 7)


def _compile_launcher(source: Any) -> None:
    """Compile the launcher of a kernel before the kernel; Triton keeps the result on disk.

    The launcher depends on the signature, and on whether tensor descriptors are passed as such, as from Hopper on.
    """
    from triton.runtime import driver

    described = [kind for kind in source.signature.values() if isinstance(kind, str) and kind.startswith("tensordesc")]
    nothing = dict.fromkeys(
        (f"{kind}_scratch_{what}" for kind in ("global", "profile") for what in ("size", "align")), 0
    )
    driver.active.launcher_cls(
        source,
        SimpleNamespace(tensordesc_meta=[{}] * len(described), launch_cooperative_grid=0, launch_pdl=0, **nothing),
    )


def compile_call(call: Call) -> Any:
    """Compile the variant of a call, or load it from Triton's cache on disk; return Triton's record of the variant."""
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
def begin_soon() -> list[Future[Any]]:
    """Start two threads that prepare the first compilation; neither holds the interpreter's lock for long.

    One hashes Triton's code, for the keys of its cache. The other loads Triton's driver and compiles a part of it in C.
    """
    # Imported here: threads that import Triton's modules at the same time would wait for each other.
    from triton.runtime import cache, driver

    pool = ThreadPoolExecutor(2)
    try:
        return [pool.submit(_key, cache), pool.submit(lambda: driver.active.utils)]
    finally:
        pool.shutdown(wait=False)


def _key(cache: Any) -> str:
    """Return Triton's key, from `triton.runtime.cache`, with its library hashed in one piece.

    Triton hashes this library, of 400 MB, in 400 pieces, and needs the interpreter's lock twice for each. A busy thread
    gives up the lock every 5 ms, so most of the hashing would have to wait until the search waits.
    """
    cache.open = _open_whole
    try:
        return str(cache.triton_key())
    finally:
        del cache.open


@contextlib.contextmanager
def _open_whole(path: Any, mode: str = "r", *more: Any, **named: Any) -> Iterator[Any]:
    """Open a file as open() does; but if it is large and binary, reading returns all of it, whatever is asked for."""
    with open(path, mode, *more, **named) as file:
        if mode != "rb" or os.path.getsize(path) < tuning.WHOLE_BYTES:
            yield file
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
            pieces = iter([whole])
            yield SimpleNamespace(read=lambda size=-1: next(pieces, b""))


def is_beginning() -> bool:
    """Whether the preparations for the first kernel have begun and are not done."""
    return begin_soon.cache_info().currsize > 0 and not all(future.done() for future in begin_soon())


def get_ready(calls: Collection[Call]) -> None:
    """Prepare these calls as far as possible without Triton's key and driver, while threads prepare these two.

    Otherwise this thread would only wait. This is half of the time of looking up kernels.
    """
    with contextlib.suppress(ImportError):  # a version of Triton may have it elsewhere
        import triton.experimental.gluon.nvidia.hopper as _  # Triton does so at the first tensor that it is given
    for call in sorted(calls, key=_effort, reverse=True):  # efforts are kept
        _ = call.kernel.cache_key  # a hash of its source and of the functions that it calls


@functools.cache
def _begin() -> None:
    """Wait for the preparations for the first kernel of a process."""
    from triton.runtime import driver

    for future in begin_soon():
        future.result()
    driver.active.get_current_device()


@contextlib.contextmanager
def _instead_of_making_ir(kernel: Any, make_ir: Callable[..., Any]) -> Iterator[None]:
    """Return a context in which Triton's compilation of a kernel begins with `make_ir` instead of its usual method.

    `make_ir` receives the usual method and its arguments. A kernel in Triton's cache is loaded as usual.
    """
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
