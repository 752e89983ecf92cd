"""Translation of hints in the library's messages, which name Python arguments, to command-line options."""

from __future__ import annotations

import re
import unicodedata

_WORDS = tuple(
    (re.compile(python), words)
    for python, words in (
        (r"\bkey=:", "--key:"),
        (r"\bdrop=\['([^']*)'\]", r"--drop '\1'"),
        (r"\b(columns|drop)= ", r"--\1 "),
        (r"leave out=, or pass (.*?), with metric='(\w+)'", r"give \1, with --metric \2"),
        (r"\bby columns=", "by --columns"),
        (r"; slice the array, as in points\[:, 1:\]", ""),
        (r"try \.astype\(numpy\.(\w+)\)", r"try 'tonari convert IN OUT --dtype \1'"),
        (r"pass float64 rows, exact", "use 'tonari convert IN OUT --dtype float64', exact"),
        (r"Convert with \.astype\(\)\.", "Save it as numbers."),
        (r"Use \.reshape\(len\(array\), -1\)\.", "Save it with a row for each point."),
        (r"read it with max_expansion=(\d+)", r"set TONARI_MAX_EXPANSION=\1"),
        (r"use tonari\.io\.read_ground_truth\b", "compare it by 'tonari recall'"),
        (r"\buse tonari\.build_graph\b", "use 'tonari graph -o DIR/'"),
        (r"\buse tonari\.knn_graph\b", "use 'tonari graph'"),
        (r"\buse (method|metric|device)='([\w:-]+)'", r"use --\1 \2"),
        (r"search the queries in smaller batches", "use an output in a directory, -o DIR/"),
    )
)


# Characters that change the direction of displayed text, and so could disguise a file name.
_REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    """Escape control characters and characters that reverse text, which file names and contents may include.

    >>> from tonari.cli._wording import printable
    >>> printable("a\\x1b]0;title\\x07.npy")
    'a\\\\x1b]0;title\\\\x07.npy'
    """
    return "".join(
        char
        if char in "\n\t" or not (unicodedata.category(char) in ("Cc", "Cs") or char in _REORDERING)
        else char.encode("unicode_escape").decode()
        for char in text
    )


def in_words(message: str) -> str:
    """Replace the Python arguments in a message's hints by command-line options.

    >>> from tonari.cli._wording import in_words
    >>> in_words("a.npz: found 2 arrays, expected one. Choose with key=: x, y")
    'a.npz: found 2 arrays, expected one. Choose with --key: x, y'
    """
    for python, words in _WORDS:
        message = python.sub(words, message)
    return message
