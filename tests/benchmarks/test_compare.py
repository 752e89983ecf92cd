"""Comparison of two commits: alternation, verdicts, rows, and a tree that is slow on purpose."""

from __future__ import annotations

import ast
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import __main__ as main
from benchmarks.harness import compare, rows
from benchmarks.harness.case import FirstCalls
from benchmarks.harness.compare import Verdict
from tests.helpers.bench_checks import a_case

SLOW = """
import time as _time
from tonari.api.searching import search as _search
def search(*given, **options):
    _time.sleep(0.01)
    return _search(*given, **options)
"""


def test_a_case_is_slower_where_most_rounds_say_so() -> None:
    steady = Verdict((1.2, 1.21, 1.19, 1.2), (1.0, 1.0, 1.0, 1.0))
    assert steady.ratio == pytest.approx(1.2)
    assert steady.slower(0.05)
    assert not steady.slower(0.25)
    # The median is as much slower, but a quarter of the rounds show no difference.
    unsteady = Verdict((1.2, 1.0, 1.0, 1.2, 1.0, 1.2, 1.2), (1.0,) * 7)
    assert unsteady.ratio == pytest.approx(1.2)
    assert not unsteady.slower(0.05)
    # A disturbance of a round affects both commits.
    assert Verdict((1.0, 5.0, 1.0), (1.0, 5.0, 1.0)).quartiles == (1.0, 1.0)
    assert not Verdict((0.5, 0.5), (1.0, 1.0)).slower(0.05)


def test_the_order_turns_every_round() -> None:
    asked: list[tuple[str, int]] = []

    def side(who: str, seconds: float) -> Any:
        return SimpleNamespace(who=who, ask=lambda loops: asked.append((who, loops)) or {"seconds": seconds})

    verdict = compare.take_turns(side("now", 2.0), side("base", 1.0), 3, 7)
    assert [who for who, _ in asked] == ["base", "now", "now", "base", "base", "now"]
    assert {loops for _, loops in asked} == {7}
    assert (verdict.ours, verdict.base) == ((2.0,) * 3, (1.0,) * 3)


def test_rows_can_be_read_as_a_bar(tmp_path: Path) -> None:
    verdict = Verdict((1.0, 2.0, 4.0), (1.0, 1.0, 1.0))
    found = compare.rows_of(a_case(), verdict, {"tonari": "abc+", "tonari 123": "123"}, "answers differ")
    shared = {"date": "2026-01-01", "suite": "tests", "device": "cpu", "machine": "a machine"}
    rows.append(tmp_path / "x.csv", [shared | row for row in found])
    ours, base = rows.read(tmp_path / "x.csv")
    assert (ours["who"], ours["commit"], ours["seconds_median"]) == ("tonari", "abc+", 2.0)
    assert ours["extras"] == {"ratio_to_base": 2.0, "quartiles": [1.5, 3.0]}
    assert (base["who"], base["commit"], base["ratio"]) == ("tonari 123", "123", 0.5)
    assert {row["note"] for row in (ours, base)} == {"answers differ"}


