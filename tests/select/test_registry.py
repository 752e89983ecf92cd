"""Methods of selection by name, and their options."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tonari
from tonari.select.registry import METHODS, check_method, make_options, option_names


@pytest.mark.process
def test_a_method_is_imported_when_it_is_asked_for() -> None:
    code = (
        "import sys, tonari; from tonari.select.registry import METHODS, option_names;"
        "loaded = [m for m in METHODS if f'tonari.select.{m}' in sys.modules];"
        "names = {m: option_names(m, 'cpu') for m in METHODS};"
        "print(loaded, [name for name in ('torch', 'triton') if name in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(tonari.__file__).parents[1])}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == "[] []\n"


def test_options_of_all_methods() -> None:
    queue = ("buffer", "buffer_size", "group", "levels")
    assert {method: set(option_names(method, "cuda")) for method in METHODS} == {
        "insertion": {*queue},
        "heap": {*queue},
        "merge_queue": {*queue, "m", "aligned"},
        "hierarchical": {"group", "levels"},
        "quick": {"unit"},
        "bitonic": set(),
        "threshold": {"samples"},
        "radix": {"bits"},
    }
    assert set(option_names("threshold", "cpu")) == {"samples", "batch", "finish"}
    assert option_names("quick", "cpu") == ()
    for method in METHODS:
        assert check_method(method) == method
        for device in ("cpu", "cuda"):
            record = make_options(method, {}, device)
            with pytest.raises(AttributeError, match="cannot assign"):
                record.anything = 1
