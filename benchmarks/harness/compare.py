"""Compare two commits of tonari: the same calls of public functions, timed alternately on the same processors.

The base is built in a git worktree under build/compare, unless it is a folder from which tonari can be imported.
Without git, `pip install --no-deps --target FOLDER CHECKOUT` makes such a folder. Each side has its own process, which
finds its tonari on PYTHONPATH and everything else in the present tree; both make the same data and warm up. Then they
run alternately, never at the same time, and in the opposite order in every other round. Each first call
(:class:`FirstCalls`) has a separate process and is not warmed up. The verdict uses the ratio of the two times of each
round, because a disturbance that lasts longer than a round slows both sides. A case is slower if three quarters of the
rounds are slower by more than the tolerance.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import machine, rows
from .case import Case, FirstCalls, Suite
from .command import open_run, settle
from .device import timing_of
from .machine import ROOT
from .run import Run, say, seconds_of

FOLDER = ROOT / "build" / "compare"
# Minimum seconds of one measurement: shorter calls are repeated without a pause.
LEAST_SECONDS = 0.05
ONLY = "tonari"
HEAD = ("case", "base s", "now s", "now / base", "quartiles", "rounds", "")


# --- the base ----------------------------------------------------------------------------------------------------


def git(*arguments: str) -> str:
    """Run git in this repository and return its output; raise SystemExit with git's message if it fails."""
    found = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {found.stderr.strip()}")
    return found.stdout.strip()


def base_of(named: str) -> tuple[str, Path]:
    """Return the name of a base in tables and rows, and the folder from which its tonari can be imported.

    Raises
    ------
    SystemExit
        The base is neither a folder from which tonari can be imported nor a commit.
    """
    folder = Path(named)
    if (folder / ONLY / "__init__.py").is_file():
        return folder.resolve().name, folder.resolve()
    if folder.is_dir() and os.sep in named:
        raise SystemExit(
            f"--base {named} has no {ONLY}/__init__.py: make it by `pip install --target {named} CHECKOUT`"
        )
    commit = git("rev-parse", "--short", f"{named}^{{commit}}")
    return commit, built(commit)


