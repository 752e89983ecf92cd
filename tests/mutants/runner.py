"""Inserts faults into a copy of the working tree, one at a time, and runs the thin suite with each.

    build/mutants/source   a copy of the tree in which native/ is built, once per fault in C++; only what a fault
                           touches is compiled again. Without a fault in C++ nothing is built: tests run by the library
                           that is installed
    build/mutants/libraries/NAME   the library built with that fault
    build/mutants/job-N    a copy per job, in which tests run; logs of the runs are beside it

The files of the working tree are read only.
"""

from __future__ import annotations

import contextlib
import fnmatch
import importlib.util
import math
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tests.mutants.fault import Fault

THIN = "not (full or bench)"
NAMED = "not bench"  # for tests that a fault names, if the thin suite contains none of them
MUTANTS = "tests/mutants"  # these tests compare the files with the list, so they would find every fault
QUICK_SECONDS = 8.0
QUIET_SECONDS = 300.0  # a test that takes longer hangs; the slowest takes less than a minute
PRESET = "release"
LOOK_SECONDS = 0.1

KILLED, HUNG, SURVIVED, OPEN = "killed", "hung", "survived", "open"
NOT_BUILT, NOT_APPLIED, NOT_RUN = "not built", "does not apply", "not run"

_SUMMARY = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_OUTCOME = r" (?:PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b.*| ?Fatal Python error: .*"
_STARTED = re.compile(rf"^(\S+\.py::.+?)(?:{_OUTCOME})?$", re.MULTILINE)


class Stopped(Exception):
    """A process was ended because the run was interrupted."""


class NotApplied(Exception):
    """The text that a fault replaces does not occur exactly once."""


@dataclass(frozen=True)
class Verdict:
    """The outcome for a fault.

    Attributes
    ----------
    fault : str
    verdict : str
        "killed" by a test that failed or crashed; "hung" in a test, which is seen too; "survived"; "open": not seen by
        its likely tests, and not yet run against the others; "not built", "does not apply" or "not run": no verdict.
    test : str
        The test that saw it.
    seconds : float
        How long the tests ran.
    """

    fault: str
    verdict: str
    test: str = ""
    seconds: float = 0.0

    @property
    def seen(self) -> bool:
        """Return whether a test found the fault."""
        return self.verdict in (KILLED, HUNG)


def chosen(faults: Sequence[Fault], patterns: Sequence[str], rooms: Sequence[str] = ()) -> list[Fault]:
    """Return the faults in any of the packages whose names match any of the patterns; an empty list means all.

    A room is a folder or module of src/tonari, such as "api" or "graph/exports", or of native/: "native/simd".
    """
    named = [each for each in faults if not patterns or any(fnmatch.fnmatch(each.name, one) for one in patterns)]
    return [each for each in named if not rooms or any(is_in(each, room) for room in rooms)]


def is_in(fault: Fault, room: str) -> bool:
    """Return whether the file of a fault is in a package."""
    inside = Path(fault.file).with_suffix("").parts[0 if is_native(fault) else 2 :]
    parts = Path(room).parts
    return inside[: len(parts)] == parts


def handful(faults: Sequence[Fault], seconds: Mapping[str, float], count: int, seed: int) -> list[Fault]:
    """Draw faults in Python that tests found within `QUICK_SECONDS`, or all of them if there are fewer.

    `seconds` are those of recorded verdicts, by the names of faults.
    """
    quick = [each for each in faults if not is_native(each) and seconds.get(each.name, math.inf) <= QUICK_SECONDS]
    return random.Random(seed).sample(quick, min(count, len(quick)))


def is_native(fault: Fault) -> bool:
    """Return whether the fault is in C++."""
    return fault.file.startswith("native/")


