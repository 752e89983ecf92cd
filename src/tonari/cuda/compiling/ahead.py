"""Compile all kernels of a search together, as soon as one of them turns out to be missing.

    tonari       begin_on_cuda()       if the process has used CUDA, threads begin to load the modules that Triton
                                       needs for any kernel, while the first public function is imported
    dispatch     expecting(stage)      notes in 2 µs how to rehearse the search that begins (rehearsal.py); threads
                                       begin to load Triton's modules if they have not yet
    launch       prepare_for(call)     is called for a kernel that this process has not loaded. Does nothing if Triton
                                       has the kernel on disk. Otherwise it rehearses the search, once, and threads
                                       (compile.py) compile all kernels of the search that are not on disk

The search waits for all kernels, because its first batch needs nearly all of them. If a search runs inside another,
such as the search for the true neighbours of some rows inside NN-Descent, both are rehearsed, and their kernels are
compiled together. If a kernel fails to compile, a warning is logged, and the kernel is compiled again at its launch.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

from tonari.core.process.garbage import collection_off
from tonari.core.process.progress import ProgressLike
from tonari.core.process.workers import default_threads
from tonari.core.trail import unrecorded
from tonari.cuda.compiling.beginning import begin_soon, get_ready, is_beginning
from tonari.cuda.compiling.compile import compile_together, is_compiled
from tonari.cuda.compiling.rehearsal import Call, Card, rehearsing

logger = logging.getLogger("tonari")

# A function that runs a search on tensors of the device "meta", which have no data.
Stage: TypeAlias = Callable[[], None]


@dataclass
class Expectation:
    """A search in progress, and the function that rehearses it to find its kernels.

    `outer` is the search inside which this one runs, if any; `used` is True once the search has been rehearsed.
    """

    stage: Stage
    progress: ProgressLike
    outer: Expectation | None = None
    used: bool = False

    def unused(self) -> list[Expectation]:
        """Return the searches that have not been rehearsed: this search and those around it, innermost first."""
        around = [] if self.outer is None else self.outer.unused()
        return around if self.used else [self, *around]


_expected: ContextVar[Expectation | None] = ContextVar("tonari_expected", default=None)


@contextlib.contextmanager
def expecting(stage: Stage, progress: ProgressLike = None) -> Iterator[None]:
    """Return a context for a search, which compiles all its kernels together as soon as one of them is missing.

    The kernels are found by a rehearsal of the search: `stage` runs it on tensors without data.

    Parameters
    ----------
    stage : callable
        Rehearses the search. Called at most once, or twice if the first kernel of the process turns out to be on disk.
    progress : None, bool or callable(done, total)
        As for :func:`tonari.search`, to show the compilation; a callable is not called, because it counts pairs and not
        kernels. If this search runs inside another one, the outer search's `progress` is used, and the outer search is
        rehearsed, too, if it has not been.
    """
    outer = _expected.get()
    if outer is None:
        begin_on_cuda()
    before = _expected.set(Expectation(stage, progress if outer is None else outer.progress, outer))
    try:
        yield
    finally:
        _expected.reset(before)


def begin_on_cuda() -> None:
    """Start loading, in threads, the modules that a process's first kernel needs.

    Meanwhile the caller imports the modules of the search and checks its input. Does nothing unless CUDA is in use. A
    missing Triton is ignored here; the search reports it.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized() and default_threads() > 1:
        with contextlib.suppress(ImportError):
            begin_soon()


def prepare_for(call: Call, device: Any) -> None:
    """Compile all kernels of the current search if the kernel of `call` is not compiled yet; never raises.

    Parameters
    ----------
    call : Call
        The launch of a kernel that this process has not loaded.
    device : torch.device
        A CUDA device.
    """
    expected = _expected.get()
    if expected is None or expected.used:
        return
    try:
        if default_threads() == 1:
            return
        together, calls = expected.unused(), None
        if is_beginning():  # until Triton's cache can be read, rehearse, which mostly imports modules
            calls = _rehearsed(together, card_of(device))
            get_ready(calls)
        if not is_compiled(call):
            for each in together:
                each.used = True
            calls = _rehearsed(together, card_of(device)) if calls is None else calls
            compile_together(calls, expected.progress)
    except Exception:  # the launch will compile the kernel again, and raise the error
        expected.used = True
        logger.warning("kernels cannot be compiled ahead, and are compiled one by one", exc_info=True)


def compile_ahead(stage: Stage, card: Card, *, progress: ProgressLike = None) -> int:
    """Rehearse `stage` for a card, and compile the kernels that it would launch; return the number of new kernels.

    A warning is logged if kernels fail to compile.
    """
    return compile_together(_rehearsed([Expectation(stage, progress)], card), progress)


def _rehearsed(together: list[Expectation], card: Card) -> list[Call]:
    """Rehearse several searches for a card; return one launch of each kernel variant."""
    with unrecorded(), rehearsing(card) as rehearsal, collection_off():
        for each in together:
            each.stage()
    return list(rehearsal.calls.values())


def card_of(device: Any) -> Card:
    """Return the properties of a CUDA device that its launches depend on."""
    import torch

    found = torch.cuda.get_device_properties(device)
    return Card((found.major, found.minor), found.multi_processor_count)
