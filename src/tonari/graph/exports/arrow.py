"""Export a graph as an Arrow table."""

from __future__ import annotations

import json
from typing import Any

from tonari.graph.exports.common import HasLists
from tonari.graph.lists import Lists
from tonari.io.tables.arrow import as_lists


def to_arrow(graph: HasLists) -> Any:
    """Export the graph as an Arrow table with one row per point; ``pyarrow.parquet.write_table`` writes it to a file.

    Returns
    -------
    pyarrow.Table of n rows
        Two columns of fixed-size lists of k values, which share memory with the graph: "indices" (int32 or int64)
        and "distances" (float32 or float64). Missing neighbours are -1 at an infinite distance. The metadata of the
        schema contain "tonari", a JSON object with metric, method, include_self and seed; and weights and filters, if
        the graph has any.

    Raises
    ------
    ImportError
        pyarrow is not installed.

    Notes
    -----
    To convert a table back, reshape ``column.combine_chunks().flatten()`` of both columns to (n, k) and pass them
    to ``KNNGraph.from_arrays``. polars and DuckDB read fixed-size lists as arrays.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("to_arrow needs pyarrow: pip install pyarrow") from error
    distances, indices = graph.lists.in_numpy()
    table = pyarrow.table([as_lists(indices), as_lists(distances)], names=["indices", "distances"])
    return table.replace_schema_metadata({"tonari": json.dumps(about(graph.lists))})


def about(lists: Lists) -> dict[str, Any]:
    """Return the properties of a graph that are stored in the metadata of a table."""
    facts: dict[str, Any] = {
        "metric": lists.metric,
        "method": lists.method,
        "include_self": lists.include_self,
        "seed": lists.seed,
    }
    if lists.weights is not None:
        facts["weights"] = lists.weights
    if lists.filters:
        facts["filters"] = lists.filters
    return facts
