"""Processes that compile kernels for this process, at the first search on a machine.

Translation of kernels holds the interpreter's lock, so a single process translates one kernel after another. If
Triton's cache on disk is empty, nearly all kernels of the search that begins are missing; then processes are started
while the search is imported. Each imports Triton, but neither torch nor CUDA, and reports that it is ready. A thread of
the pool (loading.py) sends the source of a kernel to a process that is ready and waits; the process stores the kernel
in Triton's cache, where the thread finds it. If no process is ready, or if a process fails, the thread compiles the
kernel itself.

    start()      starts the processes; they end with this process, with close(), or if they are idle for a minute
    take()       returns a process that is ready
    compile()    compiles a kernel in it
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import pickle
import select
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

from tonari.core.process.workers import default_threads
from tonari.cuda import tuning

logger = logging.getLogger("tonari")

_PROGRAM = "import sys; sys.path[:] = {path!r}; from tonari.cuda.compiling.processes import answer; answer()"
_READY = b"r"
# Modules that most kernels need, imported before the first of them arrives.
_EARLY = "triton.language.extra.cuda.libdevice", "triton.experimental.gluon", "tonari.metrics.kernels.terms"


class CompiledElsewhere(Exception):
    """Raised instead of translating a kernel that another process has compiled."""


class Compiler:
    """A process that compiles one kernel after another."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in a terminal is for this process alone
        )
        self._is_ready = False

    @property
    def _pipes(self) -> tuple[Any, Any]:
        return self._process.stdin, self._process.stdout

    def is_ready(self) -> bool:
        """Whether the process has imported Triton and waits for a kernel."""
        if not self._is_ready:
            _, answers = self._pipes
            self._is_ready = bool(select.select([answers], [], [], 0)[0]) and answers.read(1) == _READY
        return self._is_ready

    def compile(self, source: Any, options: Any) -> bool:
        """Compile a kernel into Triton's cache; return whether that succeeded.

        Parameters
        ----------
        source : triton.compiler.ASTSource
            An instance of a subclass that differs from Triton's class only in its first step.
        options : object
            Triton's options, parsed.
        """
        from triton.runtime import cache, driver

        usual = type(source).__mro__[1]
        parts = usual, source.fn, source.signature, source.constants, source.attrs
        to_process, answers = self._pipes
        try:
            _Pickler(to_process).dump((cache.triton_key(), driver.active.get_current_target(), vars(options), parts))
            to_process.flush()
            error = pickle.load(answers)
        except (OSError, EOFError, pickle.PicklingError) as failure:
            error = repr(failure)
        if error:
            logger.debug("%s is compiled by a thread: %s", source.name, error)
        return not error

    def kill(self) -> None:
        """End the process, without waiting."""
        self._process.kill()

    def wait(self) -> None:
        """Wait for the end of the process, and close its pipes."""
        self._process.wait()
        for pipe in self._pipes:
            try:
                pipe.close()
            except BrokenPipeError:  # part of a kernel had not been sent
                logger.debug("a process ended before it had its kernel")


class Compilers:
    """Some processes, which threads share."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._idle = [Compiler() for _ in range(count)]
        self._all = list(self._idle)

    def __len__(self) -> int:
        return len(self._all)

    def take(self) -> Compiler | None:
        """Return a process that is ready, for one thread; None if there is none."""
        with self._lock:
            for at, one in enumerate(self._idle):
                if one.is_ready():
                    return self._idle.pop(at)
        return None

    def give_back(self, one: Compiler) -> None:
        """Return a process that has answered."""
        with self._lock:
            self._idle.append(one)

    def close(self) -> None:
        """End all processes; no thread may be waiting for one."""
        with self._lock:
            self._idle = []
            ended, self._all = self._all, []
        for one in ended:
            one.kill()
        for one in ended:
            one.wait()


@functools.cache
def start() -> Compilers:
    """Start the processes, at most once, if Triton's cache is empty and there are processors for them."""
    count = min(tuning.COMPILERS, default_threads() // 2)
    if count < 2 or not sys.executable or not _is_empty(_cache_of(os.environ)):
        return Compilers(0)
    try:
        return Compilers(count)
    except OSError:
        logger.debug("threads alone compile kernels", exc_info=True)
        return Compilers(0)


def _cache_of(environment: Any) -> Path:
    """Return the folder of Triton's cache, without importing Triton."""
    home = environment.get("TRITON_HOME") or Path.home()
    return Path(environment.get("TRITON_CACHE_DIR") or Path(home, ".triton", "cache"))


def _is_empty(folder: Path) -> bool:
    """Whether a folder is empty or missing."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except FileNotFoundError:
        return True


class _Pickler(pickle.Pickler):
    """Stores Triton's functions by their names, and everything else as usual."""

    def persistent_id(self, one: Any) -> tuple[str, str] | None:
        from triton.runtime.jit import JITCallable

        return (one.fn.__module__, one.fn.__name__) if isinstance(one, JITCallable) else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: Any) -> Any:
        module, function = name
        return getattr(importlib.import_module(module), function)


def answer() -> None:
    """Compile kernels from standard input, until it ends or nothing arrives for a while."""
    answers: BinaryIO = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that nothing else is written there
    import triton

    from tonari.core.process.garbage import collection_off
    from tonari.cuda.compiling.translation import binaries_alone, translating

    for name in _EARLY:
        importlib.import_module(name)

    answers.write(_READY)
    answers.flush()
    requests = os.fdopen(0, "rb")
    with collection_off(), translating(), binaries_alone():
        while select.select([requests], [], [], tuning.IDLE_SECONDS)[0] and requests.peek(1):
            error = ""
            try:
                _compile(triton, requests)
            except Exception as failure:  # the thread that asked compiles the kernel, and raises the error
                error = repr(failure)
            answers.write(pickle.dumps(error))
            answers.flush()


def _compile(triton: Any, asked: Any) -> None:
    from triton.runtime import cache

    key, target, options, (kind, *parts) = _Unpickler(asked).load()
    cache.triton_key = lambda: key  # a hash of Triton's library, of 400 MB
    triton.compile(kind(*parts), target=target, options=options)
