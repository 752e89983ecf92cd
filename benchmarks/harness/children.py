"""Run work in a separate process that has its own environment variables.

Two libraries that each have an OpenMP runtime or a BLAS disturb each other inside one process: after FAISS had run in
the same process, scikit-learn used only one of two cores. And OpenBLAS reads its choice of kernels, OPENBLAS_CORETYPE,
only while it is loaded. Every peer and every measurement of BLAS therefore runs in a new process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any

from . import machine


@contextlib.contextmanager
def environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables (None removes one) for processes started inside the block."""
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def blas_environment(threads: int, core: str | None) -> dict[str, str | None]:
    """Return environment variables that set the threads of BLAS and OpenMP, and choose the kernels of OpenBLAS.

    OpenBLAS uses the kernels named ``core``, or chooses them itself if ``core`` is None.
    """
    count = str(threads)
    return {
        "OMP_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "OPENBLAS_CORETYPE": core,
    }


def blas_cores() -> list[str | None]:
    """Return names of OpenBLAS kernels to try: None for OpenBLAS's choice, and the best for each instruction-set level.

    Old builds do not know new processors and choose SSE2 kernels for them (such as version 0.3.15 inside faiss-cpu on
    Zen 5), so OpenBLAS's choice is not always the best.
    """
    found = machine.levels()
    return [None, *(core for level, core in (("avx2", "Haswell"), ("avx512", "SkylakeX")) if level in found)]


class Child:
    """A process that runs ``serve(connection, *arguments)``; ``ask`` sends a request and returns the reply."""

    def __init__(self, serve: Callable[..., None], *arguments: Any, variables: Mapping[str, str | None]) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, far_end = context.Pipe()
        # Not a daemon: joblib gives a daemon no workers, so that scikit-learn would use one thread.
        self._process = context.Process(target=_report_errors, args=(far_end, serve, *arguments))
        with environment(variables):
            self._process.start()
        far_end.close()

    def ask(self, request: Any) -> Any:
        """Return the reply of the process.

        Raise RuntimeError, with the process's traceback, if the process failed or died.
        """
        try:
            self._connection.send(request)
            kind, value = self._connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            self._process.join(5)
            raise RuntimeError(f"the measuring process died, exit code {self._process.exitcode}") from error
        if kind == "error":
            raise RuntimeError(f"the measuring process failed:\n{value}")
        return value

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def first_call(work: Callable[..., object], *arguments: Any, variables: Mapping[str, str | None]) -> float:
    """Return the seconds of ``work(*arguments)`` in a new process, including all imports and compilation."""
    child = Child(_serve_first_call, work, arguments, variables=variables)
    try:
        return float(child.ask(None))
    finally:
        child.close()


def _serve_first_call(connection: Connection, work: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    connection.recv()
    began = time.perf_counter()
    work(*arguments)
    connection.send(("reply", time.perf_counter() - began))


def _report_errors(connection: Connection, serve: Callable[..., None], *arguments: Any) -> None:
    import traceback

    try:
        serve(connection, *arguments)
    except EOFError:
        # The parent closed its end, so the work is done.
        return
    except Exception:
        connection.send(("error", traceback.format_exc()))
