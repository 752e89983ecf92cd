"""Rows for the benchmarks of exact search on GPUs, made on the device; the same arguments give the same rows there.

==================  ====================================================================================================
``gaussian``        independent N(0, 1)
``mixture``         1000 centres drawn as N(0, 1) per entry, N(0, 1) around them
``sift``            real SIFT descriptors of photographs, 128 small integers (``photographs.sift_photo``)
``gist``            filter responses in windows of photographs, as in GIST, d = 960 (``gist``)
``patches``         colours of windows of photographs, d = 768 (``patches``)
``topics``          like embeddings of text, of length 1 (``topics``)
``slow topics``     the same with variances that fall as i ** -0.5, not as 1 / i
``few directions``  N(0, 1) in 16 random directions, and noise of length 1/2 in all columns
``offset 1e3``      Gaussian rows with 1000 added to every entry, rounded to float32 once, after the addition
``offset 1e6``      the same with a million: float32 has steps of 1/16 there
``tight``           N(0, 1) clouds around 20 centres drawn as 10,000 x N(0, 1): their distance dwarfs their size
``copies 16``       every row 16 times on average, queries too: ties at distance 0 beyond the k-th place
``copies``          100 distinct rows: ten thousand copies of each among a million
``bytes + half``    N(100, 30) rounded to integers of one byte, and queries that are such rows with 1/2 added
``bytes + noise``   the same with U(0, 1) added to every entry of points and queries
==================  ====================================================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import gist, patches, photographs, topics

# Number of values that are made in one step; float64 temporaries of this many values take 256 MB.
BLOCK = 1 << 25
CENTRES = {"mixture": (1000, 1.0), "tight": (20, 1e4)}
SHIFTS = {"offset 1e3": 1e3, "offset 1e6": 1e6}
COPIES = ("copies 16", "copies")
DISTINCT = 100
BYTES = ("bytes + half", "bytes + noise")
TOPICS = {"topics": 1.0, "slow topics": 0.5}
DIRECTIONS, NOISE = 16, 0.5
KINDS = ("gaussian", "mixture", "sift", "gist", "patches", *TOPICS, "few directions", *SHIFTS, "tight", *COPIES, *BYTES)


class DeviceData(NamedTuple):
    """float32 points (n, d), and queries (m, d) of the same distribution, or None for a graph."""

    points: Any
    queries: Any


def make(kind: str, n: int, m: int, d: int, where: str, *, host: bool = False) -> DeviceData:
    """Return points and queries of one kind, in device memory or, with `host`, in pageable host memory.

    Raises
    ------
    ValueError
        The kind is unknown, or does not support d columns.
    RuntimeError
        Fewer real descriptors exist than were requested.
    """
    import torch

    if kind not in KINDS:
        raise ValueError(f"data are {', '.join(KINDS)}, got {kind!r}")
    at = "cpu" if host else where
    if kind == "sift":
        if d != photographs.SIFT_WIDTH:
            raise ValueError(f"SIFT descriptors have {photographs.SIFT_WIDTH} dimensions, not {d}")
        points, queries = photographs.sift_photo(n, m=m)
        return DeviceData(torch.from_numpy(points).to(at), torch.from_numpy(queries).to(at) if m else None)
    if kind == "gist":
        if d != gist.WIDTH:
            raise ValueError(f"GIST has {gist.WIDTH} dimensions, not {d}")
        rows = gist.gist(n + m, where, 0).to(at)
        return DeviceData(rows[:n], rows[n:] if m else None)
    if kind == "patches":
        if d != patches.WIDTH:
            raise ValueError(f"patches have {patches.WIDTH} dimensions, not {d}")
        rows = torch.from_numpy(patches.patches(n + m, 0)).to(at)
        return DeviceData(rows[:n], rows[n:] if m else None)
    generator = torch.Generator(where).manual_seed(0)
    law = _law(kind, n, d, where, generator)
    points, queries = _rows(law, n, d, at), _rows(law, m, d, at) if m else None
    if kind == "bytes + half" and queries is not None:
        queries += 0.5
    return DeviceData(points, queries)


def make_halves(kind: str, n: int, m: int, d: int, where: str) -> DeviceData:
    """Return float16 points and queries of a random kind in host memory."""
    import torch

    law = _law(kind, n, d, where, torch.Generator(where).manual_seed(0))
    step = max(1, 4 * BLOCK // d)
    staged = torch.empty((step, d), dtype=torch.float16, pin_memory=where != "cpu")

    def rows(count: int) -> Any:
        made = torch.empty((count, d), dtype=torch.float16)
        for start in range(0, count, step):
            part = made[start : start + step]
            part.copy_(staged[: len(part)].copy_(law(len(part))))
        return made

    return DeviceData(rows(n), rows(m))


def _rows(law: Any, count: int, d: int, at: str) -> Any:
    import torch

    rows = torch.empty((count, d), dtype=torch.float32, device=at)
    step = max(1, BLOCK // d)
    for start in range(0, count, step):
        part = rows[start : start + step]
        part.copy_(law(len(part)))
    return rows


def _law(kind: str, n: int, d: int, where: str, generator: Any) -> Any:
    """Return a function whose every call makes the next rows of a kind."""
    import torch

    def normal(rows: int, dtype: Any = torch.float32) -> Any:
        return torch.empty((rows, d), dtype=dtype, device=where).normal_(generator=generator)

    def draw(below: int, rows: int) -> Any:
        return torch.randint(below, (rows,), generator=generator, device=where)

    if kind == "gaussian":
        return lambda rows: normal(rows)
    if kind in TOPICS:
        return topics.law(d, where, generator, power=TOPICS[kind])
    if kind == "few directions":
        directions = normal(DIRECTIONS) / d**0.5

        def along(rows: int) -> Any:
            places = torch.empty((rows, DIRECTIONS), device=where).normal_(generator=generator)
            return (normal(rows) * (NOISE / d**0.5)).addmm_(places, directions)

        return along
    if kind in SHIFTS:
        return lambda rows: normal(rows, torch.float64) + SHIFTS[kind]
    if kind in BYTES:
        noise = float(kind == "bytes + noise")

        def whole(rows: int) -> Any:
            added = torch.rand((rows, d), generator=generator, device=where) * noise
            return (normal(rows) * 30 + 100).round_().clamp_(0, 255).add_(added)

        return whole
    if kind in CENTRES:
        count, apart = CENTRES[kind]
        centres = normal(count, torch.float64) * apart
        return lambda rows: centres[draw(count, rows)] + normal(rows, torch.float64)
    distinct = normal(max(1, n // 16) if kind == "copies 16" else DISTINCT)
    return lambda rows: distinct[draw(len(distinct), rows)]
