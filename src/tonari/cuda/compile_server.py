"""A process that compiles kernels in processes of its own: ``python -m tonari.cuda.compile_server``.

Two threads that compile take as long as one, because Triton holds the interpreter's lock throughout. A process that has
imported Triton and nothing of CUDA or torch can fork at no cost, and a fork that crashes takes nothing with it. The
standard library's pools would do neither: they run the caller's script again, or fork what has threads and CUDA.

    stdin     a pickled Orders, then nothing: its end says that nobody waits any more
    stdout    one line of JSON for each call that is done: its number, and an error or null

It ends when all calls are done, or when stdin is closed, as when the process that waits has died. It runs in a session
of its own, so that Ctrl-C in a terminal does not reach it, and ends by a signal to all its processes.
"""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import sys
from typing import Any

from tonari.cuda.compile import compile_call
from tonari.cuda.pickling import Orders, load_call

WAKE_SECONDS = 0.005  # between two looks for processes that have ended
LONGEST_ERROR = 1500  # characters: lines of up to 4096 bytes are written to a pipe in one piece


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

    compiled = compile_call(load_call(call))
    if hasattr(nvidia, "make_launcher"):  # until Triton 3.6 each signature has a launcher of its own
        nvidia.CudaLauncher(compiled.src, compiled.metadata)


def work(number: int, call: bytes, out: int) -> None:
    """Build a call and write a line about it to a file descriptor; the whole of a forked process."""
    error: str | None = None
    try:
        build(call)
    except Exception as failure:  # goes to the process that waits, which compiles by itself and reports
        error = f"{type(failure).__name__}: {failure}"[:LONGEST_ERROR]
    os.write(out, (json.dumps([number, error]) + "\n").encode())


def serve(orders: Orders, out: int) -> None:
    """Compile all calls, in order, each in a process of its own."""
    from triton.compiler.compiler import make_backend
    from triton.runtime import driver
    from triton.runtime.cache import triton_key

    driver.set_active(TargetAlone(orders.target))
    # Parts of all keys: half a second of hashing Triton itself, and ptxas's version.
    triton_key()
    make_backend(driver.active.get_current_target()).hash()
    waiting, running = list(enumerate(orders.calls)), 0
    while waiting or running:
        while waiting and running < orders.processes:
            number, call = waiting.pop(0)
            if os.fork() == 0:
                try:
                    work(number, call, out)
                finally:
                    os._exit(0)  # whatever happened: never on into this loop
            running += 1
        if select.select([0], [], [], WAKE_SECONDS)[0] and not os.read(0, 1):
            os.killpg(0, signal.SIGKILL)  # nobody waits any more
        while running and os.waitpid(-1, os.WNOHANG)[0]:
            running -= 1


def main() -> None:
    """Import what all forks need, and serve."""
    import triton.language  # noqa: F401

    out = os.dup(1)
    os.dup2(2, 1)  # what Triton prints is no answer
    serve(pickle.load(sys.stdin.buffer), out)


if __name__ == "__main__":
    main()
