"""Two commits side by side: turns, verdicts, rows; and a tree that was made slow on purpose."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import __main__ as main
from benchmarks.harness import compare, rows
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
    # As much in the median, but a quarter of the rounds see nothing of it.
    unsteady = Verdict((1.2, 1.0, 1.0, 1.2, 1.0, 1.2, 1.2), (1.0,) * 7)
    assert unsteady.ratio == pytest.approx(1.2)
    assert not unsteady.slower(0.05)
    # What disturbs a round disturbs both.
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


def test_a_slower_tree_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    base, slow = compare.present(), tmp_path / "slow"
    shutil.copytree(base / "tonari", slow / "tonari", ignore=shutil.ignore_patterns("__pycache__"))
    with (slow / "tonari" / "__init__.py").open("a") as file:
        file.write(SLOW)
    monkeypatch.setattr(compare, "present", lambda: slow)
    monkeypatch.setattr(compare, "built", lambda commit: base)
    monkeypatch.setattr(compare, "git", lambda *_: "abc1234")
    arguments = ["compare", "--base", "main", "exact_cpu", "--case", "search-16d", "--scale", "0.001"]
    path = tmp_path / "out.csv"
    assert main.main([*arguments, "--repeats", "4", "--threads", "1", "--csv", str(path)]) == 1
    shown = capsys.readouterr().out
    assert "SLOWER" in shown
    assert "answers differ" not in shown
    assert "1 of 1 cases slower by more than 5%, beyond their spread, or failed" in shown
    assert [row["who"] for row in rows.read(path)] == ["tonari", "tonari abc1234"]
    assert rows.read(path)[0]["seconds_median"] > 0.01
