"""Put the faults of faults.py in, one at a time, and see that the thin suite finds them.

    python -m tests.mutants                     all, about an hour on two cores
    python -m tests.mutants --only 'kdtree-*'   some, by name
    python -m tests.mutants --list

Writes results.csv beside this file. Ends with status 1 if fewer than 57 of 60 are found, or if one cannot be put in.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import threading
from pathlib import Path

from benchmarks.harness.machine import cores_allowed, cpu_name, levels
from tests.mutants import runner
from tests.mutants.faults import FAULTS
from tests.mutants.runner import Verdict

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("results.csv")
COLUMNS = ("fault", "verdict", "test", "seconds", "commit", "machine")
LEAST = 57, 60  # found, of how many


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Try the tests against faults.")
    parser.add_argument(
        "--only", metavar="PATTERN", action="append", default=[], help="names of faults, such as 'cli-*'"
    )
    parser.add_argument("--jobs", type=int, default=cores_allowed(), help="faults tested at a time")
    parser.add_argument("--list", action="store_true", help="list the faults")
    given = parser.parse_args(arguments)
    faults = runner.chosen(FAULTS, given.only)
    if not faults:
        parser.error(f"--only {' '.join(given.only)}: no fault has such a name; --list shows all")
    if given.jobs < 1:
        parser.error(f"--jobs {given.jobs}: expected at least 1")
    if given.list:
        for fault in faults:
            print(f"{fault.name:36} {fault.file}: {fault.why}")
        return 0
    facts = {"commit": commit(), "machine": machine()}
    lock = threading.Lock()

    def tell(verdict: Verdict) -> None:
        with lock:
            print(line(verdict), flush=True)
            record(RESULTS, verdict, facts)

    processes = runner.Processes()
    verdicts = runner.judge(faults, ROOT, ROOT / "build" / "mutants", given.jobs, processes, tell)
    print(f"\n{summary(verdicts)}")
    return status(verdicts)


def line(verdict: Verdict) -> str:
    """Return the row of a table."""
    return f"{verdict.fault:36} {verdict.verdict:14} {verdict.seconds:7.1f} s  {verdict.test}"


def summary(verdicts: list[Verdict]) -> str:
    """Return the number of faults that were found, and the names of all others."""
    seen = [verdict for verdict in verdicts if verdict.seen]
    hung = sum(verdict.verdict == runner.HUNG for verdict in seen)
    lines = [f"{len(seen)} of {len(verdicts)} faults found, {hung} of them by a test that hung"]
    return "\n".join(lines + [f"{each.verdict}: {each.fault}" for each in verdicts if not each.seen])


def status(verdicts: list[Verdict]) -> int:
    """Return 1 if fewer than 57 of 60 were found, or one could not be put in, else 0."""
    found, of = LEAST
    enough = sum(verdict.seen for verdict in verdicts) * of >= found * len(verdicts)
    return 0 if enough and all(verdict.verdict != runner.NOT_APPLIED for verdict in verdicts) else 1


def record(path: Path, verdict: Verdict, facts: dict[str, str]) -> None:
    """Put a verdict into the file of results, in place of the fault's earlier one; ordered by name."""
    rows = {}
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            rows = {row["fault"]: row for row in csv.DictReader(file)}
    seconds = f"{verdict.seconds:.1f}"
    row = {"fault": verdict.fault, "verdict": verdict.verdict, "test": verdict.test, "seconds": seconds, **facts}
    rows[verdict.fault] = row
    known = {fault.name for fault in FAULTS} | {verdict.fault}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for name, row in sorted(rows.items()) if name in known)


def commit() -> str:
    """Return the commit of the working tree, with a + if files differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    changed = [name for name in git("status", "--porcelain").splitlines() if not name.endswith(RESULTS.name)]
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def machine() -> str:
    """Return the processor, how many of it there are, and its highest instruction set."""
    return f"{cpu_name()}, {cores_allowed()} CPUs, {levels()[-1]}"


if __name__ == "__main__":
    sys.exit(main())
