"""The tables of the documents as data, by the names of their blocks; and, for each suite, the code that it measures.

A paper's rows are in the results file of the suite that it belongs to, and its tables in the module of that suite.
"""

from ...harness.report.table import Table
from . import consumers, exact, graphs, kdtree, overview, papers, select, shards
from .code import CODE

TABLES: dict[str, Table] = {
    **overview.TABLES,
    **exact.TABLES,
    **kdtree.TABLES,
    **graphs.TABLES,
    **select.TABLES,
    **shards.TABLES,
    **consumers.TABLES,
    **papers.TABLES,
}

__all__ = ["CODE", "TABLES"]
