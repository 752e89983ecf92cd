"""Handle Ctrl-C while the command line is imported, before :mod:`tonari.cli` can handle it.

The package imports this module first. If the process is the command line, an interrupt ends it with one line and exit
code 130 instead of a traceback, as during a command; at that time no file has been written. A program that imports the
library keeps its own handler.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

INTERRUPTED = 130  # 128 + SIGINT, the convention of shells


def is_command_line(argv: list[str], orig_argv: list[str]) -> bool:
    """Whether ``sys.argv`` and ``sys.orig_argv`` are those of ``tonari`` or ``python -m tonari``.

    >>> is_command_line(["/usr/bin/tonari", "info"], ["python3", "/usr/bin/tonari", "info"])
    True
    >>> is_command_line(["-m", "info"], ["python3", "-m", "tonari", "info"])  # while the package is imported
    True
    >>> is_command_line(["study.py", "tonari"], ["python3", "study.py", "tonari"])
    False
    """
    if argv[:1] == ["-m"]:
        return re.fullmatch(r"(-\w*m)?tonari(\.__main__)?", orig_argv[-len(argv)]) is not None
    return bool(argv) and Path(argv[0]).stem == "tonari"


def end() -> None:
    """Let interrupts raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _stop:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _stop(number: int, frame: FrameType | None) -> None:
    os.write(2, b"tonari: interrupted\n")
    os._exit(INTERRUPTED)  # the module that is being imported could swallow an exception


def _begin() -> None:
    here = threading.current_thread() is threading.main_thread()
    if here and signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell's & ignores it
        signal.signal(signal.SIGINT, _stop)


if is_command_line(getattr(sys, "argv", []), sys.orig_argv):
    _begin()
