"""Conversion of dense rows to sparse rows, for searches that compare both kinds."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.rows.slices import cut
from tonari.sparse import tuning
from tonari.sparse.rows import SparseRows, sparse_rows


def compressed(x: Any, name: str, *, sets: bool = False, memory: int | None = None) -> SparseRows:
    """Convert dense rows to sparse rows: zeros are left out, other values do not change.

    Parameters
    ----------
    x : array of shape (n, d)
        As :func:`tonari.inputs.as_rows` accepts it. For sets also bool, but not uint8.
    name : str
        Its name in messages.
    sets : bool
        Whether rows are sets of their columns that are not 0: values become 1.
    memory : int, optional
        A budget in bytes. The plan of a search counts the bytes of the result; here they are only compared with it.

    Raises
    ------
    BudgetExceeded
        The sparse rows do not fit into `memory`.
    TypeError, ValueError
        As for :func:`tonari.inputs.as_rows`.

    Examples
    --------
    >>> rows = compressed(np.array([[0.0, 2.0], [3.0, -0.0]]), "queries")
    >>> rows.columns.tolist(), rows.values.tolist()
    ([1, 0], [2.0, 3.0])
    """
    dtype = inputs.name_of_dtype(x)
    if sets and dtype == "uint8":
        raise TypeError(
            f"{name}: are uint8, as packed bits are, but the other rows are sparse sets; use numpy.unpackbits and "
            ".astype(bool)"
        )
    if sets and dtype == "bool" and inputs.place_of(x, name) is None:
        x = np.asarray(x).view(np.int8)
    rows = inputs.as_rows(x, name)
    n, d = rows.shape
    blocks = cut(n, max(1, tuning.ORDERED_ENTRIES // d))
    indptr = np.zeros(n + 1, np.int64)
    for part in blocks:
        indptr[part.start + 1 : part.stop + 1] = np.count_nonzero(inputs.as_floats(rows[part]), axis=1)
    indptr = indptr.cumsum()
    kind = np.float64 if rows.dtype == np.float64 and not sets else np.float32
    with inputs.after_copies(indptr.nbytes + int(indptr[-1]) * (4 + np.dtype(kind).itemsize), memory, f"sparse {name}"):
        columns, values = np.empty(indptr[-1], np.int32), np.ones(indptr[-1], kind)
    for part in blocks:
        block = inputs.as_floats(rows[part])
        at, entries = np.nonzero(block), slice(indptr[part.start], indptr[part.stop])
        columns[entries] = at[1]
        if not sets:
            values[entries] = block[at]
    return sparse_rows(indptr, columns, values, d, indptr.nbytes + columns.nbytes + values.nbytes)
