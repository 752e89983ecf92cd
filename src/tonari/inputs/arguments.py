"""Checks of arguments that are not arrays: k, threads, memory, paths. An invalid argument raises an error."""

from __future__ import annotations

import operator
import os
import re
import reprlib
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from tonari.core.process.progress import ProgressLike

LARGEST_COUNT = 2**63 - 1  # largest number of rows or bytes: the largest 64-bit index

_UNITS = {"B": 1} | {f"{p}{b}": base**e for e, p in enumerate("KMGT", 1) for b, base in (("B", 1000), ("IB", 1024))}


def check_k(k: Any, limit: int, *, without_self: bool, noun: str = "point") -> int:
    """Check k, a number of neighbours or of other items, against the number of items that exist.

    Parameters
    ----------
    k : int
        Python or NumPy integer.
    limit : int
        The largest possible k: the number of points, minus one if a point is not its own neighbour.
    without_self : bool
        Whether ``limit`` does not count the point itself; the message then says so.
    noun : str
        The name of the items that ``limit`` counts, in the singular, for the message.

    Raises
    ------
    TypeError
        k is not a Python or NumPy integer; True and 5.0 are refused too.
    ValueError
        k is less than 1 or more than ``limit``.

    Examples
    --------
    >>> from tonari.inputs import check_k
    >>> check_k(11, 10, without_self=True)
    Traceback (most recent call last):
    ValueError: k=11: the largest k is 10, as there are 11 points and a point is not its own neighbour
    """
    number = _whole_number(k, "k")
    if number < 1:
        raise ValueError(f"k={reprlib.repr(number)}: the smallest k is 1")
    if number > limit:
        count = f"{limit + without_self} {noun}{'' if limit + without_self == 1 else 's'}"
        verb = "is" if limit + without_self == 1 else "are"
        why = " and a point is not its own neighbour" if without_self else ""
        raise ValueError(f"k={reprlib.repr(number)}: the largest k is {limit}, as there {verb} {count}{why}")
    return number


def check_flag(flag: Any, name: str) -> bool:
    """Check an argument that is True or False.

    >>> from tonari.inputs import check_flag
    >>> check_flag("no", "sorted")
    Traceback (most recent call last):
    TypeError: sorted='no': expected True or False, got str
    """
    if not isinstance(flag, bool | np.bool_):
        raise TypeError(f"{name}={flag!r}: expected True or False, got {type(flag).__name__}")
    return bool(flag)


def check_count(count: Any, name: str, *, least: int = 1) -> int:
    """Check a whole number, such as a number of rows or a seed.

    >>> from tonari.inputs import check_count
    >>> check_count(1.5, "sample")
    Traceback (most recent call last):
    TypeError: sample=1.5: expected a whole number, got float
    >>> check_count(-1, "seed", least=0)
    Traceback (most recent call last):
    ValueError: seed=-1: expected a whole number of at least 0
    """
    number = _whole_number(count, name)
    if number < least:
        raise ValueError(f"{name}={number}: expected a whole number of at least {least}")
    if number > LARGEST_COUNT:
        raise ValueError(f"{name}={reprlib.repr(number)}: expected a whole number of at most 2**63 - 1")
    return number


def check_progress(progress: Any) -> ProgressLike:
    """Check the argument `progress`: None, a bool or a function.

    >>> from tonari.inputs import check_progress
    >>> check_progress("yes")
    Traceback (most recent call last):
    TypeError: progress='yes': expected None, True, False or a function of (done, total), got str
    """
    if isinstance(progress, np.bool_):
        return bool(progress)
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(
            f"progress={reprlib.repr(progress)}: expected None, True, False or a function of (done, total), got "
            f"{type(progress).__name__}"
        )
    wanted: ProgressLike = progress
    return wanted


