"""Compile all kernels of a search together, when the first of them is missing.

    tonari       begin_on_cuda()       in a process that has used CUDA, threads begin to load the modules that Triton
                                       needs for any kernel, while the first public function is imported
    dispatch     expecting(stage)      notes how to rehearse the search that begins (rehearsal.py), in 2 µs; begins to
                                       load Triton's modules if that has not begun
    launch       prepare_for(call)     is called for a kernel that this process has not loaded. If Triton has the
                                       kernel on disk, it does nothing. Otherwise it rehearses the search, once, and
                                       threads (compile.py) compile all kernels of the search that are not on disk

The search waits for all kernels, because its first batch needs nearly all of them. If a search runs inside another,
such as the search for the true neighbours of some rows inside NN-Descent, both are rehearsed, and their kernels are
compiled together. A failure is logged as a warning, and the kernel is compiled again at its launch.
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

# A function that runs a search with rows on the device "meta", which have no data.
Stage: TypeAlias = Callable[[], None]


@dataclass
class Expectation:
    """A running search whose kernels a rehearsal can find, by running the search on tensors without data.

    It stores the function that rehearses the search, whether that function has been called, and the enclosing search,
    if any.
    """

    stage: Stage
    progress: ProgressLike
    outer: Expectation | None = None
    used: bool = False

    def unused(self) -> list[Expectation]:
        """Return this search and the searches that enclose it, innermost first, without those already rehearsed."""
        around = [] if self.outer is None else self.outer.unused()
        return around if self.used else [self, *around]


_expected: ContextVar[Expectation | None] = ContextVar("tonari_expected", default=None)


@contextlib.contextmanager
def expecting(stage: Stage, progress: ProgressLike = None) -> Iterator[None]:
    """Return a context that compiles all kernels of `stage` together, as soon as one of them is missing.

    A rehearsal finds these kernels: it runs `stage` on tensors without data.

    Parameters
    ----------
    stage : callable
        Called at most once, or twice if the first kernel of a process turns out to be on disk.
    progress : None, bool or callable(done, total)
        As for :func:`tonari.search`; a callable counts pairs, so kernels are not reported to it. Inside another
        expectation, that expectation's `progress` is used, and its stage is rehearsed too if that has not been done.
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
    """Load the modules for the first kernel of a process in threads, while a search is imported and checks its arrays.

    Without a device, kernels run in Triton's interpreter; without Triton, the search reports that.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized() and default_threads() > 1:
        with contextlib.suppress(ImportError):
            begin_soon()


def prepare_for(call: Call, device: Any) -> None:
    """Compile all kernels of the current search if the kernel of this call is not compiled yet; never raises.

    Parameters
    ----------
    call : Call
        A launch of a kernel that this process does not have.
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
        if is_beginning():  # until Triton's cache can be read, rehearse the search, whose time is mostly imports
            calls = _rehearsed(together, card_of(device))
            get_ready(calls)
        if not is_compiled(call):
            for each in together:
                each.used = True
            calls = _rehearsed(together, card_of(device)) if calls is None else calls
            compile_together(calls, expected.progress)
    except Exception:  # the search does not fail here: it compiles the kernel at its launch, and raises the error
        expected.used = True
        logger.warning("kernels cannot be compiled ahead, and are compiled one by one", exc_info=True)


def compile_ahead(stage: Stage, card: Card, *, progress: ProgressLike = None) -> int:
    """Run a function on tensors without data, compile all kernels that it would launch, and return their number.

    Kernels that fail are logged as a warning.
    """
    return compile_together(_rehearsed([Expectation(stage, progress)], card), progress)


def _rehearsed(together: list[Expectation], card: Card) -> list[Call]:
    """Return the launches of some rehearsals."""
    with unrecorded(), rehearsing(card) as rehearsal, collection_off():
        for each in together:
            each.stage()
    return list(rehearsal.calls.values())


def card_of(device: Any) -> Card:
    """Return the properties of a CUDA device on which launches depend."""
    import torch

    found = torch.cuda.get_device_properties(device)
    return Card((found.major, found.minor), found.multi_processor_count)
