"""Statistics of a search."""

from __future__ import annotations

from tonari.exact.report import Report


def test_rows_are_counted_by_the_precision_that_certified_them() -> None:
    report = Report(rows=10)
    report.certify("int8", 6)
    report.certify("float32", 0)
    report.certify("int8", 2)
    assert report.rows_by_precision == {"int8": 8}


def test_parts_are_added_but_for_their_rows_and_seconds() -> None:
    whole = Report(rows=10, rows_by_precision={"int8": 3}, resampled=1, refined=5, seconds=2.0)
    whole.include(Report(rows=4, rows_by_precision={"int8": 2, "float32": 2}, resampled=2, refined=7, seconds=1.0))
    assert whole == Report(10, {"int8": 5, "float32": 2}, resampled=3, refined=12, seconds=2.0)


def test_it_says_what_happened_and_no_more() -> None:
    assert str(Report(10, {"int8": 10}, seconds=0.5)) == "10 rows in 0.5 s: 10 at int8"
    full = Report(10, {"int8": 8, "float32": 2}, resampled=3, refined=25, seconds=1.2345)
    assert str(full) == (
        "10 rows in 1.23 s: 8 at int8, 2 at float32; 2.5 survivors refined per row; "
        "3 rows searched again without a sample"
    )
