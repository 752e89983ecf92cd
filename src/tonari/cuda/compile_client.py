"""Start the process that compiles (compile_server.py), tell it what, and wait until it is done."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import IO

from tonari.core.progress import Progress, ProgressLike
from tonari.core.workers import default_threads
from tonari.cuda.pickling import Orders, dump_call
from tonari.cuda.rehearsal import Call, Card

logger = logging.getLogger("tonari")

LONGEST_LOG = 500  # characters of what processes print that a warning has


class Server:
    """A process that compiles; as a context, it ends with all that it has started."""

    def __init__(self) -> None:
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115, closed in __exit__
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

    def compile(self, calls: Sequence[Call], card: Card, progress: ProgressLike) -> None:
        """Compile some calls, with a bar, and log a warning if some are left."""
        processes = min(default_threads(), len(calls))
        target = "cuda", 10 * card.capability[0] + card.capability[1], 32
        logger.info("%d kernels are compiled, by %d processes, and kept in Triton's cache", len(calls), processes)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: then it says nothing, and all are left
            self._process.stdin.write(pickle.dumps(Orders([dump_call(call) for call in calls], target, processes)))
            self._process.stdin.flush()
        left = dict(enumerate(calls))
        reasons = dict.fromkeys(left, "the process that compiled it has ended")
        shown: ProgressLike = False if callable(progress) else progress
        with Progress(shown, total=len(calls), seconds=None, label="compiling", unit="kernel") as bar:
            for line in self._process.stdout:
                number, error = json.loads(line)
                if error is None:
                    del left[number]
                else:
                    reasons[number] = error
                bar.add(1)
        if left:
            number, call = next(iter(left.items()))
            logger.warning(
                "%d of %d kernels could not be compiled ahead, and are compiled when they are launched; %s: %s%s",
                len(left),
                len(calls),
                call.name,
                reasons[number],
                self._last_words(),
            )

    def _last_words(self) -> str:
        """Return the end of what the processes have printed, on a line of its own."""
        self._log.seek(0)
        words = self._log.read()[-LONGEST_LOG:].decode(errors="replace").strip()
        return words and f"\n{words}"

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(BrokenPipeError):  # as above
            self._process.__exit__(None, None, None)
        self._log.close()
