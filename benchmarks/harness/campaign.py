"""Measure all cases of all suites and papers at one commit, in parts, so that it can be interrupted and resumed.

A part is one measurement of one case, in its own process. When the process has ended, the part's rows become a file in
FOLDER/parts. The folder therefore has complete parts only, and a later call measures the missing parts. All parts of a
folder have the same commit, machine and options, which FOLDER/campaign.json records.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import machine, rows
from .case import Suite
from .run import say

# Beginning of the note of a row that ran out of time; the part with such a row is measured again.
NOT_REACHED = "not reached"
# Seconds that a process may take in addition to its budget, for imports and for the last call of a case.
GRACE = 60.0


@dataclass(frozen=True)
class Part:
    """One measurement of a case.

    Attributes
    ----------
    suite : suite or paper
    case : name of the case
    turn : 1 for the first measurement of the case, 2 for the second, and so on
    cost : estimated seconds of the measurement
    """

    suite: Suite
    case: str
    turn: int
    cost: float

    @property
    def title(self) -> str:
        """The name of the part; the file with its rows has the same name."""
        return f"{self.suite.name}.{self.case}.{self.turn}"


def parts_of(suites: Sequence[Suite], device: str, turns: int) -> Iterator[Part]:
    """Return the parts of a campaign: a first measurement of every case, then a second of every case, and so on."""
    for turn in range(1, turns + 1):
        for suite in suites:
            if device in suite.devices:
                yield from (Part(suite, case.name, turn, case.cost) for case in suite.chosen(device, None))


class Folder:
    """The folder that stores the rows of a campaign.

    Parameters
    ----------
    path : the folder; it is made if it does not exist
    facts : commit and options, which must agree with those of the existing parts

    Raises
    ------
    SystemExit
        The commit is unknown or has changes, or the folder has parts of another commit or with other options.
    """

    def __init__(self, path: Path, facts: dict[str, Any]) -> None:
        if facts["commit"] == "unknown" or facts["commit"].endswith("+"):
            raise SystemExit(
                f"the commit is {facts['commit']}, expected one without changes: commit them first, "
                "or name the measured commit by TONARI_COMMIT in a copy without git"
            )
        self.parts = path / "parts"
        self.parts.mkdir(parents=True, exist_ok=True)
        self._record = path / "campaign.json"
        self._agree(facts)

    def _agree(self, facts: dict[str, Any]) -> None:
        """Record facts about the campaign; raise SystemExit if one differs from an earlier record."""
        record = json.loads(self._record.read_text()) if self._record.exists() else {}
        for name, value in facts.items():
            if record.setdefault(name, value) != value:
                raise SystemExit(
                    f"{self._record} says {name} {record[name]}, but it is {value} now; name another folder by --to"
                )
        self._record.write_text(json.dumps(record, indent=1) + "\n")

    def file(self, part: Part) -> Path:
        """Return the path at which the rows of a part are stored."""
        return self.parts / f"{part.title}.csv"

    def finish(self, part: Part, unfinished: Path) -> bool:
        """Store the rows of a part unless it ran out of time; return whether they were stored.

        Raises
        ------
        SystemExit
            The part was measured on another machine than the stored parts.
        """
        found = rows.read(unfinished)
        if not found or any(row["note"].startswith(NOT_REACHED) for row in found):
            return False
        self._agree({"machine": found[0]["machine"]})
        unfinished.replace(self.file(part))
        return True

    def collect(self, parts: Sequence[Part]) -> int:
        """Append the new rows of all finished parts to the results of their suites.

        Return how many rows were appended.
        """
        count = 0
        for part in parts:
            if self.file(part).exists():
                there = rows.read(part.suite.path)
                new = [row for row in rows.read(self.file(part)) if row not in there]
                rows.append(part.suite.path, [_filled(row) for row in new])
                count += len(new)
        return count


def measure(folder: Folder, part: Part, options: argparse.Namespace, seconds: float) -> str:
    """Measure one part in a process of its own; return the outcome as text, such as "measured" or "too long"."""
    unfinished = folder.file(part).with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    command = [sys.executable, "-m", "benchmarks", "run", part.suite.name, "--device", options.device]
    command += ["--case", part.case, "--csv", str(unfinished), "--budget", f"{seconds:.0f}"]
    command += ["--threads", str(options.threads), "--scale", str(options.scale)]
    try:
        ended = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, timeout=seconds + GRACE)
    except subprocess.TimeoutExpired:
        return "too long"
    if ended.returncode not in (0, 1) or not folder.finish(part, unfinished):
        return "not reached" if ended.returncode in (0, 1) else f"ended with status {ended.returncode}"
    return "WRONG or failed" if ended.returncode else "measured"


def campaign(suites: Sequence[Suite], options: argparse.Namespace) -> int:
    """Measure the remaining parts of a campaign; return 0 if all parts are measured and no answer was wrong.

    A part starts only if its estimated seconds are within the remaining budget; a longer part waits for the next call.
    """
    deadline = time.perf_counter() + options.budget
    facts = {name: getattr(options, name) for name in ("device", "threads", "scale")}
    folder = Folder(options.to, {"commit": machine.commit()} | facts)
    parts = list(parts_of(suites, options.device, options.turns))
    left = [part for part in parts if not folder.file(part).exists()]
    say(f"{len(parts)} parts, {len(left)} are left, about {sum(part.cost for part in left) / 60:.0f} minutes")
    wrong = 0
    waiting = []
    for part in left if not (options.list or options.collect) else ():
        seconds = min(options.part, deadline - time.perf_counter())
        cost = part.cost * options.scale
        if cost <= seconds:
            end = measure(folder, part, options, seconds)
        else:
            end = f"needs --part {cost:.0f}" if cost > options.part else "not begun"
        say(f"{part.title}: {end}")
        wrong += end.startswith(("WRONG", "ended"))
        if not folder.file(part).exists():
            waiting.append(part)
    if options.list:
        print("\n".join(f"{part.title}  {part.cost:.0f} s" for part in left))
    elif options.collect:
        print(f"{folder.collect(parts)} rows appended")
    else:
        print(f"{len(left) - len(waiting)} measured, {len(waiting)} left, {wrong} wrong or failed")
    return 1 if wrong or waiting else 0


def _filled(row: rows.Row) -> rows.Row:
    """Return the columns of a row that have a value."""
    return {name: value for name, value in row.items() if value not in (None, "", {})}
