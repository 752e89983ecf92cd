"""pre-commit uses the same versions of tools as `make lint`, and phrases are counted."""

from __future__ import annotations

import re
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"([\w-]+)==([\d.]+)")


def test_pre_commit_has_the_versions_of_make_lint() -> None:
    lint = re.search(r"^lint = \[.*?\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
    assert lint is not None
    pinned = dict(PIN.findall(lint[0]))
    used = PIN.findall((ROOT / ".pre-commit-config.yaml").read_text())
    assert {name for name, _ in used} == set(pinned)
    assert [(name, version) for name, version in used if pinned[name] != version] == []


# --- .ci/words ---------------------------------------------------------------------------------------------------


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load the module .ci/words, whose name has no suffix."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = SourceFileLoader("words", str(ROOT / ".ci" / "words"))
    spec = spec_from_loader("words", loader)
    assert spec is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "words", module)
    loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a repository in which documents have one occurrence of the phrase, and sources two."""
    for folder in (".ci", "docs", "src"):
        (tmp_path / folder).mkdir()
    (tmp_path / ".ci" / "words.txt").write_text("# a list\nbeside 1 2 \\bbeside\\b\n")
    (tmp_path / "README.md").write_text("One beside.\n\n```sh\nbeside\n```\n`beside` <!-- beside -->\n")
    (tmp_path / "CONTRIBUTING.md").write_text("<!-- report: x -->\nbeside\n<!-- end report -->\nbesides\n")
    (tmp_path / "src" / "a.py").write_text("# Beside.\nbeside = 1\n")
    return tmp_path


def test_phrases_are_counted_in_prose_and_in_sources(
    words: Any, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words.main([], tree) == 0
    assert words.main(["beside"], tree) == 0
    shown = "README.md:1: One beside.\nsrc/a.py:1: # Beside.\nsrc/a.py:2: beside = 1\n"
    assert capsys.readouterr().out == shown


def test_one_phrase_more_is_found_and_one_less_can_be_written(
    words: Any, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tree / "docs" / "page.md"
    page.write_text("Another beside.\n")
    assert words.main([], tree) == 1
    assert "beside in docs: 2, at most 1; say it otherwise (.ci/words beside)" in capsys.readouterr().out
    (tree / "README.md").write_text("")
    page.unlink()
    assert words.main(["--write"], tree) == 0
    assert [(phrase.docs, phrase.src) for phrase in words.phrases((tree / ".ci" / "words.txt").read_text())] == [(0, 2)]


def test_a_list_that_cannot_be_read_is_named(words: Any, tree: Path) -> None:
    (tree / ".ci" / "words.txt").write_text("beside\n")
    with pytest.raises(SystemExit, match="line 1: 'beside', expected: name, count in docs"):
        words.main([], tree)