def check_threads(threads: Any) -> int | None:
    """Check the argument `threads`: at least 1, or None for the default.

    >>> from tonari.inputs import check_threads
    >>> check_threads(0)
    Traceback (most recent call last):
    ValueError: threads=0: expected at least 1; None means as many as the work is worth
    """
    if threads is None:
        return None
    number = _whole_number(threads, "threads")
    if number < 1:
        raise ValueError(f"threads={number}: expected at least 1; None means as many as the work is worth")
    return number


def parse_memory(memory: Any) -> int | None:
    """Convert the argument `memory`, a number of bytes or a string with a unit, to bytes; None stays None.

    Units are kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024) and B, in upper or lower case.

    Raises
    ------
    TypeError
        The argument is not a whole number, a string or None.
    ValueError
        The amount is less than one byte, or 2**63 bytes or more; or a string has no unit or an unknown one.

    Examples
    --------
    >>> from tonari.inputs import parse_memory
    >>> parse_memory("2GB"), parse_memory("1.5 KiB"), parse_memory(4096), parse_memory(None)
    (2000000000, 1536, 4096, None)
    """
    if memory is None:
        return None
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", memory, re.IGNORECASE | re.ASCII)
        unit = _UNITS.get(match[2].upper()) if match else None
        if match is None or unit is None:
            raise ValueError(f'memory={reprlib.repr(memory)}: expected a number and a unit, such as "2GB" or "512MiB"')
        size = float(match[1]) * unit
    else:
        size = _whole_number(memory, "memory", "a whole number of bytes or a string such as '2GB'")
    if size > LARGEST_COUNT:
        raise ValueError(f"memory={reprlib.repr(memory)}: expected at most 2**63 - 1 bytes; None sets no limit")
    if size < 1:
        raise ValueError(f"memory={memory!r}: expected at least one byte")
    return int(size)


def check_output_path(path: str | os.PathLike[str], suffixes: Collection[str]) -> Path:
    """Check, before any work is done, that an output file can be written, and return its path.

    Parameters
    ----------
    path : str or path
        The output file. If it exists as a regular file, it is replaced when the work is done.
    suffixes : collection of str
        The supported suffixes, such as (".npz",), in lower case.

    Raises
    ------
    ValueError
        The suffix is not one of `suffixes`.
    FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError
        The directory is missing, is a file, or cannot be written to; or the path is itself a directory.
    FileExistsError
        The path is a device, a pipe or a socket.
    OSError
        The name is too long.

    Examples
    --------
    >>> from tonari.inputs import check_output_path
    >>> check_output_path("graph.txt", (".npz",))
    Traceback (most recent call last):
    ValueError: graph.txt: has the suffix '.txt', expected .npz
    """
    target = Path(path)
    try:
        mode = os.stat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = stat.S_IFREG  # a new file, which can be created if the directory exists
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{target}: is a directory; name a file in it")
    if target.suffix.lower() not in suffixes:
        raise ValueError(f"{target}: has the suffix {target.suffix!r}, expected {', '.join(sorted(suffixes))}")
    if not stat.S_ISREG(mode):
        raise FileExistsError(f"{target}: is a device, a pipe or a socket; name a regular file, or a new one")
    parent = Path(os.path.realpath(target)).parent  # writing replaces the target of a symbolic link
    if not parent.exists():
        raise FileNotFoundError(f"{target}: the directory {parent} does not exist; create it first")
    if not parent.is_dir():
        raise NotADirectoryError(f"{target}: {parent} is a file, not a directory")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{target}: the directory {parent} cannot be written to")
    return target


def _whole_number(value: Any, name: str, expected: str = "a whole number") -> int:
    if isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: expected {expected}, got a bool")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: expected {expected}, got {type(value).__name__}") from None


def check_no_threads(threads: Any, devices: tuple[str, ...]) -> None:
    """Raise ValueError if `threads` is set for a search on CUDA."""
    if check_threads(threads) is not None:
        raise ValueError(f"threads={threads}: the search runs on {', '.join(devices)}; leave threads out")


def check_whole(name: str, value: Any, *, least: int) -> None:
    """Check that a field of a plan is set to a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
