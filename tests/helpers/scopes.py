"""Scopes of points, in which searches with filters look, for tests."""

from __future__ import annotations

from typing import Any

from tonari.filters.scope import Scope
from tonari.methods.call import Call
from tonari.methods.places.place import CpuPlace
from tonari.methods.places.points import Points
from tonari.metrics import get_metric


class Prepared(Points):
    """Points that claim to be prepared."""

    prepared = True


def scope_of(
    rows: Any, metric: str = "euclidean", *, place: Any = None, kind: type[Points] = Points, **given: Any
) -> Scope:
    """Return a scope of checked rows; `given` sets fields of its call."""
    return Scope(points=kind(rows, Call(metric=get_metric(metric), place=place or CpuPlace(), **given)))
