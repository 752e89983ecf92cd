"""Measure the tuned constants of a package (also called a room) again: ``python -m benchmarks tune ROOM``.

A room's ``tuning.py`` has constants in groups between empty lines. A group begins with a comment that names the
measurement by which it was chosen,

    # Case: SUITE CASE, CASE on DEVICE. Chosen on: MACHINE.
    # Not measured: why.

and the comment after a constant gives its meaning and, in brackets, the values that are worth trying. These values are
set one after another, in this process, and the work of the cases is timed. A change is reported if a second measurement
confirms it.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import io
import re
import sys
import tokenize
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tonari.core.process.caches import empty_caches

from .case import Case, Suite
from .compare import LEAST_SECONDS, Verdict, digest_of
from .rows import aligned, duration
from .run import Run, note_of, say

CASE = re.compile(r"Case: (?P<suite>\w+) (?P<cases>.+?) on (?P<device>cpu|cuda)\. Chosen on: (?P<machines>.+)\.")
VALUES = re.compile(r"(?P<meaning>.*?) ?(?P<values>\[.*\])?")
# A value is better if it is faster by more than this share of the present time in three quarters of the rounds.
TOLERANCE = 0.03

Load = Callable[[str], Suite]
Open = Callable[[Suite], Run]


@dataclass(frozen=True)
class Entry:
    """A tuned constant: its name, its meaning, and the measurement that chose it.

    Attributes
    ----------
    cases : names of the suite's cases that measure the constant; empty if it is not measured
    values : values that are worth trying, from the comment; empty if it names none
    """

    name: str
    meaning: str
    suite: str = ""
    cases: tuple[str, ...] = ()
    device: str = ""
    machines: str = ""
    values: tuple[Any, ...] = ()


# --- reading -----------------------------------------------------------------------------------------------------


def entries(text: str) -> list[Entry]:
    """Return the constants in the text of a tuning.py.

    Raises
    ------
    ValueError
        A group of constants does not name its measurement.
    """
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    lines = text.splitlines()
    found: list[Entry] = []
    group: dict[str, Any] | None = None
    last = 0
    for node in ast.parse(text).body:
        name = _name_of(node)
        if name is None:
            continue
        if group is None or not all(line.strip() for line in lines[last : node.lineno - 1]):
            group = _group(_above(lines, comments, node.lineno), name)
        last = node.end_lineno or node.lineno
        found.append(Entry(name, **_meaning(comments.get(last, "")), **group))
    return found


def _name_of(node: ast.stmt) -> str | None:
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) else None


def _above(lines: Sequence[str], comments: dict[int, str], line: int) -> str:
    """Return the first line of the comment block directly above a line; "" without a comment."""
    first = line
    while lines[first - 2].startswith("#"):
        first -= 1
    return comments.get(first, "") if first < line else ""


def _group(said: str, name: str) -> dict[str, Any]:
    if said.startswith("Not measured"):
        return {}
    case = CASE.fullmatch(said)
    if case is None:
        raise ValueError(f"{name}: the group above says {said!r}, expected 'Case: SUITE CASE on DEVICE. Chosen on: …'")
    cases = tuple(one.strip() for one in case["cases"].split(","))
    return {"suite": case["suite"], "cases": cases, "device": case["device"], "machines": case["machines"]}


def _meaning(comment: str) -> dict[str, Any]:
    parts = VALUES.fullmatch(comment)
    assert parts is not None
    values = eval(parts["values"], {"__builtins__": {}}) if parts["values"] else ()  # the source in this repository
    return {"meaning": parts["meaning"], "values": tuple(values)}


# --- measuring ---------------------------------------------------------------------------------------------------


def forget() -> None:
    """Empty every cache of tonari, because cached plans depend on earlier values."""
    empty_caches()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "tonari":
            for kept in vars(module).values():
                if callable(clear := getattr(kept, "cache_clear", None)):
                    clear()


@dataclass(frozen=True)
class Tried:
    """The timings of one case with a tried value, and with the present value in the same rounds."""

    value: Any
    rounds: Verdict
    same: bool  # whether the answers with both values are equal

    @property
    def better(self) -> bool:
        """Whether the tried value is faster by more than the tolerance in three quarters of the rounds."""
        return self.rounds.ratio < 1 - TOLERANCE and self.rounds.quartiles[1] < 1 - TOLERANCE


def measure(tuning: ModuleType, entry: Entry, run: Run, suite: Suite, case: Case, rounds: int) -> list[Tried]:
    """Time a case with each value alternately, the present value first; afterwards restore the present value."""
    assert suite.workload is not None
    present = getattr(tuning, entry.name)
    values = [present, *(value for value in entry.values if value != present)]
    seconds: list[list[float]] = [[] for _ in values]
    calls: list[Callable[[], Any]] = []
    digests, loops = [], 1
    try:
        for value in values:
            setattr(tuning, entry.name, value)
            forget()
            calls.append(suite.workload(run, case))
            digests.append(digest_of(calls[-1]()))
        for turn in range(rounds):
            for at in range(len(values)) if turn % 2 else reversed(range(len(values))):
                setattr(tuning, entry.name, values[at])
                forget()
                once = run.time_once(calls[at])  # short calls: an untimed call first fills the caches
                if not turn:
                    loops = max(loops, round(LEAST_SECONDS / max(once, 1e-9)))
                seconds[at].append(once if once > 1 else _repeated(run, calls[at], loops))
    finally:
        setattr(tuning, entry.name, present)
        forget()
    base = tuple(seconds[0])
    return [
        Tried(value, Verdict(tuple(taken), base), digest == digests[0])
        for value, taken, digest in zip(values, seconds, digests, strict=True)
    ]


def _repeated(run: Run, call: Callable[[], Any], loops: int) -> float:
    def work() -> None:
        for _ in range(loops):
            call()

    return run.time_once(work) / loops


# --- the command -------------------------------------------------------------------------------------------------


def tune(options: argparse.Namespace, load: Load, open_run: Open) -> int:
    """Measure the entries of a room that can be measured here, and print changes; return the exit status."""
    tuning = importlib.import_module(f"tonari.{options.room.replace('/', '.')}.tuning")
    assert tuning.__file__ is not None
    chosen = [
        entry
        for entry in entries(Path(tuning.__file__).read_text())
        if not options.name or any(fnmatchcase(entry.name, pattern) for pattern in options.name)
    ]
    if not chosen:
        raise SystemExit(f"no entry of {options.room} matches {' '.join(options.name)}")
    changes: list[str] = []
    runs: dict[str, Run] = {}
    failed = 0
    try:
        for entry in chosen:
            why = refusal(entry, options.device)
            if why:
                print(f"{entry.name}: {why}", flush=True)
                continue
            suite = load(entry.suite)
            if suite.name not in runs:
                runs[suite.name] = open_run(suite)
            print(f"{entry.name} = {getattr(tuning, entry.name)!r}: {entry.meaning or 'no more is said'}", flush=True)
            for name in entry.cases:
                say(f"{entry.name}, {name}")
                try:
                    changes += _report(tuning, entry, runs[suite.name], suite, name, options)
                except Exception as error:  # one error must not end the run
                    failed += 1
                    print(f"  {name}: {note_of(error)}", flush=True)
    except KeyboardInterrupt:
        print("interrupted: entries from here on were not measured")
        return 130
    finally:
        size = "" if options.scale == 1 else f" at scale {options.scale:g}, which decides nothing"
        print(f"{len(changes)} changes of {options.room}/tuning.py{size}" + (":" if changes else ""))
        print("\n".join(changes), end="\n" if changes else "")
    return 1 if failed else 0


def refusal(entry: Entry, device: str) -> str:
    """Return the reason why a constant cannot be measured here; "" if it can."""
    if not entry.cases:
        return "no case measures it"
    if entry.device != device:
        where = "a card: --device cuda" if entry.device == "cuda" else "a CPU: --device cpu"
        return f"needs {where}"
    return "" if entry.values else f"no values to try; python -m benchmarks run {entry.suite} measures it"


def _report(
    tuning: ModuleType, entry: Entry, run: Run, suite: Suite, name: str, options: argparse.Namespace
) -> list[str]:
    """Measure a constant on a case and print the timings; return a sentence if another value is faster."""
    (case,) = (case for case in suite.cases if (case.name, case.device) == (name, entry.device))
    sized = case.scaled(options.scale)
    found = measure(tuning, entry, run, suite, sized, options.repeats)
    print(_table(name, found), flush=True)
    best = min(found, key=lambda one: float(np.median(one.rounds.ours)))
    if not best.better:
        return []
    # Another value may seem better only because other processes slowed the rounds of the present value, so it is
    # measured again.
    *_, again = measure(tuning, replace(entry, values=(best.value,)), run, suite, sized, options.repeats)
    if not again.better:
        print(f"  {best.value!r} took {again.rounds.ratio:.3f} of the time when measured again: no change", flush=True)
        return []
    took = f"{name} in {best.rounds.ratio:.3f} of the time, and {again.rounds.ratio:.3f} when measured again"
    return [f"  {entry.name} = {best.value!r}, now {found[0].value!r}: {took}"]


def _table(name: str, found: Sequence[Tried]) -> str:
    best = min(float(np.median(one.rounds.ours)) for one in found)
    lines = [("  " + name, "median", "of the present", "quartiles", "")]
    for one in found:
        low, high = one.rounds.quartiles
        median = float(np.median(one.rounds.ours))
        notes = ["fastest"] * (median == best) + ["other lists"] * (not one.same)
        quartiles = f"{low:.3f} to {high:.3f}"
        lines.append((f"  {one.value!r}", duration(median), f"{one.rounds.ratio:.3f}", quartiles, ", ".join(notes)))
    return aligned(lines)
