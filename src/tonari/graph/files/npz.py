"""Save and load a graph as an uncompressed .npz file: its arrays, its matrix if it has one, and JSON for the rest."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tonari.graph.lists import Lists
from tonari.io._atomic import atomic
from tonari.io._common import FileFormatError, expansion, reason
from tonari.io.formats.npz import Archive
from tonari.nn_descent.report import DescentReport

_FORMAT = "tonari.KNNGraph"
_VERSION = 1

Graph = TypeVar("Graph")


def save(lists: Lists, path: str | os.PathLike[str]) -> None:
    """Write a graph; see :meth:`tonari.KNNGraph.save`."""
    distances, indices = lists.in_numpy()
    about: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "metric": lists.metric,
        "method": lists.method,
        "include_self": bool(lists.include_self),
        "seed": None if lists.seed is None else int(lists.seed),
    }
    if lists.report is not None:
        about["report"] = lists.report.as_dict()
    if lists.weights is not None:
        about["weights"] = lists.weights
    if lists.filters:
        about["filters"] = lists.filters
    arrays: dict[str, Any] = {"indices": indices, "distances": distances}
    if lists.transform is not None:
        arrays["transform"] = lists.transform
    with atomic(path) as file:
        np.savez(file, about=np.array(json.dumps(about)), **arrays)


def load(path: str | os.PathLike[str], max_expansion: float | None, make: Callable[..., Graph]) -> Graph:
    """Read a graph; `make` turns its attributes into a graph and checks them. See :meth:`tonari.KNNGraph.load`."""
    path, most = Path(path), expansion(max_expansion)
    not_whole = f"{path}: not a whole KNNGraph file: "
    try:
        with Archive(path, most) as archive:
            text, indices, distances = archive.text("about"), archive.matrix("indices"), archive.matrix("distances")
            transform = archive.matrix("transform") if "transform" in archive.keys else None
    except FileFormatError as error:
        detail = str(error).removeprefix(str(path)).lstrip(":, ")
        raise FileFormatError(not_whole + detail, path, error.found, error.expected) from error
    try:
        about = json.loads(text)
        if about["format"] != _FORMAT:
            raise ValueError(f"its format is {about['format']!r}")
        if about["version"] != _VERSION:
            raise ValueError(f"its format version is {about['version']}, this release reads {_VERSION}")
        for name, kind in (("method", str), ("include_self", bool), ("seed", int | None)):
            if not isinstance(about[name], kind):
                raise ValueError(f"its {name} is {about[name]!r}")
        return make(
            indices,
            distances,
            metric=about["metric"],
            method=about["method"],
            include_self=about["include_self"],
            seed=about["seed"],
            report=DescentReport.from_dict(about["report"]) if "report" in about else None,
            weights=about.get("weights"),
            transform=transform,
            filters=about.get("filters", ()),
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        expected = "what KNNGraph.save writes"
        message = f"{not_whole}found {archive.size} bytes, expected {expected}: {reason(error)}"
        raise FileFormatError(message, path, archive.size, expected) from error
