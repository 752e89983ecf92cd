"""Cross-matching of sky catalogues with the interface of ``astropy.coordinates``.

matching.py      match_coordinates_sky, match_one_to_one, search_around_sky
arguments.py     sky, which accepts columns of degrees; conversion of astropy's coordinates and of results
separations.py   angles between positions, correct to a few units in the last place

======================================  ===============================================================================
covered                                 how
======================================  ===============================================================================
``match_coordinates_sky``               for each position the nearest one, or the ``nthneighbor``-th nearest
``search_around_sky``                   all pairs within an angle, or within an angle for each position of coords1
``match_one_to_one``                    mutual nearest positions; astropy has no such function
coordinates                             SkyCoord and frames with data; the first catalogue is converted to the frame of
                                        the second. Without astropy: degrees, wrapped by :func:`sky`
results                                 astropy's fields: int64, Angle and Quantity; arrays of degrees for :func:`sky`
distances in space                      as in astropy: between the positions if both catalogues have distances, else
                                        between their projections on the unit sphere
``storekdtree``                         checked, no effect
--------------------------------------  -------------------------------------------------------------------------------
refused                                 alternative
======================================  ===============================================================================
a catalogue of several dimensions       its ``ravel()``
NaN, masked positions
a negative ``seplimit``
``nthneighbor`` beyond the catalogue
``match_coordinates_3d``,               :func:`tonari.search` and :func:`tonari.radius_search` of ``cartesian.xyz.T``
``search_around_3d``
======================================  ===============================================================================

Separations are correct to a few units in the last place from 0 to 180 degrees, also across 0 h and at the poles. These
separations decide which position is nearest and which positions are within the limit, whereas astropy compares chords
between rounded unit vectors. Positions at equal separations are in ascending order of row number. The formula is not
astropy's, so the last digits of an Angle may differ from ``SkyCoord.separation``.
"""

from tonari.compat.astropy.arguments import Sky, sky
from tonari.compat.astropy.matching import (
    CoordinateMatchResult,
    CoordinateSearchResult,
    match_coordinates_sky,
    match_one_to_one,
    search_around_sky,
)
from tonari.core.hints import missing_from

__all__ = [
    "CoordinateMatchResult",
    "CoordinateSearchResult",
    "Sky",
    "match_coordinates_sky",
    "match_one_to_one",
    "search_around_sky",
    "sky",
]

__getattr__ = missing_from(__name__)
