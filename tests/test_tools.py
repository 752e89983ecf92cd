"""The tools of pre-commit are those of `make lint`, in the same versions."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"([\w-]+)==([\d.]+)")


def test_pre_commit_has_the_versions_of_make_lint() -> None:
    lint = re.search(r"^lint = \[.*?\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
    assert lint is not None
    pinned = dict(PIN.findall(lint[0]))
    used = PIN.findall((ROOT / ".pre-commit-config.yaml").read_text())
    assert {name for name, _ in used} == set(pinned)
    assert [(name, version) for name, version in used if pinned[name] != version] == []
