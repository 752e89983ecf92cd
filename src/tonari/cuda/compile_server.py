"""A process that compiles kernels in processes of its own: ``python -m tonari.cuda.compile_server``.

Two threads that compile take as long as one, because Triton holds the interpreter's lock throughout. A process that has
imported Triton and nothing of CUDA or torch can fork at no cost, and a fork that crashes takes nothing with it.

    stdin     a pickled Orders, then nothing: the end of the file says that nobody waits any more
    stdout    one line of JSON for each call that is done: its number, and an error or null

It ends when all calls are done, or when stdin is closed. It runs in a session of its own, so that Ctrl-C in a terminal
does not reach it, and ends by a signal to all its processes.
"""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import sys
import threading
from dataclasses import dataclass
from typing import Any

from tonari.cuda.pickling import load_call

WAKE_SECONDS = 0.005  # between two looks for processes that have ended
LONGEST_ERROR = 1500  # characters: lines of up to 4096 bytes are written to a pipe in one piece
NICE = 10  # of calls that nobody waits for yet


@dataclass(frozen=True)
class Orders:
    """What to compile.

    Attributes
    ----------
    calls : list of bytes
        Each as from ``pickling.dump_call``.
    needed : int
        The first `needed` calls are waited for; the others are likely later.
    target : tuple
        The fields of Triton's GPUTarget.
    processes : int
        Most processes at once.
    """

    calls: list[bytes]
    needed: int
    target: tuple[Any, ...]
    processes: int


class TargetAlone:
    """Stands for the driver of a device where there is none: says what to compile for."""

    def __init__(self, target: tuple[Any, ...]) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget(*target)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        return self._target


def build(call: bytes) -> None:
    """Compile a call, and what Triton compiles in C to launch it."""
    from triton.backends.nvidia import driver as nvidia

    from tonari.cuda.compile import compile_call

    compiled = compile_call(load_call(call))
    if hasattr(nvidia, "make_launcher"):  # until Triton 3.6 each signature has a launcher of its own
        nvidia.CudaLauncher(compiled.src, compiled.metadata)


def work(orders: Orders, number: int) -> None:
    """Build one call and say so; the whole of a forked process."""
    error: str | None = None
    try:
        if number >= orders.needed:
            os.nice(NICE)
        build(orders.calls[number])
    except Exception as failure:  # goes to the process that waits, which compiles by itself and reports
        error = f"{type(failure).__name__}: {failure}"[:LONGEST_ERROR]
    say(number, error)


def say(number: int, error: str | None) -> None:
    """Write a line about a call that is done."""
    os.write(1, (json.dumps([number, error]) + "\n").encode())


def serve(orders: Orders) -> None:
    """Compile all calls, in order, each in a process of its own."""
    from triton.compiler.compiler import make_backend
    from triton.runtime import driver

    driver.set_active(TargetAlone(orders.target))
    make_backend(driver.active.get_current_target()).hash()  # asks ptxas for its version, once for all forks
    waiting, running = list(range(len(orders.calls))), dict[int, int]()
    while waiting or running:
        while waiting and len(running) < orders.processes:
            number = waiting.pop(0)
            child = os.fork()
            if child == 0:
                work(orders, number)
                os._exit(0)
            running[child] = number
        if select.select([0], [], [], WAKE_SECONDS)[0] and not os.read(0, 1):
            os.killpg(0, signal.SIGKILL)  # nobody waits any more
        while running:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                break
            number = running.pop(child)
            if status:
                say(number, f"the process that compiled it ended with status {os.waitstatus_to_exitcode(status)}")


def main() -> None:
    """Import what all forks need, meanwhile make Triton's key, and serve."""
    import triton

    from tonari.cuda.compile import make_key

    making = threading.Thread(target=make_key)
    making.start()
    import triton.language  # noqa: F401

    orders = pickle.load(sys.stdin.buffer)
    making.join()  # a process with one thread can be forked safely
    serve(orders)


if __name__ == "__main__":
    main()
