"""`tonari.compat.astropy` compared with 60-digit arithmetic, all pairs by hand, and astropy's own functions."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers import consumers
from tests.helpers.refusals import assert_refused_by_name
from tonari.compat import astropy as ours
from tonari.compat.astropy import tuning
from tonari.compat.astropy.separations import DEGREES, RADIANS, Positions, Unit, separations

Array = npt.NDArray[np.float64]
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628621")
MICRO_ARCSECOND = 1e-6 / 3600
SIZES = [0.0, 1e-13, MICRO_ARCSECOND, 1e-6, 1e-3, 1.0, 90.0]
PLACES = ["anywhere", "pole", "both sides of 0 h", "opposite"]


def sine(x: Decimal) -> Decimal:
    term, total, power = x, Decimal(0), 1
    while abs(term) > Decimal(10) ** -70:
        total, power = total + term, power + 2
        term *= -x * x / (power * (power - 1))
    return total


def vector(longitude: float, latitude: float, unit: Unit) -> list[Decimal]:
    a, b = (Decimal(float(v)) * (PI / 180 if unit is DEGREES else 1) for v in (longitude, latitude))
    across = sine(PI / 2 - b)
    return [across * sine(PI / 2 - a), across * sine(a), sine(b)]


def units_off(found: float, left: list[Decimal], right: list[Decimal]) -> float:
    """Return the error of an angle in degrees, in units in the last place."""
    dot = sum(p * q for p, q in zip(left, right, strict=True))
    turned = [left[i - 2] * right[i - 1] - left[i - 1] * right[i - 2] for i in range(3)]
    cross = sum(p * p for p in turned).sqrt()
    angle = Decimal(found) * PI / 180
    # sin(angle - truth), which equals the difference to all digits that matter
    error = sine(angle) * dot - sine(PI / 2 - angle) * cross
    return float(abs(error) * 180 / PI / Decimal(float(np.spacing(max(found, 1e-40)))))


def pairs_of(place: str, size: float) -> tuple[Array, Array, Array, Array]:
    """Make longitudes and latitudes of pairs that are about `size` degrees apart, or that far from opposite points."""
    rng = np.random.default_rng(round(size * 1e15) % 1000)
    n = 12
    a, b = rng.uniform(0, 360, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))
    if place == "pole":
        b = rng.choice([-1, 1], n) * (90 - size * rng.random(n))
    if place == "both sides of 0 h":
        a = (rng.choice([-1, 1], n) * size * rng.random(n)) % 360
    c = (a + size * rng.standard_normal(n) / np.maximum(np.cos(np.radians(b)), 1e-3)) % 360
    d = np.clip(b + size * rng.standard_normal(n), -90, 90)
    return (a, b, (c + 180) % 360, -d) if place == "opposite" else (a, b, c, d)


@pytest.mark.parametrize("unit", [DEGREES, RADIANS], ids=["degrees", "radians"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("place", PLACES)
def test_separations_are_within_a_few_units_of_the_last_place(place: str, size: float, unit: Unit) -> None:
    factor, most = (1.0, 90.0) if unit is DEGREES else (np.pi / 180, np.pi / 2)
    a, b, c, d = (part * factor for part in pairs_of(place, size))
    b, d = np.clip(b, -most, most), np.clip(d, -most, most)
    left, right = Positions(a, b, unit), Positions(c, d, unit)
    found = separations(left, right)
    assert found.tobytes() == separations(right, left).tobytes()
    with localcontext() as context:
        context.prec = 80
        for i, value in enumerate(found.tolist()):
            assert units_off(value, vector(a[i], b[i], unit), vector(c[i], d[i], unit)) < 4


def catalogue(n: int, seed: int = 0, copies: bool = False) -> ours.Sky:
    rng = np.random.default_rng(seed)
    ra, dec = rng.uniform(0, 360, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))
    ra[:4], dec[:4] = [0.0, 359.9999, 10.0, 200.0], [0.0, 0.00001, 90.0, -90.0]
    if copies:
        ra, dec = ra[rng.integers(n // 4, size=n)], dec[rng.integers(n // 4, size=n)]
    return ours.sky(ra=ra, dec=dec)


def table(left: ours.Sky, right: ours.Sky) -> Array:
    """Return the separations of all pairs."""
    pairs = np.meshgrid(np.arange(len(left.ra)), np.arange(len(right.ra)), indexing="ij")
    ends = (
        Positions(each.ra[i.ravel()], each.dec[i.ravel()], DEGREES)
        for each, i in zip((left, right), pairs, strict=True)
    )
    return separations(*ends).reshape(len(left.ra), len(right.ra))


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("nth", [1, 2, 5, 40])
def test_a_match_is_the_nearest_of_all(nth: int, copies: bool) -> None:
    left, right = catalogue(50, 1, copies), catalogue(40, 0, copies)
    for one in (left, right):
        found = ours.match_coordinates_sky(one, right, nth)
        expected = table(one, right)
        order = np.argsort(expected, axis=1, kind="stable")[:, nth - 1]
        np.testing.assert_array_equal(found.indices_to_catalog, order)
        np.testing.assert_array_equal(found.angular_separation, expected[np.arange(len(order)), order])
        np.testing.assert_allclose(found.physical_separation, 2 * np.sin(np.radians(found.angular_separation) / 2))


@pytest.mark.parametrize("apart", [MICRO_ARCSECOND / 100, 1e-11])
@pytest.mark.parametrize("dec", [0.0, 60.0, 89.0])
def test_positions_closer_than_unit_vectors_resolve_are_distinguished(dec: float, apart: float) -> None:
    """1e-11 degrees are 36 micro-arcseconds; unit vectors resolve about a hundredth of a micro-arcsecond."""
    rng = np.random.default_rng(0)
    cloud = ours.sky(ra=180 + apart * rng.standard_normal(60) * 20, dec=dec + apart * rng.integers(-20, 20, 60))
    expected = np.sort(table(cloud, cloud), axis=1)
    for nth in (1, 2, 7):
        found = ours.match_coordinates_sky(cloud, cloud, nth)
        np.testing.assert_array_equal(found.angular_separation, expected[:, nth - 1])


def test_positions_near_the_opposite_one_are_distinguished() -> None:
    points = ours.sky(ra=180 + np.array([3e-9, 1e-9, 2e-9]), dec=np.zeros(3))
    found = ours.match_coordinates_sky(ours.sky(ra=[0.0], dec=[0.0]), points)
    assert found.indices_to_catalog.tolist() == [0]
    found = ours.search_around_sky(ours.sky(ra=[0.0], dec=[0.0]), points, 180 - 1.5e-9)
    assert found.indices_to_second_set.tolist() == [0, 2]


@pytest.mark.parametrize("blocks", [1 << 22, 50])
@pytest.mark.parametrize("limit", [0.0, 1e-4, 3.0, 100.0, 180.0, 400.0])
def test_all_pairs_within_an_angle_are_found(limit: float, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "PAIRS", blocks)
    left, right = catalogue(30, 1, copies=True), catalogue(40, 1, copies=True)
    expected = table(left, right)
    for each in (limit, np.where(np.arange(30) % 2, limit, 0.1)):
        found = ours.search_around_sky(left, right, each)
        i, j = np.nonzero(expected <= np.broadcast_to(each, 30)[:, None])
        np.testing.assert_array_equal(found.indices_to_first_set, i)
        np.testing.assert_array_equal(found.indices_to_second_set, j)
        np.testing.assert_array_equal(found.angular_separation, expected[i, j])


def test_a_limit_is_reached() -> None:
    here, there = ours.sky(ra=[0.0], dec=[0.0]), ours.sky(ra=[0.1, 359.9], dec=[0.0, 0.0])
    apart = table(here, there)[0]
    assert len(ours.search_around_sky(here, there, apart.max())[0]) == 2
    assert len(ours.search_around_sky(here, there, np.nextafter(apart.min(), 0))[0]) == 0


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("limit", [None, 5.0, 0.0])
def test_mutual_pairs_are_each_others_nearest(limit: float | None, copies: bool) -> None:
    left, right = catalogue(50, 2, copies), catalogue(40, 3 if not copies else 2, copies)
    expected = table(left, right)
    there, back = expected.argmin(axis=1), expected.argmin(axis=0)
    i = np.array(
        [i for i, j in enumerate(there) if back[j] == i and expected[i, j] <= (180 if limit is None else limit)], int
    )
    found = ours.match_one_to_one(left, right, limit)
    np.testing.assert_array_equal(found.indices_to_first_set, i)
    np.testing.assert_array_equal(found.indices_to_second_set, there[i])
    np.testing.assert_array_equal(found.angular_separation, expected[i, there[i]])
    assert len(set(found.indices_to_second_set.tolist())) == len(i)


def test_shapes_and_columns_of_tables() -> None:
    held = np.array([(10.0, 0.0, 1), (20.0, 5.0, 2)], [("RA", ">f8"), ("DEC", ">f8"), ("id", ">i4")])
    sky = ours.sky(ra=held["RA"], dec=held["DEC"])
    assert sky.ra.dtype == np.float64
    assert repr(sky) == "Sky(shape=(2,))"
    for shape in ((), (2, 1), (0,), (0, 3)):
        size = int(np.prod(shape))
        found = ours.match_coordinates_sky(ours.sky(ra=np.full(shape, 19.0), dec=np.full(shape, 5.0)), sky)
        assert [np.shape(part) for part in found] == [shape] * 3
        assert np.ravel(found.indices_to_catalog).tolist() == [1] * size
        assert found.indices_to_catalog.dtype == np.int64
    nothing = ours.sky(ra=[], dec=[])
    for pair in ((nothing, sky), (sky, nothing)):
        for found in (ours.search_around_sky(*pair, 1.0), ours.match_one_to_one(*pair)):
            assert [len(part) for part in found] == [0] * 4
    with pytest.raises(ValueError, match="nthneighbor=1: catalogcoord has 0 positions"):
        ours.match_coordinates_sky(sky, nothing)
    with pytest.warns(UserWarning, match="degrees in float32"):
        ours.sky(ra=np.float32([1.0]), dec=[1.0])


def test_swapped_columns_are_refused() -> None:
    with pytest.raises(TypeError, match="positional"):
        ours.sky([1.0], [2.0])  # type: ignore[misc]
    with pytest.raises(ValueError, match=r"dec: row 1 is 200, expected -90 to 90 degrees; are ra and dec swapped\?"):
        ours.sky(dec=[10.0, 200.0], ra=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"dec: row 1 is 200, expected -90 to 90 degrees$"):
        ours.sky(dec=[10.0, 200.0], ra=[1.0, 200.0])


class InHours(np.ndarray[Any, Any]):
    """A column with a unit, like astropy's."""

    unit = "hourangle"


