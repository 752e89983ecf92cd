"""Pictures of a graph need matplotlib, which is imported only to draw one."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import ENVIRONMENT

GRAPH = tonari.knn_graph(checks.gaussian(300, 6), 8)


def test_matplotlib_is_imported_when_something_is_drawn() -> None:
    code = "import sys, tonari; print('matplotlib' in sys.modules, 'scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"tonari\[plot\]"):
        GRAPH.plot.distances()
