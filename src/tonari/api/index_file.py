"""The file of an Index: an uncompressed .npz with its points, and what it was made with as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.inputs import BFLOAT16
from tonari.io._atomic import atomic
from tonari.io._common import FileFormatError, expansion, reason
from tonari.io.npz import Archive

_FORMAT, _VERSION = "tonari.Index", 1
_WORDS = ("metric", "method", "asked", "dtype")


def write(path: str | os.PathLike[str], points: Any, **about: Any) -> None:
    """Write points in host memory or on a device, and facts about the Index."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path: expected a path, got {type(path).__name__}")
    rows = inputs.held(inputs.to_host(points))
    given = about | {"format": _FORMAT, "version": _VERSION, "dtype": inputs.name_of_dtype(points)}
    stored = rows.view(np.uint16) if rows.dtype == BFLOAT16 else rows
    with atomic(path) as file:
        np.savez(file, about=np.array(json.dumps(given)), points=stored)


def read(path: str | os.PathLike[str], max_expansion: float | None) -> tuple[npt.NDArray[Any], dict[str, Any]]:
    """Read what :func:`write` wrote: the points in host memory, and the facts."""
    path, most = Path(path), expansion(max_expansion)
    not_whole = f"{path}: not a whole Index file: "
    try:
        with Archive(path, most) as archive:
            text, points = archive.text("about"), archive.matrix("points")
    except FileFormatError as error:
        detail = str(error).removeprefix(str(path)).lstrip(":, ")
        raise FileFormatError(not_whole + detail, path, error.found, error.expected) from error
    try:
        about = json.loads(text)
        if about["format"] != _FORMAT:
            raise ValueError(f"its format is {about['format']!r}")
        if about["version"] != _VERSION:
            raise ValueError(f"its format version is {about['version']}, this release reads {_VERSION}")
        for name in _WORDS:
            if not isinstance(about[name], str):
                raise ValueError(f"its {name} is {about[name]!r}")
        if type(about["k"]) is not int:
            raise ValueError(f"its k is {about['k']!r}")
        rows = points.view(BFLOAT16) if about["dtype"] == inputs.dtype_name(BFLOAT16) else points
        if inputs.name_of_dtype(rows) != about["dtype"]:
            raise ValueError(f"its points are {inputs.name_of_dtype(rows)}, not {about['dtype']}")
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        expected = "what Index.save writes"
        message = f"{not_whole}found {archive.size} bytes, expected {expected}: {reason(error)}"
        raise FileFormatError(message, path, archive.size, expected) from error
    return rows, about