SKY = catalogue(9)
REFUSED: list[tuple[Callable[..., Any], dict[str, Any], str, tuple[Any, ...]]] = [
    (
        ours.sky,
        {"ra": [1.0], "dec": [2.0]},
        "ra",
        (
            [361.0],
            [-361.0],
            [np.nan],
            ["a"],
            [1.0, 2.0],
            1.0,
            [1j],
            np.ma.masked_array([1.0], [True]),
            np.zeros(1).view(InHours),
        ),
    ),
    (ours.sky, {"ra": [1.0], "dec": [2.0]}, "dec", ([90.1], [-91], [np.inf], None)),
    (ours.match_coordinates_sky, {"matchcoord": SKY, "catalogcoord": SKY}, "matchcoord", (None, np.zeros((9, 2)))),
    (
        ours.match_coordinates_sky,
        {"matchcoord": SKY, "catalogcoord": SKY},
        "catalogcoord",
        (None, ours.sky(ra=1.0, dec=1.0), ours.sky(ra=[[1.0]], dec=[[1.0]])),
    ),
    (ours.match_coordinates_sky, {"matchcoord": SKY, "catalogcoord": SKY}, "nthneighbor", (0, 10, 1.0, None, True)),
    (ours.match_coordinates_sky, {"matchcoord": SKY, "catalogcoord": SKY}, "storekdtree", (None, 1)),
    (
        ours.search_around_sky,
        {"coords1": SKY, "coords2": SKY, "seplimit": 1.0},
        "coords1",
        (None, ours.sky(ra=1, dec=1)),
    ),
    (ours.search_around_sky, {"coords1": SKY, "coords2": SKY, "seplimit": 1.0}, "coords2", (None, "sky")),
    (
        ours.search_around_sky,
        {"coords1": SKY, "coords2": SKY, "seplimit": 1.0},
        "seplimit",
        (None, -1.0, np.nan, "1", [1.0, 2.0], [[1.0]], np.zeros(9).view(InHours)),
    ),
    (ours.search_around_sky, {"coords1": SKY, "coords2": SKY, "seplimit": 1.0}, "storekdtree", (None, 1)),
    (ours.match_one_to_one, {"coords1": SKY, "coords2": SKY}, "coords2", (None, ours.sky(ra=1, dec=1))),
    (ours.match_one_to_one, {"coords1": SKY, "coords2": SKY}, "seplimit", (-1.0, "1", [1.0])),
]


