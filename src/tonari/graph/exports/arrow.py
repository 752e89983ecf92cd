"""Export a graph as an Arrow table."""

from __future__ import annotations

import json
from typing import Any

from tonari.graph.lists import Lists


def to_arrow(lists: Lists) -> Any:
    """Export lists; see :meth:`tonari.KNNGraph.to_arrow`."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("to_arrow needs pyarrow: pip install pyarrow") from error
    distances, indices = lists.in_numpy()
    columns = [
        pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(part.reshape(-1)), lists.k)
        for part in (indices, distances)
    ]
    about: dict[str, Any] = {
        "metric": lists.metric,
        "method": lists.method,
        "include_self": lists.include_self,
        "seed": lists.seed,
    }
    if lists.weights is not None:
        about["weights"] = lists.weights
    table = pyarrow.table(columns, names=["indices", "distances"])
    return table.replace_schema_metadata({"tonari": json.dumps(about)})
