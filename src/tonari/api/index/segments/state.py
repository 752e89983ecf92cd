"""The state of an Index: segments of points in ascending order of id. An update makes a new State."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.index.segments import joining
from tonari.api.index.segments.balancing import Make, balanced, held_bytes, joined, packed_together
from tonari.api.index.segments.part import Ids, Part
from tonari.api.index.segments.segment import Segment
from tonari.core.errors import BudgetExceeded
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors, nearest_of, none_within
from tonari.filters.rules import Rules
from tonari.filters.scope import on_host
from tonari.filters.searches import asking
from tonari.filters.shared import SharedMask
from tonari.methods.call import Call
from tonari.methods.repeated import Kept, Key

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")

_ENTRY = 12  # bytes of an entry in a neighbour list: a float64 distance and an int32 id


class Kind(NamedTuple):
    """Properties of an Index that are kept while it has no points.

    Attributes
    ----------
    sample : checked rows of shape (1, d)
        A row of zeros with the array library, device and dtype of its points.
    chosen : (str, int)
        See :class:`tonari.api.index.segments.segment.Segment`.
    """

    sample: Any
    chosen: tuple[str, int]

    @classmethod
    def like(cls, points: Any, chosen: tuple[str, int]) -> Kind:
        """Return the kind of an Index whose points are like `points`, an array that may have no rows."""
        shape = 1, points.shape[1]
        return cls(np.zeros(shape, points.dtype) if isinstance(points, np.ndarray) else points.new_zeros(shape), chosen)


class Parts:
    """The parts of an Index of dense or sparse rows, and the id that the next point gets; updates make new ones."""

    def __init__(self, parts: Sequence[Part], next_id: int) -> None:
        self.parts, self.next_id = tuple(parts), next_id
        self.n: int = sum(part.n for part in self.parts)
        self.kept: dict[Key, Kept] = {}  # functions that answer repeated searches of this state

    def with_parts(self, parts: Sequence[Part], next_id: int) -> Self:
        """Return a state of the same kind with other parts."""
        raise NotImplementedError

    @cached_property
    def ids(self) -> Ids:
        """The ids of the points, ascending, in an array that cannot be written to."""
        ids = np.concatenate([np.empty(0, np.int64), *(part.ids_left for part in self.parts)])
        ids.setflags(write=False)
        return ids

    def with_rows(self, points: Any, make: Make) -> Self:
        """Return a state with further points: checked rows, which must not be changed afterwards."""
        ids = np.arange(self.next_id, self.next_id + len(points))
        return self.with_parts(balanced([*self.parts, (points, ids)], make), self.next_id + len(points))

    def without_ids(self, ids: Ids, make: Make) -> Self:
        """Return a state without the points `ids`; raise ValueError for an id that is absent."""
        rows = [part.rows_of(ids) for part in self.parts]
        _refuse_absent(ids, rows, self.next_id)
        if not len(ids):
            return self
        kept = [part.without(here[here >= 0]) for part, here in zip(self.parts, rows, strict=True)]
        return self.with_parts(balanced([part for part in kept if part.n], make), self.next_id)

    def compacted(self, make: Make) -> Self:
        """Return a state with all points packed as one segment; this state if it is one already."""
        if not self.parts or (len(self.parts) == 1 and not len(self.parts[0].gone)):
            return self
        return self.with_parts([packed_together(self.parts, make, 0)], self.next_id)


class State(Parts):
    """The parts of an Index of dense rows.

    `only` is the segment of an Index that has a single segment and whose ids are row numbers, so that results need no
    conversion; else None. `kind` is required if there are no parts.
    """

    def __init__(self, parts: Sequence[Part], next_id: int, kind: Kind | None = None) -> None:
        super().__init__(parts, next_id)
        self.only: Segment | None = self.parts[0].segment if len(self.parts) == 1 and self.parts[0].are_rows else None
        self._kind = kind
        # Copies of some rows of points that are in arrays of the caller, to detect later changes.
        self.unchanged = tuple(part.segment.unchanged for part in self.parts if part.segment.unchanged is not None)

    def with_parts(self, parts: Sequence[Part], next_id: int) -> State:
        """Return a state of the same kind with other parts."""
        return State(parts, next_id, None if parts else Kind.like(self.sample, self.chosen))

    def check_unchanged(self) -> None:
        """Raise RuntimeError if points in an array of the caller have changed; see :class:`inputs.Unchanged`."""
        for one in self.unchanged:
            one.check()

    @property
    def largest(self) -> Segment:
        """The segment with most points."""
        largest: Segment = max((part.segment for part in self.parts), key=lambda segment: segment.n)
        return largest

    @property
    def chosen(self) -> tuple[str, int]:
        """The name of the largest segment's method, and the k of the plan that packed its points."""
        return self.largest.chosen if self._kind is None else self._kind.chosen

    @property
    def sample(self) -> Any:
        """Some points or, if none is left, a row of zeros: they show the library, device and dtype of the points."""
        return self.parts[0].segment.given if self._kind is None else self._kind.sample

    @cached_property
    def points(self) -> Any:
        """All original points in ascending order of id."""
        return joined([part.points_left for part in self.parts]) if self.parts else self.sample[:0]

    def copied(self) -> State:
        """Return a copy that shares the points and the packed data; data that is prepared later is not shared."""
        return State([part.copied() for part in self.parts], self.next_id, self._kind)

    def nearest(self, rows: Any, k: int, rules: Rules | None, call: Call, taken: int = 0) -> Neighbors:
        """Find the k nearest points of checked rows, with k at most n; copies of the rows take `taken` bytes.

        Filters refer to ids. Each segment is searched with the filters for its own remaining ids, and the lists of all
        segments are merged. If filters allow fewer than k points, lists end with -1.
        """
        if self.only is not None and self.next_id == self.n:
            return asking.nearest(self.only.those(call.threads, taken=taken), rows, k, rules, call.progress)

        def find(part: Part, held: int, shown: ProgressLike) -> Neighbors:
            those = part.read().those(call.threads, taken=held)
            if rules is not None:
                near = asking.nearest(those, rows, k, _rules_of(part, rules), shown)
                return joining.allowed_ones(on_host(near), part.names(index_dtype(self.next_id)))
            near = asking.nearest(those, rows, min(k + len(part.gone), len(those)), None, shown, around=True)
            device = None if isinstance(near.indices, np.ndarray) else near.indices.device
            return joining.named(near, part.names(index_dtype(self.next_id), device), min(k, part.n))

        return joining.join(self.each(find, call.progress, taken, len(rows) * k), k, call.metric)

    def within(
        self, rows: Any, limits: npt.NDArray[Any], rules: Rules | None, most: int | None, call: Call, taken: int = 0
    ) -> RadiusNeighbors:
        """Find all points within the radius of each checked row, or the `most` nearest; see :meth:`nearest`."""
        if self.only is not None and (rules is None or self.next_id == self.n):
            return asking.within(self.only.those(call.threads, taken=taken), rows, limits, rules, most, call.progress)

        def find(part: Part, held: int, shown: ProgressLike) -> tuple[RadiusNeighbors, Any]:
            those = part.read().those(call.threads, taken=held)
            wanted = None if most is None else most + len(part.gone) * (rules is None)
            ours = None if rules is None else _rules_of(part, rules)
            near = asking.within(those, rows, limits, ours, wanted, shown, around=True)
            return near, part.names(index_dtype(self.next_id))

        found = self.each(find, call.progress, taken)
        if not found:
            return none_within(self.next_id, limits.dtype, len(limits))
        both = joining.join_within(found, call.metric)
        return both if most is None else nearest_of(both, most)

    def count(
        self, rows: Any, limits: npt.NDArray[Any], rules: Rules | None, call: Call, make: Make, taken: int = 0
    ) -> Any:
        """Count the points within the limits of checked rows, without removed points; see :meth:`nearest`."""
        if self.only is not None and (rules is None or self.next_id == self.n):
            return asking.count(self.only.those(call.threads, taken=taken), rows, limits, rules, call.progress)

        def count(part: Part, held: int, shown: ProgressLike) -> Any:
            those = part.read().those(call.threads, taken=held)
            if rules is not None:
                return asking.count(those, rows, limits, _rules_of(part, rules), shown)
            counts = those.count(rows, limits, shown)
            if len(part.gone):
                removed = make(inputs.rows_at(part.segment.given, part.gone), held)
                counts = counts - removed.those(call.threads, taken=held).count(rows, limits, False)
            return counts

        counts = self.each(count, call.progress, taken)
        return sum(counts[1:], start=counts[0]) if counts else np.zeros(len(limits), np.int64)

    def each(
        self, ask: Callable[[Part, int, ProgressLike], T], progress: ProgressLike, taken: int, entries: int = 0
    ) -> list[T]:
        """Call `ask` for each part, one after another, and return its answers.

        `ask` receives the part, the bytes that other parts, earlier answers and other data (`taken`) use, and the
        `progress` of its search, which is False for all parts but the largest. If the remaining memory is too small for
        a part, the other parts free the data that they can prepare again.
        """
        answers, largest, bounded = list[T](), self.largest if self.parts else None, False
        for part in self.parts:
            shown = progress if part.segment is largest else False
            others = [other for other in self.parts if other is not part]
            bounded = part.segment.memory is not None and bool(others)
            lists = taken + ((len(answers) + 1) * entries * _ENTRY if bounded else 0)
            try:
                answers.append(ask(part, lists + held_bytes(others) if bounded else taken, shown))
            except BudgetExceeded:
                if not bounded:
                    raise
                for other in others:
                    other.segment.release()
                answers.append(self._alone(ask, part, lists + held_bytes(others), shown))
        return answers

    def _alone(self, ask: Callable[[Part, int, ProgressLike], T], part: Part, held: int, shown: ProgressLike) -> T:
        try:
            return ask(part, held, shown)
        except BudgetExceeded as error:
            raise BudgetExceeded(
                f"{error}; the other segments of this Index take {held} bytes of memory={part.segment.memory}: "
                "Index.compact() packs all points as one"
            ) from error


def _refuse_absent(ids: Ids, rows: Sequence[Ids], next_id: int) -> None:
    """Raise ValueError for ids that occur twice or are absent.

    `rows` has an array for each part of the Index: the row number of each id, or -1 if the part lacks the point.
    """
    ordered = np.sort(ids)
    if len(twice := ordered[1:][ordered[1:] == ordered[:-1]]):
        raise ValueError(f"ids: {twice[0]} is given twice; name each point once")
    if len(unknown := ids[np.max([np.full(len(ids), -1), *rows], axis=0) < 0]):
        what = "was removed already" if 0 <= unknown[0] < next_id else "was never given"
        raise ValueError(f"ids: {unknown[0]} {what}; expected ids of points that are left, see Index.ids")


def _rules_of(part: Part, rules: Rules) -> Rules:
    """Return filters for the row numbers of a part, which also exclude its removed points."""
    if len(part.gone):
        shared = np.ones(rules.n, bool) if rules.shared is None else rules.shared.host.copy()
        shared[part.ids[part.gone]] = False
        rules = dataclasses.replace(rules, shared=SharedMask(shared))
    return rules.part(None, part.ids)
