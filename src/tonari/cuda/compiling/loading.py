"""Threads that compile kernels and load them, and the launchers that Triton compiles in C."""

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
    missing : int
        The number of kernels, so far, that were not in Triton's cache.
    """

    def __init__(self, threads: int) -> None:
        import torch

        self.futures: list[Future[Any]] = []
        self.threads, self.missing = threads, 0
        self._device = torch.cuda.current_device() if torch.cuda.is_available() else -1  # -1: any
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._launchers: SimpleQueue[_Launcher | None] = SimpleQueue()
        self._launcher_of = threading.local()  # event of the kernel that this thread has translated
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

    def prepare(self, source: Any) -> None:
        """Let another thread compile the launcher of a kernel, which depends on its signature only."""
        if self._builders:
            source.launcher_built = threading.Event()
            self._launchers.put(_Launcher(source, source.launcher_built))

    def translate(self, usual: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Translate a kernel as Triton does, then let the next thread begin."""
        self.missing += 1  # needs no lock, since one translation follows another
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
