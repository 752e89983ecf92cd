"""Merge neighbour lists that were found in separate parts of the points: the public function and its checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.process.floats import in_default_floats
from tonari.core.results.neighbors import Neighbors, first_repeated_row, index_dtype
from tonari.metrics import get_metric
from tonari.select import tuning


@in_default_floats
def merge_neighbors(
    parts: Sequence[Neighbors], offsets: Sequence[int], *, k: int | None = None, metric: str = "euclidean"
) -> Neighbors:
    """Merge neighbour lists that were found in separate parts of the points.

    Entries are ordered by (distance, index after the offset), so the result does not depend on the order of the parts,
    and lists can be merged in stages. Each part must list the k nearest of its own points, or all of them if it has
    fewer. Lists on a CUDA device are merged there.

    Parameters
    ----------
    parts : sequence of Neighbors, each of shape (m, k_i), all with the same distance dtype
        Entries with index -1 are missing; they come last, whatever their distance is. On CUDA each row must be in the
        order that searches return, with missing entries at its end.
    offsets : sequence of int
        The row number at which each part of the points begins: ``offsets[i]`` is added to the indices of part i.
    k : int, optional
        Columns of the result, at most those of all parts together. Default: those of the widest part.
    metric : str
        Determines the order of the rows: descending for ``inner_product``, ascending for every other metric.

    Returns
    -------
    Neighbors of shape (m, k)
        Missing entries have index -1 and distance inf (-inf for ``inner_product``). Indices are int64 if those of any
        part are, or if there are 2**31 points or more after the offsets; else int32.

    Raises
    ------
    TypeError
        An offset or k is not an integer, or a part has dtypes that Neighbors does not support.
    ValueError
        The shapes, dtypes or devices of the parts differ, k is out of range, a distance is NaN, or a row lists a point
        twice. (The last two are not checked on CUDA.)

    Examples
    --------
    >>> import numpy as np
    >>> from tonari import Neighbors, merge_neighbors
    >>> left = Neighbors(np.array([[1.0, 4.0]]), np.array([[1, 0]], np.int32))
    >>> right = Neighbors(np.array([[1.0, 3.0]]), np.array([[0, 2]], np.int32))
    >>> merge_neighbors([left, right], [0, 10])  # point 0 of the right part is point 10 of the whole
    Neighbors(distances=array([[1., 1.]]), indices=array([[ 1, 10]], dtype=int32))
    """
    descending = get_metric(metric).descending
    if not isinstance(parts, Sequence):
        raise TypeError(f"parts: expected a list of Neighbors, got {type(parts).__name__}")
    if not isinstance(offsets, Iterable):
        raise TypeError(f"offsets: expected a list of whole numbers, got {type(offsets).__name__}")
    shifts = [inputs.check_count(offset, f"offsets[{i}]", least=0) for i, offset in enumerate(offsets)]
    for i, part in enumerate(parts):
        if not isinstance(part, Neighbors):
            raise TypeError(f"part {i}: expected tonari.Neighbors(distances, indices), got {type(part).__name__}")
        for array in part:
            inputs.refuse_masked(array, f"part {i}")
    if parts and inputs.side_of(parts[0].distances, "part 0") == ("torch", None):  # tensors in host memory
        merged = merge_neighbors([Neighbors(*map(np.asarray, part)) for part in parts], shifts, k=k, metric=metric)
        return Neighbors(*(inputs.like("torch", array) for array in merged))
    _check_parts(parts, shifts)
    width = sum(part.indices.shape[1] for part in parts)
    columns = max(part.indices.shape[1] for part in parts) if k is None else inputs.check_count(k, "k")
    if not 1 <= columns <= width:
        raise ValueError(f"k={columns}: the parts have {width} columns together, so k must be from 1 to {width}")

    if inputs.place_of(parts[0].indices, "part 0") is not None:
        from tonari.select.cuda.ordering.merge import merge_on_device

        return merge_on_device(parts, shifts, columns, metric)
    rows = len(parts[0].indices)
    distances = np.empty((rows, columns), parts[0].distances.dtype)
    indices = np.empty((rows, columns), _merged_dtype(parts, shifts))
    block = max(1, tuning.MERGE_BLOCK // width)
    for start in range(0, rows, block):
        here = slice(start, start + block)
        ids = np.concatenate(
            [
                np.where(part.indices[here] < 0, -1, part.indices[here].astype(np.int64) + shift)
                for part, shift in zip(parts, shifts, strict=True)
            ],
            axis=1,
        )
        repeated = first_repeated_row(ids)
        if repeated >= 0:
            raise ValueError(f"row {start + repeated} lists a point twice after the offsets; do the offsets overlap?")
        missing = ids < 0
        values = np.concatenate([part.distances[here] for part in parts], axis=1)
        values[missing] = -np.inf if descending else np.inf
        # An existing point can also have the distance inf (float32 overflow), so "missing" is a separate sort key.
        order = np.lexsort((ids, -values if descending else values, missing))[:, :columns]
        distances[here] = np.take_along_axis(values, order, axis=1)
        indices[here] = np.take_along_axis(ids, order, axis=1)
    return Neighbors(distances, indices)


def _check_parts(parts: Sequence[Neighbors], shifts: Sequence[int]) -> None:
    if not parts:
        raise ValueError("parts is empty, expected at least one: there is nothing to merge")
    if len(parts) != len(shifts):
        raise ValueError(f"{len(parts)} parts need {len(parts)} offsets, got {len(shifts)}")
    first = parts[0]
    home = inputs.place_of(first.distances, "part 0")
    for i, (distances, indices) in enumerate(parts):
        dtypes = inputs.name_of_dtype(distances), inputs.name_of_dtype(indices)
        if dtypes[0] not in ("float32", "float64") or dtypes[1] not in ("int32", "int64"):
            raise TypeError(
                f"part {i}: distances must be float32 or float64 and indices int32 or int64, "
                f"got {dtypes[0]} and {dtypes[1]}"
            )
        shapes = tuple(distances.shape), tuple(indices.shape)
        if len(shapes[0]) != 2 or shapes[0] != shapes[1]:
            raise ValueError(
                f"part {i}: distances and indices must have the same shape (m, k), got {shapes[0]} and {shapes[1]}"
            )
        for part in (distances, indices):
            place = inputs.place_of(part, f"part {i}")
            if place != home:
                here, there = place or "host memory", home or "host memory"
                raise ValueError(f"part {i} is in {here}, part 0 in {there}, expected all parts on the same device")
        if len(indices) != len(first.indices) or dtypes[0] != inputs.name_of_dtype(first.distances):
            raise ValueError(
                f"part {i} has {len(indices)} rows of {dtypes[0]}, part 0 has {len(first.indices)} of "
                f"{inputs.name_of_dtype(first.distances)}: they must agree"
            )
        if home is not None:
            continue
        nan = (np.isnan(distances) & (indices >= 0)).any(axis=1)
        if nan.any():
            raise ValueError(f"part {i}: row {int(nan.argmax())} has a NaN distance")


def _merged_dtype(parts: Sequence[Neighbors], shifts: Sequence[int]) -> np.dtype[Any]:
    if any(part.indices.dtype == np.int64 for part in parts):
        return np.dtype(np.int64)
    last = max(int(part.indices.max(initial=-1)) + shift for part, shift in zip(parts, shifts, strict=True))
    return index_dtype(last + 1)
