"""The tables, by the names of their blocks."""

from ..table import Table
from . import exact, graphs, kdtree, overview, select

TABLES: dict[str, Table] = {**overview.TABLES, **exact.TABLES, **kdtree.TABLES, **graphs.TABLES, **select.TABLES}
