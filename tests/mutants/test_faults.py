"""The list of faults, and the runner on a project of two files."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import __main__ as command
from tests.mutants import runner
from tests.mutants.fault import Fault
from tests.mutants.faults import FAULTS
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
    """Make a project of one module and its tests."""
    for name, text in (("src/tiny.py", SOURCE), ("tests/test_tiny.py", TESTS)):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return tmp_path / "tree"


def verdict_of(new: str, tree: Path, old: str = "x * 2", quiet: float = 60.0, **options: bool) -> Verdict:
    with runner.put_in(Fault("tiny", "src/tiny.py", old, new, ""), tree):
        return runner.run_tests(tree, ["tests"], tree.with_name("log"), runner.Processes(), quiet=quiet, **options)


@pytest.mark.parametrize("file", sorted({fault.file for fault in FAULTS}))
def test_the_faults_of_a_file_can_be_put_in(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    for fault in FAULTS:
        if fault.file == file:
            assert text.count(fault.old) == 1, fault.name
            assert fault.new != fault.old, fault.name
            assert fault.why, fault.name
            assert runner.likely_tests(fault, ROOT), fault.name
            for test in fault.tests:
                where, _, name = test.partition("::")
                assert (ROOT / where).exists(), fault.name
                assert not name or f"def {name}(" in (ROOT / where).read_text(encoding="utf-8"), fault.name


def test_there_are_faults_in_code_of_all_kinds() -> None:
    assert len(FAULTS) == len({fault.name for fault in FAULTS}) >= 240
    native = sum(map(runner.is_native, FAULTS))
    cuda = sum("/cuda/" in fault.file for fault in FAULTS)
    assert native >= 40
    assert cuda >= 45
    assert len(FAULTS) - native - cuda >= 150
    assert len({(fault.file, fault.old) for fault in FAULTS}) == len(FAULTS)


def test_every_room_has_faults() -> None:
    rooms = {path.name for path in (ROOT / "src/tonari").iterdir() if path.is_dir() and path.name != "__pycache__"}
    rooms |= {f"native/{path.name}" for path in (ROOT / "native").iterdir() if path.is_dir()}
    rooms |= {"graph/exports", "metrics/definitions"}
    assert not {room for room in rooms if not runner.chosen(FAULTS, [], [room])}


def test_recorded_verdicts_are_of_faults_that_were_found() -> None:
    with command.RESULTS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["fault"] for row in rows} <= {fault.name for fault in FAULTS}
    assert {row["verdict"] for row in rows} <= {runner.KILLED, runner.HUNG}


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


@pytest.mark.full
@pytest.mark.process
def test_a_named_test_of_the_full_suite_runs(tree: Path) -> None:
    library = tree.with_name("_native.so")
    library.touch()
    (tree / "src/tonari/core").mkdir(parents=True)
    (tree / "tests/test_tiny.py").write_text(
        TESTS.replace("def test_double", "import pytest\n\n\n@pytest.mark.full\ndef test_double")
    )
    (tree / "pytest.ini").write_text("[pytest]\nmarkers =\n    full\n    bench\n")
    job = runner.Job(tree, library, runner.Processes())
    named = Fault("tiny", "src/tiny.py", "x * 2", "x * 3", "", ("tests/test_tiny.py::test_double",))
    assert job.test_likely(named, None) == Verdict("tiny", "killed", named.tests[0], pytest.approx(0, abs=100))
    of_the_file = Fault("tiny", "src/tiny.py", "x * 2", "x * 3", "", ("tests/test_tiny.py",))
    assert job.test_likely(of_the_file, None).verdict == "open"


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
        ("src/tonari/streams/tuning.py", ["tests/streams"]),
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
    assert [fault.name for fault in some] == [
        "kdtree-next-float",
        "cli-exit-status",
        "cli-output-is-input",
        "cli-names-of-rows-in-another-file",
    ]


@pytest.mark.parametrize(
    ("room", "file"),
    [
        ("api", "src/tonari/api/index/segments/state.py"),
        ("api/index/segments/state", "src/tonari/api/index/segments/state.py"),
        ("graph/exports", "src/tonari/graph/exports/csr.py"),
        ("metrics/definitions", "src/tonari/metrics/definitions.py"),
        ("native/simd", "native/simd/avx2.hpp"),
    ],
)
def test_faults_are_chosen_by_room(room: str, file: str) -> None:
    files = {fault.file for fault in runner.chosen(FAULTS, [], [room])}
    assert file in files
    folder = room if room.startswith("native") else f"src/tonari/{room}"
    assert all(each.startswith((f"{folder}/", f"{folder}.")) for each in files)


def test_a_handful_is_of_quick_faults_and_the_same_for_a_seed() -> None:
    faults = [Fault(f"{number}", f"src/tonari/{number}.py", "", "", "") for number in range(50)]
    native = Fault("native", "native/simd/avx2.hpp", "", "", "")
    seconds = {each.name: 1.0 for each in faults[:40]} | {"40": 1000.0, native.name: 1.0}  # 41 to 49: not recorded
    drawn = [runner.handful([native, *faults], seconds, 3, seed) for seed in range(50)]
    assert all(len(set(each)) == 3 and set(each) <= set(faults[:40]) for each in drawn)
    assert len({fault for each in drawn for fault in each}) > 30
    assert runner.handful([native, *faults], seconds, 3, 7) == drawn[7]
    assert set(runner.handful(faults, seconds, 99, 0)) == set(faults[:40])


@pytest.mark.process
def test_without_a_fault_in_native_nothing_is_built(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def checked(job: runner.Job) -> None:
        assert (job.tree / "src/tonari/core" / runner.installed_library().name).is_file()

    subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)
    (tree / "src/tonari/core").mkdir(parents=True)
    (tree / "src/tonari/core/__init__.py").touch()
    monkeypatch.setattr(runner, "Builder", lambda *_: pytest.fail("built"))
    monkeypatch.setattr(runner.Job, "check_package", checked)
    faults = [
        Fault("seen", "src/tiny.py", "x * 2", "x + 2", "", ("tests/test_tiny.py",)),
        Fault("open", "src/tiny.py", "return x * 2", "return 2 * x", "", ("tests/test_tiny.py",)),
    ]
    told: list[Verdict] = []
    base = tree.with_name("base")
    found = runner.judge(faults, tree, base, 1, runner.Processes(), told.append, likely_only=True)
    assert [(verdict.fault, verdict.verdict) for verdict in found] == [("seen", "killed"), ("open", "open")]
    assert told == found
    assert command.status(found) == 1


@pytest.mark.parametrize(
    ("killed", "survived", "not_applied", "expected"),
    [(57, 1, 0, 1), (59, 0, 1, 1), (60, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 1)],
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
    assert [line.split()[0] for line in shown] == [
        "cli-exit-status",
        "cli-output-is-input",
        "cli-names-of-rows-in-another-file",
    ]


def test_a_name_that_no_fault_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(["--only", "nothing"])
    assert "there is no such fault" in capsys.readouterr().err


def test_a_handful_names_its_seed_and_lists_what_it_drew(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list", "--python", "--handful", "3", "--seed", "5"]) == 0
    first, *shown = capsys.readouterr().out.splitlines()
    assert first == "a handful drawn with --seed 5"
    assert len(shown) == 3
    assert command.main(["--list", "--handful", "3"]) == 0
    assert "--seed" in capsys.readouterr().out
