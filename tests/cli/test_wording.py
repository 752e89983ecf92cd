"""Messages of the library, with the options of the command line instead of Python's arguments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tonari.cli import _common as _wording
from tonari.cli._common import in_words, printable


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("choose with key=: x", "choose with --key: x"),
        ("use method='exact'", "use --method exact"),
        ("name them by columns= or drop= of", "name them by --columns or --drop of"),
        ("leave out drop=['id']", "leave out --drop 'id'"),
        ("try .astype(numpy.float64)", "try 'tonari convert IN OUT --dtype float64'"),
        ("read it with max_expansion=200", "set TONARI_MAX_EXPANSION=200"),
        ("use tonari.knn_graph", "use 'tonari graph'"),
        ("nothing of Python here: keyhole=3", "nothing of Python here: keyhole=3"),
    ],
)
def test_hints_name_options(message: str, words: str) -> None:
    assert in_words(message) == words


def test_every_hint_is_one_that_the_library_gives() -> None:
    """If a message of the library were reworded, users would see the names of Python arguments."""
    sources = "\n".join(
        path.read_text(encoding="utf-8")
        for path in Path(_wording.__file__).parents[1].rglob("*.py")
        if path.name != "_wording.py"
    )
    for word in ("key=:", "by columns=", "tonari.io.read_ground_truth", "tonari.build_graph", "tonari.knn_graph"):
        assert word in sources
    assert len(_wording._WORDS) == len({pattern.pattern for pattern, _ in _wording._WORDS})
    assert all(isinstance(pattern, re.Pattern) for pattern, _ in _wording._WORDS)


def test_what_a_terminal_obeys_is_escaped() -> None:
    assert printable("a\tb\nc é 日") == "a\tb\nc é 日"
    assert printable("\x1b[31m\x07\x9b\u202e\ud800") == "\\x1b[31m\\x07\\x9b\\u202e\\ud800"
