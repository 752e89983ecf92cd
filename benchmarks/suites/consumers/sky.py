"""Matches of two catalogues of the sky, compared with astropy's functions of the same names, on the same SkyCoords.

Positions fill the sphere evenly, and no tree is kept between calls. A sample of our matches is verified against the
separations of all pairs, and astropy must find the same positions.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from ...harness.case import Case
from ...harness.device import take_turns
from ...harness.proof import WrongAnswer
from ...harness.run import Run
from .estimators import OURS, write

ASTROPY = "astropy"
PROOF = "separations of all pairs"
PROVED_ROWS = 64
ROUNDS = 9  # maximum number of timed rounds
Catalogues = tuple[tuple[Any, Any], tuple[Any, Any]]  # longitudes and latitudes of two catalogues, in degrees


def catalogues(case: Case) -> Catalogues:
    """Return two catalogues of positions that fill the sphere evenly."""
    rng = np.random.default_rng(0)
    return tuple(  # type: ignore[return-value]
        (rng.uniform(0, 360, size), np.degrees(np.arcsin(rng.uniform(-1, 1, size)))) for size in (case.m, case.n)
    )


def match(run: Run, case: Case) -> None:
    """Verify and time ``match_coordinates_sky``, or ``search_around_sky`` for a case with a limit."""
    if find_spec(ASTROPY) is None:
        run.write(case, [{"who": OURS, "note": f"skipped: module {ASTROPY!r} is not installed"}])
        return
    import astropy.coordinates

    import tonari.compat.astropy

    calls = {OURS: call_of(tonari.compat.astropy, case)}
    found = calls[OURS]()
    facts = {"proof": PROOF, "proved": prove(found, case)}
    if ASTROPY in case.peers and run.wants(ASTROPY):
        calls[ASTROPY] = call_of(astropy.coordinates, case)
        same(found, calls[ASTROPY]())
    rounds = min(ROUNDS, 2 * run.repeats)
    timings = take_turns(run.device, calls, seconds=0.0, least=rounds, most=rounds)
    write(run, case, timings, {OURS: facts})


def call_of(library: Any, case: Case) -> Callable[[], Any]:
    """Return a library's call of a case, with positions as astropy's SkyCoord."""
    from astropy.coordinates import SkyCoord

    first, second = (SkyCoord(*each, unit="deg") for each in catalogues(case))
    if "arcminutes" in case.parameters:
        from astropy.units import arcmin

        limit = case.parameters["arcminutes"] * arcmin
        return lambda: library.search_around_sky(first, second, limit, storekdtree=False)
    return lambda: library.match_coordinates_sky(first, second, storekdtree=False)


def version_call(_: Run, case: Case) -> Callable[[], Any]:
    """Return tonari's call of a case, with positions in degrees.

    Comparisons of two versions of tonari use it, since they need no astropy.
    """
    import tonari.compat.astropy as library

    first, second = (library.sky(ra=each[0], dec=each[1]) for each in catalogues(case))
    if "arcminutes" in case.parameters:
        return lambda: library.search_around_sky(first, second, case.parameters["arcminutes"] / 60)
    return lambda: library.match_coordinates_sky(first, second)


def prove(found: Any, case: Case) -> int:
    """Compare the matches of some positions with all pairs; return their number. Raise WrongAnswer if one differs."""
    from tonari.compat.astropy.separations import DEGREES, Positions, separations

    first, second = (Positions(*each, DEGREES) for each in catalogues(case))
    rows = np.random.default_rng(0).choice(case.m, min(PROVED_ROWS, case.m), replace=False)
    for row in rows.tolist():
        apart = separations(first.at(np.full(case.n, row)), second)
        if "arcminutes" in case.parameters:
            mine, wanted = found[1][found[0] == row], np.flatnonzero(apart <= case.parameters["arcminutes"] / 60)
        else:
            mine, wanted = found[0][row : row + 1], apart.argmin()[None]
        if not np.array_equal(mine, wanted):
            raise WrongAnswer(f"position {row} has the matches {mine}, and by all pairs {wanted}")
    return len(rows)


def same(ours: Any, theirs: Any) -> None:
    """Raise WrongAnswer unless astropy found the same positions."""
    indices = len(ours) - 2
    mine, other = (np.stack([np.asarray(part) for part in each[:indices]]) for each in (ours, theirs))
    if indices > 1 and mine.shape == other.shape:
        other = other[:, np.lexsort((other[1], other[0]))]
    if not np.array_equal(mine, other):
        raise WrongAnswer(f"{ASTROPY} finds other positions")
