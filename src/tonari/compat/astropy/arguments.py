"""Conversion of catalogues, given as astropy coordinates or as columns of degrees, and of results to the same types."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tonari import inputs
from tonari.compat.arguments import numbers_of
from tonari.compat.astropy.separations import DEGREES, RADIANS, Float64, Positions, Unit
from tonari.core.process.callers import callers_level
from tonari.core.process.compiling import not_compiled

_POLE, _TURN = 90.0, 360.0


@dataclass(frozen=True, eq=False)
class Sky:
    """A catalogue given as columns of degrees, which :func:`sky` has checked.

    Attributes
    ----------
    ra, dec : float64 arrays of the same shape
        Longitudes from -360 to 360 degrees and latitudes from -90 to 90 degrees.
    """

    ra: Float64
    dec: Float64

    def __repr__(self) -> str:
        return f"Sky(shape={self.ra.shape})"


@not_compiled
def sky(*, ra: Any, dec: Any) -> Sky:
    """Check right ascensions and declinations in degrees, and wrap them as a catalogue for the matching functions.

    astropy is not needed. Other spherical coordinates, such as galactic ones, work as well, provided that both
    catalogues of a call use the same coordinates.

    Parameters
    ----------
    ra : array of any shape, or number
        Right ascensions (longitudes), from -360 to 360 degrees: a column of a table, an array, or a Quantity in
        degrees.
    dec : array of the same shape
        Declinations (latitudes), from -90 to 90 degrees.

    Returns
    -------
    Sky

    Raises
    ------
    TypeError, ValueError
        A column has entries that are not finite numbers, masked or out of range, or it has a unit other than degrees;
        or the shapes of the columns differ.

    Examples
    --------
    >>> from tonari.compat.astropy import match_coordinates_sky, sky
    >>> found = match_coordinates_sky(sky(ra=[359.75], dec=[0.0]), sky(ra=[10.0, 0.25], dec=[0.0, 0.0]))
    >>> found.indices_to_catalog, found.angular_separation
    (array([1]), array([0.5]))
    """
    right, up = _degrees_of(ra, "ra"), _degrees_of(dec, "dec")
    if right.shape != up.shape:
        raise ValueError(f"ra has shape {right.shape}, and dec has shape {up.shape}; expected the same shape")
    swapped = "; are ra and dec swapped?" if (np.abs(right) <= _POLE).all() else ""
    _refuse(np.abs(up) > _POLE, up, "dec", f"-90 to 90 degrees{swapped}")
    _refuse(np.abs(right) > _TURN, right, "ra", "-360 to 360 degrees")
    return Sky(right, up)


class Pair(NamedTuple):
    """Two catalogues to be matched, converted to a common frame and unit.

    Attributes
    ----------
    first, second : Positions
        Flat longitudes and latitudes of both catalogues, in the same frame and unit.
    shape : tuple of int
        The original shape of the first catalogue.
    coordinates : tuple of two astropy coordinates, optional
        Both catalogues in the frame of the second one; None if they were passed as columns of degrees.
    """

    first: Positions
    second: Positions
    shape: tuple[int, ...]
    coordinates: tuple[Any, Any] | None

    @classmethod
    def of(cls, first: Any, second: Any, names: tuple[str, str], lead: bool = False) -> Pair:
        """Check two catalogues and convert them; with `lead`, the first one may have any number of dimensions."""
        catalogues = dict(zip(names, (first, second), strict=True))
        for name, each in catalogues.items():
            if not isinstance(each, Sky) and not _is_astropys(each):
                raise _unexpected(name, each)
        if isinstance(first, Sky) is not isinstance(second, Sky):
            raise _unexpected(names[1], second)
        for name, each in list(catalogues.items())[lead:]:
            shape = each.ra.shape if isinstance(each, Sky) else each.shape
            if len(shape) != 1:
                raise ValueError(f"{name}: has shape {shape}, expected one dimension; use .ravel() or .reshape(1)")
        if isinstance(first, Sky):
            return cls(_flat(first), _flat(second), first.ra.shape, None)
        moved = _in_frame_of(first, second)
        parts = _angles_of(moved), _angles_of(second)
        unit = RADIANS if all(str(each.unit) == "rad" for part in parts for each in part) else DEGREES
        return cls(_in_unit(parts[0], unit, names[0]), _in_unit(parts[1], unit, names[1]), first.shape, (moved, second))

    def limit(self, seplimit: Any) -> Float64:
        """Check `seplimit`, and return the limit in degrees for each position of the first catalogue: shape (n,)."""
        if self.coordinates is None:
            if hasattr(seplimit, "unit"):
                raise TypeError("seplimit: expected a number of degrees, as the catalogues are in degrees")
            degrees = numbers_of(seplimit, "seplimit", "() or (n,)").astype(np.float64)
        else:
            degrees = np.asarray(_quantity_in_degrees(seplimit), np.float64)
        if np.isnan(degrees).any() or (degrees < 0).any():
            raise ValueError(f"seplimit={seplimit!r}: expected angles of at least 0")
        n = len(self.first.latitude)
        if degrees.shape not in ((), (n,)):
            raise ValueError(f"seplimit: has shape {degrees.shape}, expected one angle, or {n}: one for each position")
        return np.broadcast_to(degrees, (n,))

    def measured(self, left: Any, right: Any, degrees: Float64, *, unit_of: int = 0) -> tuple[Any, Any]:
        """Return each pair's angular separation and distance in space, in the types that match the caller's catalogues.

        For astropy's coordinates these are Angle and Quantity, for columns of degrees float64 arrays.

        Parameters
        ----------
        left, right : int64 arrays of the same shape
            The pairs: row numbers in the flat first catalogue, and in the second one.
        degrees : float64 array of the same shape
            The angular separations of the pairs.
        unit_of : 0 or 1
            The catalogue whose unit of length is used for distances in space.
        """
        if self.coordinates is None:
            return degrees, chords(degrees)
        from astropy.coordinates import Angle, UnitSphericalRepresentation
        from astropy.units import Quantity

        first, second = self.coordinates
        if any(isinstance(each.data, UnitSphericalRepresentation) for each in (first, second)):
            apart = Quantity(chords(degrees))
        else:
            ends = first.ravel()[left] if first.shape else first, second[right]
            apart = ends[unit_of].separation_3d(ends[1 - unit_of])
        return Angle(np.atleast_1d(degrees), "deg"), apart  # astropy returns arrays even for a single position


def chords(degrees: Float64) -> Float64:
    """Convert angular separations in degrees to chords: straight-line distances between points of the unit sphere.

    >>> chords(np.array([0.0, 180.0]))
    array([0., 2.])
    """
    return np.asarray(2 * np.sin(np.radians(degrees) / 2))


def check_store(storekdtree: Any) -> None:
    """Check the argument `storekdtree`: it makes astropy store a tree in the catalogue, but has no effect here."""
    if not isinstance(storekdtree, str | bool):
        raise TypeError(f"storekdtree={storekdtree!r}: expected a name or a bool, which change nothing here")


def _degrees_of(x: Any, name: str) -> Float64:
    unit = getattr(x, "unit", None)
    if unit is not None and str(unit) != "deg":
        raise ValueError(f"{name}: is in {unit}, expected degrees; convert it by .to('deg')")
    inputs.refuse_masked(x, name)
    column = numbers_of(x, name, "(n,)")
    if column.dtype.kind == "f" and column.dtype.itemsize < np.dtype(np.float64).itemsize:
        warnings.warn(
            f"{name}: degrees in {column.dtype.name}, and separations are exact for these rounded degrees only: "
            "float32 is off by up to 0.05 arcseconds in a coordinate; pass float64",
            stacklevel=callers_level(),
        )
    degrees = column.astype(np.float64)
    _refuse(~np.isfinite(degrees), degrees, name, "finite numbers")
    return degrees


def _refuse(bad: Any, values: Float64, name: str, expected: str) -> None:
    if bad.any():
        at = np.unravel_index(int(bad.argmax()), bad.shape)
        where = f"row {', '.join(str(int(each)) for each in at)} " if at else ""
        raise ValueError(f"{name}: {where}is {values[at]:g}, expected {expected}")


def _unexpected(name: str, given: Any) -> TypeError:
    return TypeError(
        f"{name}: expected SkyCoord for both catalogues, or tonari.compat.astropy.sky(ra=..., dec=...) of degrees for "
        f"both; got {type(given).__name__}"
    )


def _flat(given: Sky) -> Positions:
    return Positions(given.ra.ravel(), given.dec.ravel(), DEGREES)


def _is_astropys(given: Any) -> bool:
    coordinates = sys.modules.get("astropy.coordinates")
    return coordinates is not None and isinstance(given, coordinates.SkyCoord | coordinates.BaseCoordinateFrame)


def _in_frame_of(first: Any, second: Any) -> Any:
    """Return the first coordinates in the frame of the second.

    The conversion is that of astropy's matching functions.
    """
    from astropy.coordinates import SkyCoord

    if isinstance(first, SkyCoord):
        return first.transform_to(second, merge_attributes=False)
    return first.transform_to(second)


def _angles_of(given: Any) -> tuple[Any, Any]:
    """Return the longitudes and the latitudes of astropy coordinates, each as a flat Quantity."""
    from astropy.coordinates import UnitSphericalRepresentation

    data = given.data.represent_as(UnitSphericalRepresentation)
    return data.lon.ravel(), data.lat.ravel()


def _in_unit(angles: tuple[Any, Any], unit: Unit, name: str) -> Positions:
    longitude, latitude = (_finite(each, "rad" if unit is RADIANS else "deg", name) for each in angles)
    return Positions(longitude, latitude, unit)


def _finite(angles: Any, unit: str, name: str) -> Float64:
    values = angles.to_value(unit)
    masked = getattr(values, "mask", None)
    if masked is not None and np.any(masked):
        raise ValueError(f"{name}: some positions are masked; leave them out")
    plain = np.asarray(getattr(values, "unmasked", values), np.float64)
    _refuse(~np.isfinite(plain), plain, name, "finite coordinates")
    return plain


def _quantity_in_degrees(seplimit: Any) -> Any:
    from astropy.units import Quantity, UnitsError

    if not isinstance(seplimit, Quantity):
        raise TypeError(f"seplimit={seplimit!r}: expected an angle with its unit, such as 2 * astropy.units.arcsec")
    try:
        return seplimit.to_value("deg")
    except UnitsError as error:
        raise ValueError(f"seplimit={seplimit!r}: expected an angle ({error})") from error