@pytest.mark.parametrize(("call", "good", "name", "values"), REFUSED)
def test_no_argument_is_ignored_or_fails_in_raw_words(
    call: Callable[..., Any], good: dict[str, Any], name: str, values: tuple[Any, ...]
) -> None:
    assert_refused_by_name(call, good, name, values)


def coordinates(kind: str, n: int, seed: int) -> Any:
    """Make astropy coordinates."""
    library = consumers.consumer("astropy.coordinates")
    u = consumers.consumer("astropy.units")
    rng, sky = np.random.default_rng(seed), catalogue(n, seed)
    made = library.SkyCoord(sky.ra * u.deg, sky.dec * u.deg, frame="galactic" if kind == "galactic" else "icrs")
    if kind == "in space":
        made = library.SkyCoord(
            sky.ra * u.deg, sky.dec * u.deg, distance=rng.uniform(1, 2, n) * (u.pc if seed else u.kpc)
        )
    return made.frame if kind == "frame" else made


@pytest.mark.interop
@pytest.mark.parametrize("second", ["icrs", "galactic", "in space", "frame"])
@pytest.mark.parametrize("first", ["icrs", "galactic", "in space", "frame"])
def test_astropy_gives_the_same(first: str, second: str) -> None:
    original = consumers.consumer("astropy.coordinates")
    u = consumers.consumer("astropy.units")
    left, right = coordinates(first, 24, 0), coordinates(second, 30, 1)

    def same(mine: Any, theirs: Any) -> None:
        assert mine._fields == theirs._fields
        for ours_, other in zip(mine, theirs, strict=True):
            assert (type(ours_), ours_.dtype, ours_.shape) == (type(other), other.dtype, other.shape)
            assert getattr(ours_, "unit", None) == getattr(other, "unit", None)
            np.testing.assert_allclose(np.asarray(ours_), np.asarray(other), rtol=1e-9, atol=1e-13)

    for given in (left, left[0], left[:1], left.reshape(1, 24)):
        for nth in (1, 2, 30):
            mine = ours.match_coordinates_sky(given, right, nth)
            same(mine, original.match_coordinates_sky(given, right, nth))
    square = ours.match_coordinates_sky(left.reshape(4, 6), right)  # astropy's functions raise an error
    for ours_, flat in zip(square, ours.match_coordinates_sky(left, right), strict=True):
        assert (ours_ == flat.reshape(4, 6)).all()
    for limit in (2000 * u.arcmin, 1.2 * u.rad, np.linspace(0, 90, 24) * u.deg):
        theirs = original.search_around_sky(left, right, limit)
        order = np.lexsort((theirs[1], theirs[0]))
        same(ours.search_around_sky(left, right, limit), type(theirs)(*(part[order] for part in theirs)))
    mutual = ours.match_one_to_one(left, right, 90 * u.deg)
    assert [type(part) for part in mutual[2:]] == [type(part) for part in theirs[2:]]
    there, back = original.match_coordinates_sky(left, right)[0], original.match_coordinates_sky(right, left)[0]
    assert mutual[0].tolist() == [i for i in range(24) if back[there[i]] == i]


