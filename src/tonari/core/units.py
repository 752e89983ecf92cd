"""Units of memory, and readable texts for durations."""

MIB = 1 << 20


def duration(seconds: float) -> str:
    """Return a readable text for a number of seconds.

    >>> duration(0.01234), duration(12.34)
    ('12.3 ms', '12.3 s')
    """
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
