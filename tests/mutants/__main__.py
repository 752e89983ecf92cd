"""Insert the faults of faults.py, one at a time, and check that the thin suite finds them.

    python -m tests.mutants                     all, about two hours on two cores
    python -m tests.mutants --room api          those of a room: a folder of src/tonari, or native/simd
    python -m tests.mutants --python            those in Python, for which nothing is built
    python -m tests.mutants --only 'kdtree-*'   some, by name
    python -m tests.mutants --handful 3         some quick ones in Python, drawn by chance; nothing is recorded
    python -m tests.mutants --list

Writes results.csv next to this file. Ends with status 1 if a fault is not found or cannot be inserted.
"""

from __future__ import annotations

import argparse
import csv
import random
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


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Try the tests against faults.")
    parser.add_argument(
        "--only", metavar="PATTERN", action="append", default=[], help="names of faults, such as 'cli-*'"
    )
    parser.add_argument(
        "--room",
        action="append",
        default=[],
        help="a folder or module of src/tonari, such as graph/exports, or native/simd",
    )
    parser.add_argument("--python", action="store_true", help="only faults in Python, for which nothing is built")
    parser.add_argument(
        "--handful",
        metavar="COUNT",
        type=int,
        help="draw so many whose tests are quick, and run only these; record nothing",
    )
    parser.add_argument("--seed", type=int, help="draw the same handful again")
    parser.add_argument("--jobs", type=int, default=cores_allowed(), help="faults tested at a time")
    parser.add_argument("--list", action="store_true", help="list the faults")
    given = parser.parse_args(arguments)
    faults = runner.chosen(FAULTS, given.only, given.room)
    faults = [fault for fault in faults if not (given.python and runner.is_native(fault))]
    if not faults:
        asked = [f"--only {name}" for name in given.only] + [f"--room {room}" for room in given.room]
        parser.error(f"{' '.join(asked)}: there is no such fault; --list shows all")
    if given.handful is not None:
        seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
        print(f"a handful drawn with --seed {seed}", flush=True)
        faults = runner.handful(faults, quickness(RESULTS), given.handful, seed)
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
            if given.handful is None:
                record(RESULTS, verdict, facts)

    processes = runner.Processes()
    base, quickly = ROOT / "build" / "mutants", given.handful is not None
    verdicts = runner.judge(faults, ROOT, base, given.jobs, processes, tell, likely_only=quickly)
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
    """Return 0 if all were found, otherwise 1."""
    return 0 if all(verdict.seen for verdict in verdicts) else 1


def quickness(path: Path) -> dict[str, float]:
    """Return the seconds that the tests ran before they found each fault, by the names of the faults."""
    with path.open(newline="", encoding="utf-8") as file:
        return {row["fault"]: float(row["seconds"]) for row in csv.DictReader(file) if row["verdict"] == runner.KILLED}


def record(path: Path, verdict: Verdict, facts: dict[str, str]) -> None:
    """Put a verdict into the file of results in place of the fault's earlier one; the file is ordered by name."""
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
    """Return the name of the processor, the number of processors, and the highest instruction set."""
    return f"{cpu_name()}, {cores_allowed()} CPUs, {levels()[-1]}"


if __name__ == "__main__":
    sys.exit(main())