@pytest.mark.interop
def test_coordinates_of_astropy_are_checked() -> None:
    library = consumers.consumer("astropy.coordinates")
    u = consumers.consumer("astropy.units")
    sky = coordinates("icrs", 9, 0)
    broken = library.SkyCoord([1.0, np.nan] * u.deg, [1.0, 2.0] * u.deg)
    for call, words in (
        (lambda: ours.match_coordinates_sky(broken, sky), "matchcoord: row 1 is nan"),
        (lambda: ours.match_coordinates_sky(sky, broken), "catalogcoord: row 1 is nan"),
        (lambda: ours.match_coordinates_sky(sky, sky[0]), "catalogcoord: has shape"),
        (lambda: ours.match_coordinates_sky(sky, SKY), "catalogcoord: expected SkyCoord"),
        (lambda: ours.search_around_sky(sky, sky, 1.0), "seplimit=1.0: expected an angle with its unit"),
        (lambda: ours.search_around_sky(sky, sky, 1 * u.m), "seplimit=.*expected an angle"),
        (lambda: ours.search_around_sky(sky, sky, -1 * u.deg), "seplimit=.*at least 0"),
        (lambda: ours.search_around_sky(SKY, SKY, 1 * u.deg), "seplimit: expected a number of degrees"),
        (lambda: ours.sky(ra=[1.0] * u.hourangle, dec=[1.0]), "ra: is in hourangle"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            call()
    held = consumers.consumer("astropy.table").Table({"ra": [1.0, 2.0] * u.deg, "dec": [1.0, 2.0] * u.deg})
    assert ours.sky(ra=held["ra"], dec=held["dec"]).dec.tolist() == [1.0, 2.0]
    hours = library.SkyCoord(sky.ra.to(u.hourangle), sky.dec.to(u.rad))
    np.testing.assert_allclose(ours.match_coordinates_sky(hours, sky)[1].deg, 0, atol=1e-13)
