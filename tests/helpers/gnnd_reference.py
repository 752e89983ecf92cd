"""A round of the update "gnnd" in plain NumPy: the slow specification of its kernels (wang2021, section 4).

Lists are divided into segments. Of its entries and the proposals to it, a segment keeps the first by (distance, id), so
the result of a round does not depend on the order in which proposals arrive. Only the choice of reverse samples does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.nn_descent.entries import ID, MISSING, NEW

Array = npt.NDArray[Any]


class PlainForm(NamedTuple):
    """The points in the form in which rounds compare them, which ``cuda/form.py`` makes."""

    rows: Array
    query_terms: Array
    member_terms: Array

    def distances(self, target: int, others: Array) -> Array:
        """Return the distances of some points as neighbours of the target, float32."""
        rows = self.rows.astype(np.float64)
        terms = self.query_terms[target].astype(np.float64) + self.member_terms[others]
        found: Array = np.maximum(terms - 2 * (rows[others] @ rows[target]), 0).astype(np.float32)
        return found


class PlainLists(NamedTuple):
    """Entries int32 and distances float32, both (n, list_size), in the order of ``cuda/kernels/lists.py``."""

    entries: Array
    distances: Array


def lists_of(form: PlainForm, entries: Array, size: int, segment: int) -> PlainLists:
    """Put initial entries into lists, without duplicates and without the row itself."""
    n = len(entries)
    empty = PlainLists(np.full((n, size), MISSING, np.int32), np.full((n, size), np.inf, np.float32))
    listed: list[dict[int, tuple[float, int]]] = []
    for row in range(n):
        first: dict[int, int] = {}
        for entry in entries[row][entries[row] >= 0].tolist():
            if entry & ID != row:
                first.setdefault(entry & ID, entry)
        values = form.distances(row, np.array(list(first), np.int64)).tolist()
        listed.append({id: (value, entry) for value, (id, entry) in zip(values, first.items(), strict=True)})
    return _arranged(empty, listed, segment)


def own_samples(lists: PlainLists, samples: int) -> tuple[Array, Array, PlainLists]:
    """Return the first NEW and OLD ids of each list, padded with -1, and the lists in which the NEW ones are marked
    OLD.
    """
    n = len(lists.entries)
    new, old = (np.full((n, samples), MISSING, np.int32) for _ in range(2))
    entries = lists.entries.copy()
    for row in range(n):
        ids = entries[row] & ID
        order = np.lexsort((ids, lists.distances[row], entries[row] < 0))
        order = order[: (entries[row] >= 0).sum()]
        fresh = entries[row][order] & NEW != 0
        for part, kind in ((new, fresh), (old, ~fresh)):
            columns = order[kind][:samples]
            part[row, : len(columns)] = ids[columns]
            entries[row, columns] = ids[columns]
    return new, old, PlainLists(entries, lists.distances)


def joined(own: Array, reverse: Array) -> Array:
    """Join each row's own samples and its reverse samples, at most twice as many; repeated ids become -1."""
    n, samples = own.shape
    found = np.full((n, 2 * samples), MISSING, np.int32)
    for row in range(n):
        ids = np.concatenate([own[row][own[row] >= 0], reverse[row][reverse[row] >= 0]])[: 2 * samples]
        firsts = [column for column, id in enumerate(ids) if id not in ids[:column]]
        found[row, firsts] = ids[firsts]
    return found


def proposals(
    form: PlainForm, new: Array, old: Array, boundary: int | None = None
) -> Iterator[tuple[int, int, int, int, float]]:
    """Yield (row, kind, target, id, distance): for each sample, the nearest other sample of its row (algorithm 1)."""
    for row in range(len(new)):
        kinds = new[row], old[row]
        for kind, (targets, others) in enumerate(((0, 0), (0, 1), (1, 0))):
            for target in kinds[targets][kinds[targets] >= 0].tolist():
                met = kinds[others][(kinds[others] >= 0) & (kinds[others] != target)]
                if boundary is not None:
                    met = met[(met < boundary) != (target < boundary)]
                if len(met):
                    values = form.distances(target, met)
                    at = int(values.argmin())
                    yield row, kind, target, int(met[at]), float(values[at])


def inserted(lists: PlainLists, proposed: Iterator[tuple[int, int, float]], segment: int) -> PlainLists:
    """Insert proposals (target, id, distance) as NEW entries; each segment keeps the first by (distance, id)."""
    listed = [
        {entry & ID: (value, entry) for value, entry in zip(*pair, strict=True) if entry >= 0}
        for pair in zip(lists.distances.tolist(), lists.entries.tolist(), strict=True)
    ]
    for target, id, value in proposed:
        listed[target].setdefault(id, (value, id | NEW))
    return _arranged(lists, listed, segment)


def round_of(
    form: PlainForm, lists: PlainLists, new: Array, old: Array, segment: int, boundary: int | None = None
) -> PlainLists:
    """Return the lists after one round, in which the samples of every row are compared with each other."""
    found = ((target, id, value) for _, _, target, id, value in proposals(form, new, old, boundary))
    return inserted(lists, found, segment)


def _arranged(like: PlainLists, listed: list[dict[int, tuple[float, int]]], segment: int) -> PlainLists:
    """Return lists of the shape of others with these distances and entries, found by id."""
    entries, distances = np.full_like(like.entries, MISSING), np.full_like(like.distances, np.inf)
    segments = entries.shape[1] // segment
    for row, each in enumerate(listed):
        for number in range(segments):
            ranked = sorted((value, id, entry) for id, (value, entry) in each.items() if id % segments == number)
            for column, (value, _, entry) in enumerate(ranked[:segment], number * segment):
                entries[row, column], distances[row, column] = entry, value
    return PlainLists(entries, distances)