def built(commit: str) -> Path:
    """Return a folder from which the tonari of a commit can be imported; build it if it does not exist."""
    home = FOLDER / commit
    site, source = home / "site", home / "source"
    if (home / "built").exists():
        return site
    say(f"building {commit} in {home}")
    shutil.rmtree(home, ignore_errors=True)
    git("worktree", "prune")
    git("worktree", "add", "--detach", "--force", str(source), commit)
    # ccache makes paths below this folder relative, so that builds of other commits can reuse object files.
    variables = os.environ | {"CCACHE_BASEDIR": str(home)}
    try:
        for step in steps(source, home / "build", site):
            done = subprocess.run(step, capture_output=True, text=True, check=False, env=variables)
            if done.returncode:
                raise SystemExit(f"{' '.join(step)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        shutil.copytree(source / "src" / "tonari", site / "tonari", dirs_exist_ok=True)
    finally:
        git("worktree", "remove", "--force", str(source))
    (home / "built").touch()
    return site


def steps(source: Path, build: Path, site: Path) -> Iterator[list[str]]:
    """Return the commands that build a source tree and install it into the folder `site`.

    They use CMake if its tools are installed, otherwise pip.
    """
    if not (importlib.util.find_spec("nanobind") and shutil.which("cmake") and shutil.which("ninja")):
        yield [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(source)]
        return
    options = ["-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}"]
    if shutil.which("ccache"):
        options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    yield ["cmake", "-S", str(source), "-B", str(build), "-G", "Ninja", *options]
    yield ["cmake", "--build", str(build)]
    yield ["cmake", "--install", str(build), "--prefix", str(site)]


def present() -> Path:
    """Return the folder from which this process imports tonari."""
    found = importlib.util.find_spec("tonari")
    if found is None or found.origin is None:
        raise SystemExit("tonari cannot be imported here: install it, or put src on PYTHONPATH")
    return Path(found.origin).resolve().parents[1]


# --- one side ----------------------------------------------------------------------------------------------------


class Side:
    """A process with one of the two versions of tonari; it reads requests from stdin and writes replies to stdout."""

    def __init__(self, who: str, site: Path, command: Sequence[str]) -> None:
        self.who = who
        variables = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]), "PYTHONSAFEPATH": "1"}
        self._process = subprocess.Popen(
            command, env=variables, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its reply.

        Raises
        ------
        RuntimeError
            The process died, or reported an error.
        """
        streams = self._process
        assert streams.stdin is not None
        assert streams.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            streams.stdin.write(json.dumps(request) + "\n")
            streams.stdin.flush()
        line = streams.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self.who} died, exit code {self._process.wait()}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise RuntimeError(f"{self.who}: {reply['error']}")
        return reply

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # the process has died: the next `ask` raises an error
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def serve(suite: Suite, options: argparse.Namespace) -> None:
    """Answer requests until the input ends: ``{"case": name}`` prepares a case, ``{"loops": number}`` times it.

    Only replies are written to standard output; the output of libraries is sent to standard error.
    """
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    settle(options)
    run = open_run(suite, options)
    work: Callable[[], Any] | FirstCalls | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "case" in request:
                (case,) = (one for one in suite.cases if (one.name, one.device) == (request["case"], options.device))
                assert suite.workload is not None
                work = suite.workload(run, case.scaled(options.scale))
                origin = str(Path(run.tonari.__file__).resolve().parents[1])
                reply = first_reply(run, work) | {"origin": origin, "shared": run.shared}
            else:
                assert work is not None
                reply = {"seconds": seconds_of_calls(run, work, request["loops"])}
        except Exception as error:  # the comparing process stops when it receives this
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def first_reply(run: Run, work: Callable[[], Any] | FirstCalls) -> dict[str, Any]:
    """Run the work of a case for the first time; return a fingerprint of its answer, and its seconds.

    The seconds are those of a second, warm call; only a :class:`FirstCalls` is timed in its first call.
    """
    if isinstance(work, FirstCalls):
        told = work.call()
        return {"seconds": told["seconds"], "digest": digest_of(told["answer"]), "kernels": told["kernels"]}
    return {"digest": digest_of(work()), "seconds": run.time_once(work)}


def seconds_of_calls(run: Run, work: Callable[[], Any] | FirstCalls, loops: int) -> float:
    """Return the mean seconds of a call over `loops` successive calls; a :class:`FirstCalls` is called only once."""
    if isinstance(work, FirstCalls):
        return float(work.call()["seconds"])

    def repeated() -> None:
        for _ in range(loops):
            work()

    return run.time_once(repeated) / loops


def digest_of(answer: Any) -> str:
    """Return a fingerprint of the values (or distances) and indices of a result."""
    found = hashlib.sha256()
    for name in ("distances", "values", "indices"):
        part = getattr(answer, name, None)
        if part is not None:
            part = part if isinstance(part, np.ndarray) else part.cpu().numpy()
            found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


# --- the comparison ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """The result of a comparison: the seconds of the present tree and of the base in each round."""

    ours: tuple[float, ...]
    base: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The median seconds of the present tree, divided by those of the base."""
        return float(np.median(self.ours) / np.median(self.base))

    @property
    def quartiles(self) -> tuple[float, float]:
        """The lower and the upper quartile of the rounds' ratios."""
        low, high = np.quantile(np.array(self.ours) / np.array(self.base), (0.25, 0.75))
        return float(low), float(high)

    def slower(self, tolerance: float) -> bool:
        """Whether at least three quarters of the rounds' ratios exceed 1 by more than the tolerance."""
        return self.ratio > 1 + tolerance and self.quartiles[0] > 1 + tolerance


def take_turns(ours: Side, base: Side, repeats: int, loops: int) -> Verdict:
    """Run rounds in which each side runs once, in alternating order."""
    seconds: dict[str, list[float]] = {ours.who: [], base.who: []}
    for turn in range(repeats):
        for side in (ours, base) if turn % 2 else (base, ours):
            seconds[side.who].append(side.ask(loops=loops)["seconds"])
    return Verdict(tuple(seconds[ours.who]), tuple(seconds[base.who]))


def compare(suite: Suite, options: argparse.Namespace) -> int:
    """Time the present tree and the base on cases of a suite; return 1 if a case is slower or fails, else 0."""
    if suite.workload is None:
        raise SystemExit(f"{suite.name} has no work that two versions could be compared by")
    commit, site = base_of(options.base)
    cases = [case for case in suite.chosen(options.device, options.case) if case.n]
    if not cases:
        raise SystemExit(f"these cases of {suite.name} are sweeps over many shapes: name one of a single shape")
    if options.isa and len(options.isa) > 1:
        raise SystemExit("--isa is given once in a comparison: run it again for another")
    sites = {ONLY: present(), f"{ONLY} {commit}": site}
    command = [sys.executable, "-m", "benchmarks", "serve-case", suite.name, "--device", options.device]
    command += ["--scale", str(options.scale), "--threads", str(options.threads)]
    command += ["--isa", options.isa[0]] if options.isa else []
    lines = [HEAD]
    failed = 0
    with contextlib.ExitStack() as stack:
        sides = [Side(who, site, command) for who, site in sites.items()]
        for side in sides:
            stack.callback(side.close)
        for whole in cases:
            case = whole.scaled(options.scale)
            say(f"{case.name}: making data, warming up")
            try:
                ready = [side.ask(case=case.name) for side in sides]
                loops = max(1, round(LEAST_SECONDS / max(min(reply["seconds"] for reply in ready), 1e-9)))
                cold = "kernels" in ready[0]  # in each side's process, the first call has just ended
                verdict = take_turns(sides[0], sides[1], options.repeats - cold, loops)
                if cold:
                    first, of_base = (reply["seconds"] for reply in ready)
                    verdict = Verdict((first, *verdict.ours), (of_base, *verdict.base))
            except RuntimeError as error:
                failed += 1
                lines.append((case.name, "", "", "", "", "", f"FAILED: {error}"))
                continue
            for side, reply in zip(sides, ready, strict=True):
                if Path(reply["origin"]) != sites[side.who].resolve():
                    raise SystemExit(f"{side.who} was imported from {reply['origin']}, expected {sites[side.who]}")
            same = ready[0]["digest"] == ready[1]["digest"]
            slower = verdict.slower(options.tolerance)
            failed += slower
            notes = [] if same else ["answers differ"]
            kernels = [reply.get("kernels") for reply in ready]
            if kernels[0] != kernels[1]:
                notes.append(f"{kernels[0]} kernels compiled, base {kernels[1]}")
            note = ", ".join(notes)
            lines.append(line_of(case, verdict, options.repeats, "SLOWER " * slower + note))
            say(", ".join(f"{name} {cell}".strip() for name, cell in zip(HEAD, lines[-1], strict=True) if cell))
            if not options.no_csv:
                shared = ready[0]["shared"] | {"date": machine.today()}
                found = rows_of(case, verdict, {ONLY: machine.commit(), f"{ONLY} {commit}": commit}, note)
                rows.append(options.csv or suite.path, [shared | row for row in found])
    print(rows.aligned(lines))
    print(f"{failed} of {len(cases)} cases slower by more than {options.tolerance:.0%}, beyond their spread, or failed")
    return 1 if failed else 0


def line_of(case: Case, verdict: Verdict, repeats: int, remark: str) -> tuple[str, ...]:
    """Return the line of the printed table about a case."""
    low, high = verdict.quartiles
    medians = (f"{np.median(seconds):.4g}" for seconds in (verdict.base, verdict.ours))
    return (case.name, *medians, f"{verdict.ratio:.3f}", f"{low:.3f} to {high:.3f}", str(repeats), remark.strip())


def rows_of(case: Case, verdict: Verdict, commits: Mapping[str, str], note: str) -> list[rows.Row]:
    """Return two rows of results, for the present tree and for the base.

    Each has its own commit; the row of the base also has the ratio of its seconds to ours.
    """
    low, high = verdict.quartiles
    ours = {"extras": {"ratio_to_base": verdict.ratio, "quartiles": [low, high]}}
    base = {"ratio": 1 / verdict.ratio}
    return [
        case.columns()
        | {"who": who, "commit": commit, "stage": rows.COMPARED, "note": note}
        | seconds_of(timing_of(seconds))
        | more
        for (who, commit), seconds, more in zip(
            commits.items(), (verdict.ours, verdict.base), (ours, base), strict=True
        )
    ]
