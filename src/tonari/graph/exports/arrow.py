"""Export a graph as an Arrow table."""

from __future__ import annotations

import json
from typing import Any

from tonari.graph.lists import Lists
from tonari.io.arrow import as_lists


def to_arrow(lists: Lists) -> Any:
    """Export lists; see :meth:`tonari.KNNGraph.to_arrow`."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("to_arrow needs pyarrow: pip install pyarrow") from error
    distances, indices = lists.in_numpy()
    table = pyarrow.table([as_lists(indices), as_lists(distances)], names=["indices", "distances"])
    return table.replace_schema_metadata({"tonari": json.dumps(about(lists))})


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
    return facts
