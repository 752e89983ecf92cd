"""The list of faults, and the runner on a project of two files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import __main__ as command
from tests.mutants import runner
from tests.mutants.faults import FAULTS, Fault
from tests.mutants.runner import Verdict

ROOT = Path(__file__).resolve().parents[2]

SOURCE = """def double(x):
    return x * 2


def fly():
    import os

    return os.getpid()
"""
TESTS = """import sys

sys.path.insert(0, "src")
import tiny


def test_first():
    assert tiny.double(0) == 0


def test_double():
    assert tiny.double(3) == 6


def test_fly():
    assert tiny.fly() > 0
"""
TINY = Fault("tiny-sum", "src/tiny.py", "x * 2", "x + 2", "adds instead")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project of one module and its tests."""
    for name, text in (("src/tiny.py", SOURCE), ("tests/test_tiny.py", TESTS)):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return tmp_path / "tree"


def verdict_of(new: str, tree: Path, old: str = "x * 2", quiet: float = 60.0, **options: bool) -> Verdict:
    with runner.put_in(Fault("tiny", "src/tiny.py", old, new, ""), tree):
        return runner.run_tests(tree, ["tests"], tree.with_name("log"), runner.Processes(), quiet=quiet, **options)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_put_in(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.old) == 1
    assert fault.new != fault.old
    assert fault.why
    assert runner.likely_tests(fault, ROOT)
    for test in fault.tests:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


def test_there_are_faults_in_code_of_all_kinds() -> None:
    assert len(FAULTS) == len({fault.name for fault in FAULTS}) == 120
    native = sum(map(runner.is_native, FAULTS))
    cuda = sum("/cuda/" in fault.file for fault in FAULTS)
    assert (native, cuda, len(FAULTS) - native - cuda) == (38, 45, 37)
    assert len({(fault.file, fault.old) for fault in FAULTS}) == len(FAULTS)


@pytest.mark.process
def test_a_fault_that_a_test_sees_is_killed(tree: Path) -> None:
    found = verdict_of("x + 2", tree)
    assert (found.verdict, found.test) == ("killed", "tests/test_tiny.py::test_first")
    assert found.seen
    assert (tree / "src/tiny.py").read_text() == SOURCE


@pytest.mark.process
def test_a_fault_that_no_test_sees_survives(tree: Path) -> None:
    found = verdict_of("2 * x", tree)
    assert (found.verdict, found.test, found.seen) == ("survived", "", False)


@pytest.mark.full
@pytest.mark.process
def test_a_test_that_hangs_is_ended_and_counts(tree: Path) -> None:
    found = verdict_of(
        "__import__('time').sleep(1000)", tree, quiet=20.0
    )  # a busy machine takes seconds to start pytest
    assert (found.verdict, found.test, found.seen) == ("hung", "tests/test_tiny.py::test_first", True)


@pytest.mark.process
def test_a_crash_names_the_test_that_ran(tree: Path) -> None:
    found = verdict_of("os.abort()", tree, old="os.getpid()")
    assert (found.verdict, found.test, found.seen) == ("killed", "tests/test_tiny.py::test_fly", True)


@pytest.mark.process
def test_an_error_at_collection_is_seen(tree: Path) -> None:
    found = verdict_of("fly(:", tree, old="fly():")
    assert (found.verdict, found.test, found.seen) == ("killed", "tests/test_tiny.py", True)


@pytest.mark.process
def test_no_verdict_without_tests(tree: Path) -> None:
    log = tree.with_name("log")
    found = runner.run_tests(tree, ["tests/test_other.py"], log, runner.Processes())
    assert (found.verdict, found.seen) == ("not run", False)
    assert str(log) in found.test


@pytest.mark.process
def test_a_test_that_fails_without_a_fault_proves_nothing(tree: Path) -> None:
    library = tree.with_name("_native.so")
    library.touch()
    (tree / "src/tonari/core").mkdir(parents=True)
    job = runner.Job(tree, library, runner.Processes())
    path = tree / "tests/test_tiny.py"
    path.write_text(TESTS.replace("== 6", "== 7"))
    names = [f"tests/test_tiny.py::test_{name}" for name in ("first", "double")]
    given = [Verdict("a", "killed", names[0]), Verdict("b", "killed", names[1]), Verdict("c", "survived")]
    corrected = runner._seen_without_faults(given, job, tree.with_name("log"))
    assert corrected == [Verdict("b", "not run", f"{names[1]} fails without the fault")]


def test_processes_that_are_stopped_give_no_verdict(tmp_path: Path) -> None:
    processes = runner.Processes()
    processes.stop()
    with pytest.raises(runner.Stopped):
        processes.run([sys.executable, "--version"], cwd=tmp_path, log=tmp_path / "log", quiet=1.0)


