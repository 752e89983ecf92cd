"""The claims of the five papers, compared with measured rows: a table for each paper in docs/papers.md."""

from ....harness.report.table import Table
from . import gieseke2014, komarov2014, matsumoto2015, tang2015, wang2021
from .claims import table

TABLES: dict[str, Table] = {
    f"papers-{name}": table(claims)
    for name, claims in {
        "tang2015": tang2015.CLAIMS,
        "matsumoto2015": matsumoto2015.CLAIMS,
        "komarov2014": komarov2014.CLAIMS,
        "gieseke2014": gieseke2014.CLAIMS,
        "wang2021": wang2021.CLAIMS,
    }.items()
}
