"""Calls with sparse queries and dense points, or the reverse: one array is converted to the layout of the other."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

from tonari import inputs
from tonari.api.sparse.answers import are_sparse, check_place, checked_metric, refuse_for_sparse
from tonari.core.errors import BudgetExceeded
from tonari.sparse.dense import compressed
from tonari.sparse.rows import as_sparse_rows

P = ParamSpec("P")
R = TypeVar("R")


def in_one_layout(verb: Callable[P, R]) -> Callable[P, R]:
    """Wrap a public function of queries and points, so that one of them may be sparse and the other dense.

    The array with fewer rows is converted to the layout of the other, so the copy has at most 12 bytes for each number
    of the dense array. If both have the same number of rows, the queries are converted. If the copy and the search do
    not fit into `memory`, the other array is converted. No value changes, so the answer has the same bits as with two
    sparse or two dense arrays. Such a call supports the metrics, methods and devices of sparse rows, whichever array is
    longer.
    """

    @functools.wraps(verb)
    def calling(*args: P.args, **kwargs: P.kwargs) -> R:
        given = dict(zip(("queries", "points"), args, strict=False)) | kwargs
        if are_sparse(given.get("queries")) == are_sparse(given.get("points")):
            return verb(*args, **kwargs)
        queries, points = given.pop("queries"), given.pop("points")
        refuse_for_sparse(**{name: given.get(name) for name in ("differentiable", "plan")})
        sets = checked_metric(given.get("metric", "euclidean")).bits
        check_place(given.get("method", "auto"), given.get("device", "auto"))
        side, memory = inputs.side_of(queries, "queries"), inputs.parse_memory(given.get("memory"))
        both = _Both.of(queries, points, sets=sets)

        def answer(convert: str) -> Any:
            with inputs.after_copies(both.dense_bytes(convert), memory, f"dense {convert}") as left:
                rest = given if memory is None else given | {"memory": left}
                # Type checkers cannot match the other arguments with P.
                return verb(*both.converted(convert, left), *args[2:], **rest)  # type: ignore[arg-type]

        first, *others = both.ways
        try:
            found = answer(first)
        except BudgetExceeded as error:
            found = _otherwise(answer, others, error)
        if isinstance(found, tuple):
            return cast(R, type(found)(*(inputs.hand_back(part, side) for part in found)))
        return cast(R, inputs.hand_back(found, side))

    return calling


def _otherwise(answer: Callable[[str], Any], ways: Sequence[str], error: BudgetExceeded) -> Any:
    """Convert the other array if `memory` is too small for the first way; raise the error that asks for less memory."""
    for convert in ways:
        try:
            return answer(convert)
        except BudgetExceeded as another:
            error = min(error, another, key=lambda each: each.least or math.inf)
    raise error


class _Both(NamedTuple):
    """Queries and points in two layouts.

    Attributes
    ----------
    rows : dict
        The two arrays, under the names "queries" and "points".
    dense : str
        The name of the dense one.
    sets : bool
        Whether rows are sets, which are compared as sparse rows.
    """

    rows: dict[str, Any]
    dense: str
    sets: bool

    @classmethod
    def of(cls, queries: Any, points: Any, *, sets: bool) -> _Both:
        rows = {
            name: as_sparse_rows(x, name, sets=sets) if are_sparse(x) else x
            for name, x in (("queries", queries), ("points", points))
        }
        return cls(rows, "points" if are_sparse(queries) else "queries", sets)

    @property
    def ways(self) -> list[str]:
        """The names of the arrays that may be converted, the preferred one first."""
        sparse = "queries" if self.dense == "points" else "points"
        if self.sets:
            return [self.dense]
        ours, theirs = len(self.rows[self.dense]), len(self.rows[sparse])
        first = ours < theirs or (self.dense == "queries" and ours == theirs)
        return [self.dense, sparse] if first else [sparse, self.dense]

    def dense_bytes(self, convert: str) -> int:
        """Return the bytes of the copy of one array if it is dense; the plan of a search counts a sparse copy."""
        rows = self.rows[convert]
        return 0 if convert == self.dense else math.prod(rows.shape) * rows.dtype.itemsize

    def converted(self, convert: str, memory: int | None) -> tuple[Any, Any]:
        """Return queries and points after the conversion of one of them within a budget."""
        rows, x = dict(self.rows), self.rows[convert]
        if convert == self.dense:
            rows[convert] = compressed(x, convert, sets=self.sets, memory=memory)
        else:
            rows[convert] = x.toarray()
        return rows["queries"], rows["points"]