def copy_tree(root: Path, tree: Path) -> None:
    """Make `tree` equal to the files that git knows or would add in `root`; files that are equal already keep their
    times.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, capture_output=True, check=True
    )
    names = {name for name in os.fsdecode(listed.stdout).split("\0") if name and (root / name).is_file()}
    for path in [path for path in tree.rglob("*") if path.is_file()]:
        name = path.relative_to(tree).as_posix()
        if name not in names and not name.startswith("build/") and path.suffix != ".so":
            path.unlink()
    for name in sorted(names):
        there = tree / name
        if not there.is_file() or there.read_bytes() != (root / name).read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, there)


@contextlib.contextmanager
def put_in(fault: Fault, tree: Path) -> Iterator[None]:
    """Insert a fault into a tree, and remove it at the end."""
    path = tree / fault.file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text.count(fault.old) != 1:
        raise NotApplied(f"{fault.name}: {fault.file} has {text.count(fault.old)} times {fault.old!r}, expected once")
    try:
        _write(path, text.replace(fault.old, fault.new))
        yield
    finally:
        _write(path, text)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    # Compiled files are compared by seconds and size, which a fault may leave unchanged.
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def likely_tests(fault: Fault, tree: Path) -> list[str]:
    """Return the test files that are likely to find the fault: those that it names, or those of its package.

    A file src/tonari/ROOM/.../NAME.py has tests/ROOM/.../test_NAME.py or the nearest folder above it that exists;
    native/ROOM has tests/ROOM/cpu or tests/ROOM, and tests/native.
    """
    if fault.tests:
        return list(fault.tests)
    parts = [part for part in Path(fault.file).with_suffix("").parts if part != "kernels"]
    if is_native(fault):
        rooms = [f"tests/{parts[1]}/cpu", f"tests/{parts[1]}"]
        return [*[room for room in rooms if (tree / room).is_dir()][:1], "tests/native"]
    *rooms, name = parts[2:]
    places = [Path("tests", *rooms, f"test_{name}.py")] + [
        Path("tests", *rooms[:at]) for at in range(len(rooms), 0, -1)
    ]
    return [place.as_posix() for place in places if (tree / place).exists()][:1]


class Processes:
    """The processes of a run, which can all be ended together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, command: Sequence[str], *, cwd: Path, log: Path, quiet: float, **settings: str) -> int | None:
        """Run a command with its output in a file; end it, and return None, if it writes nothing for `quiet` seconds.

        Returns the exit status, negative if a signal ended it.
        """
        with log.open("wb") as output:
            with self._lock:
                if self._stopped:
                    raise Stopped
                process = subprocess.Popen(
                    command,
                    cwd=cwd,
                    env={**os.environ, **settings},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                self._running.add(process)
            try:
                code = _until_quiet(process, log, quiet)
            finally:
                _end(process)
                with self._lock:
                    self._running.discard(process)
        if self._stopped:
            raise Stopped
        return code

    def stop(self) -> None:
        """End all processes, and start no more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _end(process)


def _until_quiet(process: subprocess.Popen[bytes], log: Path, quiet: float) -> int | None:
    size, since = -1, time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(LOOK_SECONDS)
        if log.stat().st_size != size:
            size, since = log.stat().st_size, time.monotonic()
        elif time.monotonic() - since > quiet:
            return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all of its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def environment(tree: Path) -> dict[str, str]:
    """Return environment variables with which a tree's tests import its package, and draw the same examples in every
    run.
    """
    return {"PYTHONPATH": str(tree / "src"), "CI": "true", "PYTEST_ADDOPTS": ""}


def run_tests(
    tree: Path,
    tests: Sequence[str],
    log: Path,
    processes: Processes,
    *,
    quiet: float = QUIET_SECONDS,
    stop: bool = True,
    marker: str = THIN,
) -> Verdict:
    """Run tests of a tree until one fails; the verdict has no name of a fault.

    Parameters
    ----------
    tests : sequence of str
        What pytest takes: files, folders, names of tests, and options.
    stop : bool
        Whether to end at the first failure.
    marker : str
        Which of them.
    """
    command = [sys.executable, "-m", "pytest", "-v", "-rfE", "--tb=short", "-p", "no:cacheprovider", "-m", marker]
    began = time.monotonic()
    command += [*(["-x"] if stop else []), *tests]
    code = processes.run(command, cwd=tree, log=log, quiet=quiet, **environment(tree))
    seconds = time.monotonic() - began
    output = log.read_text(encoding="utf-8", errors="replace")
    failed = _SUMMARY.findall(output)
    last = ["", *_STARTED.findall(output)][-1].strip()  # the test that was running
    if code is None and last:
        return Verdict("", HUNG, last, seconds)
    if code is None:
        return Verdict("", NOT_RUN, f"no test began for {quiet:.0f} s; see {log}", seconds)
    if code < 0 and code != -signal.SIGKILL:  # the system ends processes this way if they take too much memory
        return Verdict("", KILLED, last, seconds)
    if code == 0:
        return Verdict("", SURVIVED, "", seconds)
    if code in (1, 2) and failed:
        return Verdict("", KILLED, failed[0], seconds)
    return Verdict("", NOT_RUN, f"pytest ended with {code}; see {log}", seconds)


class Builder:
    """Builds native/ in a separate tree, without and with faults."""

    def __init__(self, root: Path, base: Path, processes: Processes) -> None:
        self._tree, self._libraries, self._processes = base / "source", base / "libraries", processes
        copy_tree(root, self._tree)

    def build(self, name: str) -> Path | None:
        """Build the unchanged tree; return the path of the library, or None if it cannot be built."""
        log = self._tree.with_name(f"{self._tree.name}.log")
        configure = ["cmake", "--preset", PRESET, "-DTONARI_WERROR=OFF", f"-DPython_EXECUTABLE={sys.executable}"]
        if shutil.which("ccache"):
            configure.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        for command in (configure, ["cmake", "--build", "--preset", PRESET]):
            if self._processes.run(command, cwd=self._tree, log=log, quiet=3600.0, PATH=_path_with_tools()) != 0:
                return None
        (made,) = (self._tree / "build" / PRESET).glob("_native*.so")
        kept = self._libraries / name / made.name
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, kept)
        return kept

    def build_with(self, fault: Fault) -> Path | None:
        """Build the tree with a fault."""
        with put_in(fault, self._tree):
            return self.build(fault.name)


def _path_with_tools() -> str:
    """Return the search path, starting with the tools that are installed with this Python."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def use_library(library: Path, tree: Path) -> None:
    """Copy a library into a tree's package."""
    room = tree / "src" / "tonari" / "core"
    for other in room.glob("_native*.so"):
        other.unlink()
    shutil.copyfile(library, room / library.name)


@dataclass(frozen=True)
class Job:
    """A tree in which one fault at a time is tested.

    Attributes
    ----------
    tree : Path
    library : Path
        The library without a fault.
    """

    tree: Path
    library: Path
    processes: Processes

    def check_package(self) -> None:
        """Raise RuntimeError unless this tree's tests import its own package."""
        log = self.tree.with_name(f"{self.tree.name}.log")
        command = [sys.executable, "-c", "import tonari.core._native as native; print(native.__file__)"]
        code = self.processes.run(command, cwd=self.tree, log=log, quiet=QUIET_SECONDS, **environment(self.tree))
        said = log.read_text(encoding="utf-8", errors="replace").strip()
        if code != 0 or not said.startswith(str(self.tree)):
            raise RuntimeError(
                f"expected tonari from {self.tree}, got {said}; an editable install comes before PYTHONPATH: use "
                "another environment (make clean mutants)"
            )

    def test(self, fault: Fault, library: Path | None, tests: Sequence[str], marker: str = THIN) -> Verdict:
        """Run tests with a fault; a test that finds it has to fail twice."""
        use_library(library or self.library, self.tree)
        log = self.tree.with_name(f"{fault.name}.log")
        doubtful: list[str] = []
        seconds = 0.0
        with put_in(fault, self.tree):
            while True:
                found = run_tests(self.tree, [*doubtful, *tests], log, self.processes, marker=marker)
                seconds += found.seconds
                # A test that fails by chance, for example because the machine is busy, passes when it runs again.
                if not found.seen or run_tests(self.tree, [found.test], log, self.processes, marker=marker).seen:
                    return replace(found, fault=fault.name, seconds=seconds)
                doubtful.append(f"--deselect={found.test}")

    def test_likely(self, fault: Fault, library: Path | None) -> Verdict:
        """Run the likely tests with a fault; it stays open if they do not find it.

        Tests that it names run although they are not in the thin suite, if none of them is.
        """
        tests = likely_tests(fault, self.tree)
        found = self.test(fault, library, tests)
        if found.verdict == NOT_RUN and fault.tests:
            found = self.test(fault, library, tests, NAMED)
        return replace(found, verdict=OPEN) if found.verdict == SURVIVED else found

    def test_rest(self, fault: Fault, library: Path | None) -> Verdict:
        """Run all other tests of the thin suite with a fault."""
        known = [f"--deselect={test}" for test in likely_tests(fault, self.tree)]
        return self.test(fault, library, [*known, f"--ignore={MUTANTS}", "tests"])


def installed_library() -> Path:
    """Return the library of the tonari that this Python imports."""
    spec = importlib.util.find_spec("tonari.core._native")
    if spec is None or spec.origin is None:
        raise RuntimeError("tonari is not installed for this Python: make develop, or run a fault in native/ as well")
    return Path(spec.origin)


def judge(
    faults: Sequence[Fault],
    root: Path,
    base: Path,
    jobs: int,
    processes: Processes,
    tell: Callable[[Verdict], None],
    *,
    likely_only: bool = False,
) -> list[Verdict]:
    """Run the thin suite with each fault: first the likely tests of all faults, then all other tests for open faults.

    With `likely_only` the others are not run, and what is open stays so.

    Calls `tell` with every verdict that is known or changes. At the end the tests that saw faults run without any: one
    that fails then has proved nothing, and its faults are "not run".

    Raises
    ------
    RuntimeError
        native/ cannot be built without a fault, or tests would import another package.
    """
    base.mkdir(parents=True, exist_ok=True)
    native = [fault for fault in faults if is_native(fault)]
    builder = Builder(root, base, processes) if native else None
    sound = installed_library() if builder is None else builder.build("none")
    if sound is None:
        raise RuntimeError(f"native/ cannot be built; see {base / 'source.log'}")
    trees = [base / f"job-{number}" for number in range(jobs)]
    for tree in trees:
        copy_tree(root, tree)
    free: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for job in (Job(tree, sound, processes) for tree in trees):
        use_library(sound, job.tree)
        job.check_package()
        free.put(job)

    verdicts: dict[str, Verdict] = {}
    libraries: dict[str, Path] = {}

    def note(verdict: Verdict) -> Verdict:
        verdicts[verdict.fault] = verdict
        tell(verdict)
        return verdict

    def with_job(step: Callable[[Job], Verdict]) -> Verdict:
        job = free.get()
        try:
            return step(job)
        finally:
            free.put(job)

    def first(fault: Fault) -> None:
        try:
            found = with_job(lambda job: job.test_likely(fault, libraries.get(fault.name)))
        except NotApplied as error:
            found = Verdict(fault.name, NOT_APPLIED, str(error))
        note(found)

    def second(fault: Fault) -> None:
        before = verdicts[fault.name]
        found = with_job(lambda job: job.test_rest(fault, libraries.get(fault.name)))
        note(replace(found, seconds=found.seconds + before.seconds))

    with ThreadPoolExecutor(jobs) as pool:
        try:
            going = [pool.submit(first, fault) for fault in faults if not is_native(fault)]
            for fault in native:
                assert builder is not None
                try:
                    library = builder.build_with(fault)
                except NotApplied as error:
                    note(Verdict(fault.name, NOT_APPLIED, str(error)))
                    continue
                if library is None:
                    note(Verdict(fault.name, NOT_BUILT, f"see {base / 'source.log'}"))
                    continue
                libraries[fault.name] = library
                going.append(pool.submit(first, fault))
            for each in going:
                each.result()
            open_ones = [fault for fault in faults if verdicts[fault.name].verdict == OPEN and not likely_only]
            for each in [pool.submit(second, fault) for fault in open_ones]:
                each.result()
        except BaseException:
            processes.stop()
            pool.shutdown(cancel_futures=True)
            raise
    for wrong in _seen_without_faults(verdicts.values(), free.get(), base / "none.log"):
        note(wrong)
    return [verdicts[fault.name] for fault in faults]


def _seen_without_faults(verdicts: Iterable[Verdict], job: Job, log: Path) -> list[Verdict]:
    """Return corrected verdicts for tests that fail without any fault."""
    tests = sorted({verdict.test for verdict in verdicts if verdict.seen and verdict.test})
    if not tests:
        return []
    use_library(job.library, job.tree)
    found = run_tests(job.tree, tests, log, job.processes, stop=False, marker=NAMED)
    if found.verdict == SURVIVED:
        return []
    failed = set(_SUMMARY.findall(log.read_text(encoding="utf-8", errors="replace"))) | {found.test}
    return [
        replace(verdict, verdict=NOT_RUN, test=f"{verdict.test} fails without the fault")
        for verdict in verdicts
        if verdict.seen and verdict.test in failed
    ]