@pytest.mark.parametrize("old", ["x * 3", "return"], ids=["absent", "twice"])
def test_a_fault_that_does_not_apply_is_refused(old: str, tree: Path) -> None:
    with (
        pytest.raises(runner.NotApplied, match="expected once"),
        runner.put_in(Fault("a", "src/tiny.py", old, "", ""), tree),
    ):
        pass
    assert (tree / "src/tiny.py").read_text() == SOURCE


def test_a_fault_in_a_file_that_is_gone_is_refused(tree: Path) -> None:
    with (
        pytest.raises(runner.NotApplied, match="0 times"),
        runner.put_in(Fault("a", "src/gone.py", "x", "y", ""), tree),
    ):
        pass
    assert not (tree / "src/gone.py").exists()


def test_a_fault_is_taken_out_after_an_error(tree: Path) -> None:
    compiled = tree / "src/__pycache__/tiny.cpython-311.pyc"
    compiled.parent.mkdir()
    compiled.touch()

    def work() -> None:
        with runner.put_in(TINY, tree):
            assert "x + 2" in (tree / "src/tiny.py").read_text()
            assert not compiled.exists()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert (tree / "src/tiny.py").read_text() == SOURCE


@pytest.mark.process
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_copy_has_the_files_that_git_knows_or_would_add(tree: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)
    (tree / ".gitignore").write_text("build/\n*.so\n")
    (tree / "build").mkdir()
    (tree / "build/made").touch()
    copy = tree.with_name("copy")
    for kept in ("build/release/made", "src/_native.so"):
        (copy / kept).parent.mkdir(parents=True, exist_ok=True)
        (copy / kept).touch()
    (copy / "src/left.py").touch()
    runner.copy_tree(tree, copy)
    made = sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file())
    assert made == [".gitignore", "build/release/made", "src/_native.so", "src/tiny.py", "tests/test_tiny.py"]
    unchanged = (copy / "tests/test_tiny.py").stat().st_mtime_ns
    (copy / "src/tiny.py").write_text("a fault that an interrupted run left")
    runner.copy_tree(tree, copy)
    assert (copy / "src/tiny.py").read_text() == SOURCE
    assert (copy / "tests/test_tiny.py").stat().st_mtime_ns == unchanged


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("src/tonari/exact/cuda/kernels/refine/groups.py", ["tests/exact/cuda/refine/test_groups.py"]),
        ("src/tonari/exact/cuda/kernels/refine/dense.py", ["tests/exact/cuda/refine"]),
        ("src/tonari/streams/journal.py", ["tests/streams"]),
        ("native/kdtree/reach.hpp", ["tests/kdtree/cpu", "tests/native"]),
        ("native/core/rows.cpp", ["tests/core", "tests/native"]),
        ("native/bind/checks.hpp", ["tests/native"]),
    ],
)
def test_likely_tests_are_those_of_the_room(file: str, expected: list[str]) -> None:
    assert runner.likely_tests(Fault("", file, "", "", ""), ROOT) == expected


def test_faults_are_chosen_by_name() -> None:
    assert runner.chosen(FAULTS, []) == list(FAULTS)
    some = runner.chosen(FAULTS, ["cli-*", "kdtree-next-float"])
    assert [fault.name for fault in some] == ["kdtree-next-float", "cli-exit-status", "cli-output-is-input"]


@pytest.mark.parametrize(
    ("killed", "survived", "not_applied", "expected"),
    [(57, 3, 0, 0), (56, 4, 0, 1), (59, 0, 1, 1), (60, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 1)],
)
def test_status(killed: int, survived: int, not_applied: int, expected: int) -> None:
    verdicts = [Verdict("", runner.KILLED)] * killed + [Verdict("", runner.SURVIVED)] * survived
    assert command.status(verdicts + [Verdict("", runner.NOT_APPLIED)] * not_applied) == expected


def test_the_summary_names_what_was_not_found() -> None:
    verdicts = [Verdict("a", runner.KILLED), Verdict("b", runner.HUNG), Verdict("c", runner.SURVIVED)]
    assert command.summary(verdicts).splitlines() == [
        "2 of 3 faults found, 1 of them by a test that hung",
        "survived: c",
    ]


def test_a_verdict_replaces_the_earlier_one_in_the_file(tmp_path: Path) -> None:
    path, facts = tmp_path / "results.csv", {"commit": "abc", "machine": "a, b"}
    first, second = FAULTS[1].name, FAULTS[0].name
    for verdict in (
        Verdict(first, "open"),
        Verdict(second, "survived"),
        Verdict(first, "killed", "t.py::t[a,b]", 1.25),
    ):
        command.record(path, verdict, facts)
    rows = [f'{second},survived,,0.0,abc,"a, b"', f'{first},killed,"t.py::t[a,b]",1.2,abc,"a, b"']
    assert path.read_text().splitlines() == ["fault,verdict,test,seconds,commit,machine", *sorted(rows)]


def test_the_list_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list", "--only", "cli-*"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown] == ["cli-exit-status", "cli-output-is-input"]


def test_a_name_that_no_fault_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(["--only", "nothing"])
    assert "no fault has such a name" in capsys.readouterr().err
