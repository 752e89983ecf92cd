"""What a run of the exact engine did."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """Counts of one search, logged to the logger "tonari" at level INFO.

    Attributes
    ----------
    rows : int
        Queries answered.
    rows_by_precision : dict of str to int
        Where the rows were certified: precision of the screen -> rows.
    resampled : int
        Rows whose sampled threshold was too low and that were searched again without it.
    refined : int
        Survivors whose exact value was computed at the end, over all rows; on GPUs they are not counted.
    seconds : float
    """

    rows: int
    rows_by_precision: dict[str, int] = field(default_factory=dict)
    resampled: int = 0
    refined: int = 0
    seconds: float = 0.0

    def certify(self, precision: str, rows: int) -> None:
        """Count rows certified at `precision`."""
        if rows:
            self.rows_by_precision[precision] = self.rows_by_precision.get(precision, 0) + rows

    def include(self, part: Report) -> None:
        """Count what was done for a part of the search: its rows as often as there were parts with them."""
        for precision, rows in part.rows_by_precision.items():
            self.certify(precision, rows)
        self.resampled += part.resampled
        self.refined += part.refined

    def __str__(self) -> str:
        levels = ", ".join(f"{count} at {precision}" for precision, count in self.rows_by_precision.items())
        parts = [f"{self.rows} rows in {self.seconds:.3g} s: {levels}"]
        if self.refined:
            parts.append(f"{self.refined / self.rows:.1f} survivors refined per row")
        if self.resampled:
            parts.append(f"{self.resampled} rows searched again without a sample")
        return "; ".join(parts)
