"""Files of points, and checks of the errors that damaged files raise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tonari.io import (
    SUFFIXES,
    FileFormatError,
    read,
    write,
)


def points_file(tmp_path: Path, suffix: str, shape: tuple[int, int] = (6, 5)) -> Path:
    path = tmp_path / f"points{suffix}"
    write(path, np.ones(shape, SUFFIXES[suffix].dtype or np.float32))
    return path


def refusal(path: Path, call: Any = read, **options: Any) -> str:
    """Return the message of the ValueError that reading and describing a file both raise."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        call(path, **options)
    return str(caught.value)


def counts(message: str) -> tuple[int, list[int]]:
    """Return the numbers (bytes found, bytes expected) in a message."""
    found = re.search(r"found (\d+) bytes, expected ((?:at least )?(\d+)(?: or (\d+))?) bytes?", message)
    assert found, message
    return int(found[1]), [int(number) for number in found.groups()[2:] if number]


def damage(path: Path, call: Any = read, **options: Any) -> FileFormatError:
    """Return the documented exception, with path, bytes found and bytes expected."""
    with pytest.raises(FileFormatError, match=re.escape(str(path))) as caught:
        call(path, **options)
    error = caught.value
    assert error.path == path
    assert isinstance(error.found, int)
    assert f"found {error.found} bytes" in str(error)
    assert f"expected {error.expected}" in str(error)
    return error
