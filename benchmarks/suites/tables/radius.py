"""Tables about counts within a radius."""

from __future__ import annotations

from ...harness.report.cells import against, seconds
from ...harness.report.table import Column, Line, Table
from .machines import XEON_RADIUS

RULES = {
    "mask": "one mask for all queries",
    "masks": "a mask of bytes for each query",
    "bits": "a mask of bits for each query",
    "groups": "ten groups",
    "exclude": "100 excluded points for each query",
}
SIZES = (("-few", "10 inside"), ("", "230 inside"), ("-many", "10,000 inside"), ("-200k", "200,000 points, 230 inside"))
MEASURED = {"mask": ("", "-200k"), "groups": ("", "-200k"), "masks": ("-few", "", "-many")}

TABLES: dict[str, Table] = {
    "radius-rules": Table(
        where={"suite": "radius_rules", "who": "tonari", "prepared": True, **XEON_RADIUS},
        columns=(
            Column("with the rule", seconds(bold=True)),
            Column("all points", against(who="tonari-plain")),
            Column("lists, filtered", against(who="tonari-by hand")),
        ),
        lines=tuple(
            Line(f"{name}, {inside}", {"case": f"index-{rule}{size}"})
            for rule, name in RULES.items()
            for size, inside in SIZES
            if size in MEASURED.get(rule, ("-few", "", "-many", "-200k"))
        ),
    ),
}