def test_a_side_that_fails_or_dies_says_so() -> None:
    site = Path(__file__).parent
    fails = compare.Side("base", site, [sys.executable, "-c", 'input(); print(\'{"error": "ValueError: no"}\')'])
    with pytest.raises(RuntimeError, match="base: ValueError: no"):
        fails.ask(loops=1)
    fails.close()
    dies = compare.Side("base", site, [sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(RuntimeError, match="the process of base died, exit code 3"):
        dies.ask(loops=1)
    dies.close()


@pytest.mark.parametrize("there", [True, False])
def test_a_base_is_built_with_cmake_or_else_with_pip(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare.importlib.util, "find_spec", lambda name: there or None)
    monkeypatch.setattr(compare.shutil, "which", lambda name: f"/usr/bin/{name}")
    commands = list(compare.steps(tmp_path / "source", tmp_path / "build", tmp_path / "site"))
    if there:
        assert [command[1] for command in commands] == ["-S", "--build", "--install"]
        assert "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache" in commands[0]
    else:
        assert [command[1:4] for command in commands] == [["-m", "pip", "install"]]


def test_a_base_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def git(*arguments: str) -> str:
        asked.append(arguments)
        if arguments[:2] == ("worktree", "add"):
            (Path(arguments[-2]) / "src" / "tonari").mkdir(parents=True)
            (Path(arguments[-2]) / "src" / "tonari" / "__init__.py").write_text("here = True\n")
        return ""

    monkeypatch.setattr(compare, "FOLDER", tmp_path)
    monkeypatch.setattr(compare, "git", git)
    monkeypatch.setattr(compare, "steps", lambda *_: iter([[sys.executable, "-c", ""]]))
    for _ in range(2):
        site = compare.built("abc")
        assert (site / "tonari" / "__init__.py").read_text() == "here = True\n"
    assert [arguments[1] for arguments in asked] == ["prune", "add", "remove"]
    monkeypatch.setattr(compare, "steps", lambda *_: iter([[sys.executable, "-c", "raise SystemExit('no compiler')"]]))
    with pytest.raises(SystemExit, match="no compiler"):
        compare.built("def")
    assert asked[-1][1] == "remove"
    assert not (tmp_path / "def" / "built").exists()


def test_a_commit_that_does_not_exist_is_told() -> None:
    with pytest.raises(SystemExit, match="git rev-parse"):
        main.main(["compare", "--base", "no-such-commit", "exact_cpu", "--no-csv"])


def test_a_folder_is_a_base_only_if_tonari_can_be_imported_from_it(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=f"--base {tmp_path} has no tonari/__init__.py: make it by `pip install"):
        main.main(["compare", "--base", str(tmp_path), "exact_cpu", "--no-csv"])
    (tmp_path / "tonari").mkdir()
    (tmp_path / "tonari" / "__init__.py").touch()
    assert compare.base_of(str(tmp_path)) == (tmp_path.name, tmp_path)


def test_a_first_call_is_timed_in_its_own_process_and_not_repeated() -> None:
    answer = SimpleNamespace(distances=np.zeros(1), indices=np.zeros(1))
    calls: list[int] = []

    def call() -> dict[str, Any]:
        calls.append(1)
        return {"seconds": 3.0, "answer": answer, "kernels": 7}

    run: Any = SimpleNamespace(time_once=lambda call: call() or 1.0)
    reply = compare.first_reply(run, FirstCalls(call))
    assert (reply["seconds"], reply["kernels"], len(calls)) == (3.0, 7, 1)
    assert compare.seconds_of_calls(run, FirstCalls(call), 100) == 3.0
    assert len(calls) == 2


def test_first_calls_that_compile_more_kernels_say_so(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    replies = {"tonari": 25, "tonari base": 24}

    class Side:
        def __init__(self, who: str, site: Path, command: Any) -> None:
            self.who, self.site, self.calls = who, site, 0

        def ask(self, **request: Any) -> dict[str, Any]:
            self.calls += 1
            kernels = {"kernels": replies[self.who], "digest": "", "origin": str(self.site)}
            return {"seconds": float(self.calls)} | (kernels if "case" in request else {})

        def close(self) -> None:
            assert self.calls == 3, "the call that made ready counts as a round"

    monkeypatch.setattr(compare, "Side", Side)
    monkeypatch.setattr(compare, "base_of", lambda named: (named, compare.present()))
    arguments = ["compare", "--base", "base", "exact_cuda", "--case", "cold-k10", "--repeats", "3", "--no-csv"]
    assert main.main(arguments) == 0
    assert "25 kernels compiled, base 24" in capsys.readouterr().out


def test_suites_import_of_tonari_only_what_every_version_has() -> None:
    """Suites are imported together with the tonari of a base commit, whose internal modules may be elsewhere."""
    for path in sorted((compare.ROOT / "benchmarks" / "suites").rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if name.split(".")[0] == "tonari"], f"{path}, line {node.lineno}"


def test_a_slower_tree_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    base, slow = compare.present(), tmp_path / "slow"
    shutil.copytree(base / "tonari", slow / "tonari", ignore=shutil.ignore_patterns("__pycache__"))
    with (slow / "tonari" / "__init__.py").open("a") as file:
        file.write(SLOW)
    monkeypatch.setattr(compare, "present", lambda: slow)
    arguments = ["compare", "--base", str(base), "exact_cpu", "--case", "search-16d", "--scale", "0.001"]
    path = tmp_path / "out.csv"
    assert main.main([*arguments, "--repeats", "4", "--threads", "1", "--csv", str(path)]) == 1
    shown = capsys.readouterr().out
    assert "SLOWER" in shown
    assert "answers differ" not in shown
    assert "1 of 1 cases slower by more than 5%, beyond their spread, or failed" in shown
    assert [row["who"] for row in rows.read(path)] == ["tonari", f"tonari {base.name}"]
    assert rows.read(path)[0]["seconds_median"] > 0.01
