"""Threads that compile kernels, compile the launchers that Triton writes in C, and load both."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

logger = logging.getLogger("tonari")

_Job: TypeAlias = tuple[Callable[[], Any], "Future[Any]"]


class Loading(Executor):
    """Threads that compile kernels and load them on the current device of their creator.

    Kernels are translated one after another, in the order of submission. Translation holds the interpreter's lock: if
    all kernels were translated at the same time, the first would be finished, and its compilation begin, only when
    nearly all are.

    A ThreadPoolExecutor can lose track of a thread if Ctrl-C interrupts the thread's start. This class records all
    threads before it starts them.

    Attributes
    ----------
    futures : list of Future
        The futures of all submitted functions; each result is a loaded kernel.
    threads : int
        The number of threads.
    missing : int
        The number of kernels so far that were not in Triton's cache.
    """

    def __init__(self, threads: int) -> None:
        import torch

        self.futures: list[Future[Any]] = []
        self.threads, self.missing = threads, 0
        self._device = torch.cuda.current_device() if torch.cuda.is_available() else -1  # -1: no device
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._launchers: SimpleQueue[_Launcher | None] = SimpleQueue()
        self._launcher_of = threading.local()  # per thread: the event for the launcher of its kernel
        self._turn = threading.Lock()  # held by a thread from the beginning of its job until its kernel is translated
        self._translator: int | None = None  # the thread that holds `_turn`
        self._started = False
        self._threads = [threading.Thread(target=self._work) for _ in range(threads)]
        builders = -(-threads // 2) if _launchers_are_compiled() else 0  # a launcher compiles in half the time, or less
        self._builders = [threading.Thread(target=self._build) for _ in range(builders)]

    def start(self) -> None:
        """Start the threads, if they have not been started."""
        if self._started:
            return
        self._started = True
        for thread in [*self._builders, *self._threads]:  # the threads that wait for builders start last
            thread.start()

    def submit(self, compile: Callable[[], Any]) -> Future[Any]:  # type: ignore[override]
        """Queue a function that compiles a kernel, for one of the threads; return the future of the loaded kernel."""
        future: Future[Any] = Future()
        self.futures.append(future)
        self._jobs.put((compile, future))
        return future

    def prepare(self, source: Any) -> None:
        """Let another thread compile a kernel's launcher, which depends only on the kernel's signature."""
        if self._builders:
            source.launcher_built = threading.Event()
            self._launchers.put(_Launcher(source, source.launcher_built))

    def translate(self, usual: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Translate a kernel by Triton's own method, then let another thread translate the next one."""
        self.missing += 1  # no lock is needed, since kernels are translated one after another
        self._launcher_of.built = getattr(usual.__self__, "launcher_built", None)  # type: ignore[attr-defined]
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
                self._pass_turn()  # if `translate` was not called (kernel cached or cancelled)

    def _build(self) -> None:
        while (launcher := self._launchers.get()) is not None:
            try:
                _compile_launcher(launcher.source)
            except Exception:  # the thread of the kernel will compile the launcher again, and raise the error
                logger.debug("a launcher is compiled after its kernel", exc_info=True)
            finally:
                launcher.built.set()

    def _finish(self, compile: Callable[[], Any], future: Future[Any]) -> None:
        self._launcher_of.built = None
        try:
            loaded = self._loaded(compile)
        except BaseException as error:  # for compile_together, which reads the future
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
            _ = compiled.run  # the access loads the kernel and its launcher
        return compiled

    def cancel(self) -> None:
        """Cancel the work that has not begun."""
        for future in self.futures:
            future.cancel()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel the work that has not begun, and wait until the threads have finished their work and ended."""
        self.cancel()
        for threads, jobs in ((self._threads, self._jobs), (self._builders, self._launchers)):
            for _ in threads:
                jobs.put(None)
            for thread in threads:
                if thread.is_alive():  # Ctrl-C may have prevented the start of the thread
                    thread.join()


class _Launcher(NamedTuple):
    """A launcher to compile from C: the source of its kernel, and an event to set when the compilation has ended."""

    source: Any
    built: threading.Event


def _launchers_are_compiled() -> bool:
    """Whether Triton compiles a launcher in C for each kernel."""
    import triton

    return tuple(map(int, triton.__version__.split(".")[:2])) < (3, 7)


def _compile_launcher(source: Any) -> None:
    """Compile the launcher of a kernel in advance; Triton keeps the result on disk, and finds it later.

    The launcher depends on the kernel's signature, and on whether the device supports tensor descriptors, as Hopper and
    later devices do.
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
