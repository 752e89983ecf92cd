"""Compile what a search will launch before it launches it, in many processes at once.

    dispatch     expecting(stages)     how the search that begins is rehearsed (rehearsal.py); costs nothing by itself
    launch       ready(call)           a variant that this process does not have:
                                           in Triton's cache on disk      nothing to do
                                           else, once for each search     all that the rehearsal launches and Triton
                                                                          lacks goes to a process (compile_server.py)
                                           being compiled there           wait for that variant, and for no other

What a search needs first is compiled first; what it may need later, such as retries, follows while it runs. Whatever
fails here is logged as a warning, and the search compiles by itself as it goes.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextvars import ContextVar
from typing import IO, Any, ClassVar, TypeAlias

from tonari.core.progress import Progress, ProgressLike
from tonari.core.workers import default_threads
from tonari.cuda.compile import compile_call, is_cache_empty, is_compiled, make_key
from tonari.cuda.compile_server import Orders
from tonari.cuda.pickling import dump_call
from tonari.cuda.rehearsal import Call, Card, rehearsing

logger = logging.getLogger("tonari")

WAKE_SECONDS = 0.1  # how often a wait shows that it goes on
# Makes some rows on the device "meta" and searches them; the first of several is what is needed at once.
Stage: TypeAlias = Callable[[], None]


class Expectation:
    """What a search that has begun is expected to launch."""

    def __init__(self, stages: Callable[[], Sequence[Stage]], progress: ProgressLike) -> None:
        self.stages, self.progress = stages, progress
        self.used = False


_expected: ContextVar[Expectation | None] = ContextVar("tonari_expected", default=None)


@contextlib.contextmanager
def expecting(stages: Callable[[], Sequence[Stage]], progress: ProgressLike = None) -> Iterator[None]:
    """Compile ahead, if a kernel has to be compiled, what rehearsals of some stages launch.

    Parameters
    ----------
    stages : callable
        Called only if a kernel has to be compiled; returns the rehearsals, the one that is needed at once first.
    progress : None, bool or callable(done, total)
        As for :func:`tonari.search`; a callable counts pairs, and hears nothing of kernels. Within another expectation
        that one's holds.
    """
    outer = _expected.get()
    before = _expected.set(Expectation(stages, progress if outer is None else outer.progress))
    try:
        yield
    finally:
        _expected.reset(before)


def ready(call: Call, device: Any) -> None:
    """Return when a call is compiled, if another process does that, or is to do it; else at once."""
    expected = _expected.get()
    new = expected is not None and not expected.used
    if not new and not Batch.any():
        return
    card = card_of(device)
    batch = Batch.of(card, call)
    if batch is None and expected is not None and new and can_fork() and (is_cache_empty() or not is_compiled(call)):
        expected.used = True
        batch = compile_ahead(expected.stages, card, progress=expected.progress) and Batch.of(card, call)
        make_key()  # while others compile
    if batch is not None:
        batch.wait(call)


def compile_ahead(stages: Callable[[], Sequence[Stage]], card: Card, *, progress: ProgressLike = None) -> Batch | None:
    """Start to compile what rehearsals launch and Triton lacks; None if there is nothing that can be.

    No error leaves this function: what fails is logged.
    """
    batch = Batch(card, progress)  # starts its process, which imports what it needs meanwhile
    try:
        needed, later = _missing(stages, card)
        if batch.order(needed, later):
            return batch
    except Exception:  # whatever a rehearsal meets, the search itself has to meet, or to go on without
        logger.warning("kernels cannot be compiled ahead, and are compiled one by one", exc_info=True)
    batch.close()
    return None


def compile_all(stages: Callable[[], Sequence[Stage]], device: Any, *, progress: ProgressLike = None) -> int:
    """Compile all that rehearsals launch and Triton lacks, wait for it, and return how many kernels that took."""
    card = card_of(device)
    if can_fork():
        batch = compile_ahead(stages, card, progress=progress)
        if batch is not None:
            batch.wait()
            return batch.count
    needed, later = _missing(stages, card)
    for call in needed + later:
        compile_call(call)
    return len(needed + later)


def _missing(stages: Callable[[], Sequence[Stage]], card: Card) -> tuple[list[Call], list[Call]]:
    """Return the calls of the first rehearsal, and of the others, that Triton has not compiled."""
    seen: dict[tuple[Hashable, ...], Call] = {}
    first = 0
    for stage in stages():
        with rehearsing(card) as rehearsal:
            stage()
        for variant, call in rehearsal.calls.items():
            seen.setdefault(variant, call)
        first = first or len(seen)
    empty = is_cache_empty()
    calls = [call for call in seen.values() if Batch.of(card, call) is None and (empty or not is_compiled(call))]
    needed = set(list(seen)[:first])
    return [call for call in calls if call.variant in needed], [call for call in calls if call.variant not in needed]


def can_fork() -> bool:
    """Whether this machine and this process can start one that compiles."""
    import torch

    return bool(sys.executable) and hasattr(os, "fork") and torch.version.hip is None and default_threads() > 1


def card_of(device: Any) -> Card:
    """Return what launches on a CUDA device depend on."""
    import torch

    found = torch.cuda.get_device_properties(device)
    return Card((found.major, found.minor), found.multi_processor_count)


class Batch:
    """Kernels that a process of ours compiles."""

    _all: ClassVar[dict[tuple[Card, tuple[Hashable, ...]], Batch]] = {}  # by what each compiles, until it is done

    @classmethod
    def any(cls) -> bool:
        """Whether a kernel is being compiled."""
        return bool(cls._all)

    @classmethod
    def of(cls, card: Card, call: Call) -> Batch | None:
        """Return the batch that compiles a call."""
        return cls._all.get((card, call.variant))

    def __init__(self, card: Card, progress: ProgressLike) -> None:
        self._card = card
        self._progress: ProgressLike = False if callable(progress) else progress
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._calls: list[Call] = []
        self._left: set[int] = set()
        self._needed = 0
        self._bar: Progress | None = None
        self._text = b""
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115, closed with the process
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        # One thread: a process with several cannot be forked safely.
        single = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tonari.cuda.compile_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=os.environ | single | {"PYTHONPATH": paths, "PYTHONSAFEPATH": "1"},
            start_new_session=True,
        )
        _open.append(self)

    @property
    def count(self) -> int:
        """Number of kernels."""
        return len(self._calls)

    def order(self, needed: list[Call], later: list[Call]) -> bool:
        """Tell the process what to compile; whether it is worth telling."""
        self._calls, self._needed = needed + later, len(needed)
        if len(self._calls) < 2:
            return False
        major, minor = self._card.capability
        target = "cuda", 10 * major + minor, 32
        processes = default_threads()
        written = pickle.dumps(Orders([dump_call(call) for call in self._calls], len(needed), target, processes))
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: wait() says why
            self._process.stdin.write(written)
            self._process.stdin.flush()
        self._left = set(range(len(self._calls)))
        for call in self._calls:
            Batch._all[self._card, call.variant] = self
        logger.info("%d kernels are compiled, by %d processes, and kept in Triton's cache", len(self._calls), processes)
        return True

    def wait(self, call: Call | None = None) -> None:
        """Wait until one call is compiled, or all are; if that failed, say so. The process goes on with the others."""
        with self._lock:
            waited = None if call is None else call.variant
            try:
                while any(waited in (None, self._calls[number].variant) for number in self._left):
                    self._look(WAKE_SECONDS)
                if not self._left:
                    self.close()
            except BaseException:  # Ctrl-C
                self.close()
                raise

    def _look(self, seconds: float) -> None:
        """Read what has been said about calls that are done; wait for it for some seconds."""
        assert self._process.stdout is not None
        if self._bar is None and self._needed:
            total = self._needed
            self._bar = Progress(self._progress, total=total, seconds=None, label="compiling", unit="kernel")
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            if self._bar is not None:
                self._bar.add(0)
            return
        said = os.read(self._process.stdout.fileno(), 1 << 16)
        if not said:
            self._ended()
            return
        *lines, self._text = (self._text + said).split(b"\n")
        for line in lines:
            number, error = json.loads(line)
            self._done(number, error)

    def _done(self, number: int, error: str | None) -> None:
        call = self._calls[number]
        self._left.discard(number)
        Batch._all.pop((self._card, call.variant), None)
        if error is not None:
            logger.warning("%s is compiled where it is needed: ahead of that, %s", call.name, error)
        if self._bar is not None and number < self._needed:
            self._bar.add(1)

    def _ended(self) -> None:
        """The process has ended before it was done."""
        code = self._process.wait()
        self._log.seek(0)
        words = self._log.read().decode(errors="replace").strip()[-500:]
        logger.warning("kernels are compiled one by one: the process for that ended with status %d. %s", code, words)
        self.close()

    def close(self) -> None:
        """End the process, and those that it has started."""
        with self._lock:
            if self in _open:
                _open.remove(self)
            for call in self._calls:
                Batch._all.pop((self._card, call.variant), None)
            self._left = set()
            if self._bar is not None:
                self._bar.__exit__()
                self._bar = None
            if self._owner != os.getpid() or self._log.closed:
                return
            if self._process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout, self._log):
                assert stream is not None
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


_open: list[Batch] = []


@atexit.register
def _close_all() -> None:
    for batch in list(_open):
        batch.close()
