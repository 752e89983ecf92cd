"""Statistics of one exact search."""

from __future__ import annotations

from dataclasses import dataclass, field

from tonari.core.units import duration


@dataclass
class Report:
    """Statistics of one search, logged to the logger "tonari" at level INFO.

    Attributes
    ----------
    rows : int
        Number of queries.
    rows_by_precision : dict of str to int
        Number of rows certified at each precision of the screen, such as "float16", or "float16 in 64 dimensions" if
        fewer dimensions were screened.
    resampled : int
        Rows that were searched again without a sample because their sampled threshold was too low.
    refined : int
        Survivors whose exact value was computed, over all rows; not counted on GPUs.
    seconds_by_precision : dict of str to float
        Duration of the passes at each precision. On CUDA it includes only passes that end with a wait for the device.
    seconds : float
        Duration of the search.
    """

    rows: int
    rows_by_precision: dict[str, int] = field(default_factory=dict)
    resampled: int = 0
    refined: int = 0
    seconds_by_precision: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def certified(self) -> int:
        """The number of rows certified so far."""
        return sum(self.rows_by_precision.values())

    def certify(self, precision: str, rows: int, seconds: float | None = None) -> None:
        """Count more rows as certified at `precision`, and add the duration of their pass if it was measured."""
        if rows:
            self.rows_by_precision[precision] = self.rows_by_precision.get(precision, 0) + rows
        if seconds is not None:
            self.seconds_by_precision[precision] = self.seconds_by_precision.get(precision, 0.0) + seconds

    def include(self, part: Report) -> None:
        """Add the report of a partial search to this one; a row in several partial searches counts several times."""
        for precision, rows in part.rows_by_precision.items():
            self.certify(precision, rows)
        for precision, seconds in part.seconds_by_precision.items():
            self.certify(precision, 0, seconds)
        self.resampled += part.resampled
        self.refined += part.refined

    def __str__(self) -> str:
        took = {precision: f" ({duration(seconds)})" for precision, seconds in self.seconds_by_precision.items()}
        counts = self.rows_by_precision.items()
        levels = ", ".join(f"{count} at {precision}{took.get(precision, '')}" for precision, count in counts)
        parts = [f"{self.rows} rows in {self.seconds:.3g} s: {levels}"]
        if self.refined:
            parts.append(f"{self.refined / self.rows:.1f} survivors refined per row")
        if self.resampled:
            parts.append(f"{self.resampled} rows searched again without a sample")
        return "; ".join(parts)
