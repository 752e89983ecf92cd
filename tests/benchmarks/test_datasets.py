"""Data of the benchmarks: reproducible, and with the properties that they claim."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.harness.datasets import made_up, photographs, sky
from tests.helpers.bench_checks import made_up_descriptors

torch = pytest.importorskip("torch", reason="most data are made with torch")

from benchmarks.harness.datasets import clusters, few_dimensions, gist, hard, patches, selections  # noqa: E402

MAKERS: dict[str, Any] = {
    "gaussian": (lambda: made_up.gaussian(50, 7, 9), (50, 9), (7, 9)),
    "clustered": (lambda: made_up.clustered(50, 7, 30, clusters=4), (50, 30), (7, 30)),
    "uniform": (lambda: made_up.uniform(50, 7, 9), (50, 9), (7, 9)),
}


@pytest.fixture
def descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a file of 900 made-up rows, name it in TONARI_SIFT, and return the rows."""
    photographs.principal_components.cache_clear()
    yield made_up_descriptors(900, tmp_path, monkeypatch)
    photographs.principal_components.cache_clear()


# --- arrays ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_made_up_data_has_its_shape_and_comes_twice_the_same(name: str) -> None:
    make, points_shape, queries_shape = MAKERS[name]
    first, second = make(), make()
    assert first.points.shape == points_shape
    assert first.queries.shape == queries_shape
    assert first.points.dtype == np.float32
    assert first.points.flags.c_contiguous
    assert first.queries.flags.c_contiguous
    np.testing.assert_array_equal(first.points, second.points)
    np.testing.assert_array_equal(first.queries, second.queries)


def test_seeds_differ_and_no_queries_is_none() -> None:
    assert made_up.gaussian(5, 0, 3).queries is None
    assert (made_up.gaussian(5, 0, 3).points != made_up.gaussian(5, 0, 3, seed=1).points).all()


def test_clusters_have_their_intrinsic_dimension_and_the_spread_of_images() -> None:
    rows = made_up.clustered(600, 0, 80, intrinsic=6, clusters=1, noise=0.1).points.astype(np.float64)
    strength = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    assert strength[:6].sum() / strength.sum() > 0.999
    assert strength[5] > 100 * strength[6]
    many = made_up.clustered(3000, 0, 80).points
    assert 90 < many.mean() < 110
    assert 40 < many.std() < 65


def test_clusters_wider_than_the_space_are_refused() -> None:
    with pytest.raises(ValueError, match="dimension 12 do not fit into width 8"):
        made_up.clustered(10, 0, 8)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_descriptors_come_from_the_named_file(descriptors: np.ndarray, dtype: str) -> None:
    data = photographs.sift_photo(30, dtype, m=10)
    assert data.points.dtype == dtype
    np.testing.assert_array_equal(data.points, descriptors[:30])
    np.testing.assert_array_equal(data.queries, descriptors[30:40])


def test_descriptors_refuse_what_they_cannot_give(
    descriptors: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="holds 900 rows, 899 points and 2 queries"):
        photographs.sift_photo(899, m=2)
    with pytest.raises(ValueError, match="'float64'"):
        photographs.sift_photo(5, "float64")
    torn = tmp_path / "torn.bvecs"
    torn.write_bytes(bytes(131))
    with pytest.raises(ValueError, match="131 bytes"):
        photographs.read_bvecs(torn)
    torn.write_bytes(bytes(132))
    with pytest.raises(ValueError, match="row 0 says width 0"):
        photographs.read_bvecs(torn)
    monkeypatch.delenv("TONARI_SIFT")
    monkeypatch.setattr(photographs, "SIFT_DIRECTORIES", (tmp_path / "nowhere",))
    monkeypatch.setattr(photographs, "CACHE", tmp_path)
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(RuntimeError, match=r"nowhere.* does not exist; computing them needs"):
        photographs.sift_photo(5)


# --- few dimensions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "d"), [("sift", 7), ("magnitudes", 10), ("magnitudes", 27), ("uniform", 3)])
def test_rows_come_twice_the_same_and_are_sound(kind: str, d: int, descriptors: np.ndarray) -> None:
    first, second = (few_dimensions.make(kind, 50, 9, d, "cpu") for _ in range(2))
    assert first.points.shape == (50, d)
    assert first.queries.shape == (9, d)
    for one, other in zip(first, second, strict=True):
        assert one.dtype == torch.float32
        assert one.is_contiguous()
        assert torch.equal(one, other)
        assert torch.isfinite(one).all()
    assert few_dimensions.make(kind, 50, 0, d, "cpu").queries is None


def test_principal_components_are_the_rows_rotated_and_cut(descriptors: np.ndarray) -> None:
    points, queries = photographs.pca_sift(800, 100, 27)
    whole = np.concatenate([points, queries]).astype(np.float64)
    spread = whole.var(axis=0)
    assert (spread[:5] > spread[-5:]).all()
    # A projection lengthens no row, and this one keeps more than any 27 of 128 equal dimensions would.
    before = ((descriptors[:, None].astype(np.float64) - descriptors[None, :50]) ** 2).sum(axis=2)
    after = ((whole[:, None] - whole[None, :50]) ** 2).sum(axis=2)
    assert (after <= before * (1 + 1e-5) + 1e-2).all()
    assert after.sum() > 1.05 * 27 / 128 * before.sum()
    np.testing.assert_array_equal(photographs.pca_sift(800, 100, 4).points, points[:, :4])
    for d in (0, 28):
        with pytest.raises(ValueError, match=f"1 to 27, got d = {d}"):
            photographs.pca_sift(5, 1, d)


def test_rows_beyond_the_real_ones_are_moved_copies(descriptors: np.ndarray) -> None:
    real = photographs.principal_components()[:, :6].astype(np.float64)
    points, queries = photographs.pca_sift(2000, 5000, 6)
    n, m = photographs.real_rows(900, 2000, 5000)
    assert (n, m) == (750, 150)
    np.testing.assert_array_equal(points[:n], real[:n].astype(np.float32))
    np.testing.assert_array_equal(queries[:m], real[n:].astype(np.float32))
    for copies, source in ((points[n:], real[:n]), (queries[m:], real[n:])):
        apart = np.sqrt(((copies[:300, None] - source[None]) ** 2).sum(axis=2).min(axis=1))
        assert (apart > 0).all()
        assert apart.mean() < 1.2 * photographs.PCA_NOISE * np.sqrt(6)


@pytest.mark.parametrize(
    ("total", "n", "m", "expected"),
    [
        (900, 500, 400, (500, 400)),
        (900, 10, 5000, (10, 890)),
        (900, 5000, 10, (890, 10)),
        (900, 5000, 5000, (750, 150)),
        (900, 800, 5000, (750, 150)),
        (900, 5000, 0, (900, 0)),
    ],
)
def test_points_and_queries_share_no_real_row(total: int, n: int, m: int, expected: tuple[int, int]) -> None:
    assert photographs.real_rows(total, n, m) == expected


def test_magnitudes_have_their_columns() -> None:
    whole = sky.magnitudes(4000, 0, 27).points.astype(np.float64)
    for model in range(3):
        bands = whole[:, 5 * model : 5 * model + 5]
        np.testing.assert_allclose(whole[:, 15 + 4 * model : 19 + 4 * model], -np.diff(bands), atol=1e-5)
    # Bands are correlated; a galaxy is fainter under the point-spread function; faint objects have larger errors.
    assert (np.corrcoef(whole[:, :5].T) > 0.8).all()
    extent = whole[:, :5] - whole[:, 5:10]
    assert (extent.mean(axis=1) > 0.05).mean() > 0.2
    noise = np.abs(np.diff(extent, axis=1)).mean(axis=1)
    faint = whole[:, 7] > np.median(whole[:, 7])
    assert noise[faint].mean() > 1.3 * noise[~faint].mean()
    np.testing.assert_array_equal(sky.magnitudes(100, 0, 5).points, sky.magnitudes(100, 0, 27).points[:, :5])
    assert (sky.magnitudes(10, 0, 5).points != sky.magnitudes(10, 0, 5, seed=1).points).any()
    with pytest.raises(ValueError, match="got d = 28"):
        sky.magnitudes(10, 1, 28)


def test_pixels_are_whole_numbers_without_copies_while_there_are_enough() -> None:
    pytest.importorskip("skimage", reason="pixels come from photographs inside scikit-image")
    pytest.importorskip("skimage", reason="pixels come from the photographs inside scikit-image")
    points, queries = photographs.pixels(3000, 200)
    assert points.shape == (3000, 5)
    whole = np.concatenate([points, queries])
    assert (whole == np.rint(whole)).all()
    assert whole[:, :3].min() >= 0
    assert whole[:, :3].max() <= 255
    assert len(np.unique(whole, axis=0)) == 3200


@pytest.mark.parametrize("kind", ["sift", "magnitudes", "uniform"])
def test_a_device_draws_by_the_same_law(kind: str, descriptors: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_dimensions, "BLOCK", 700)
    if kind == "sift":
        here = few_dimensions._copies_on_device(kind, 2000, 3000, 5, "cpu")
        n, m = photographs.real_rows(900, 2000, 3000)
        host = photographs.pca_sift(2000, 3000, 5)
        np.testing.assert_array_equal(here.points[:n], host.points[:n])
        np.testing.assert_array_equal(here.queries[:m], host.queries[:m])
        here, host = torch.cat(list(here)), np.concatenate(host)
    else:
        here = torch.cat(list(few_dimensions.Law(kind, 5, "cpu", 3).blocks(4000)))
        host = few_dimensions.make(kind, 4000, 0, 5, "cpu").points.numpy()
    assert torch.isfinite(here).all()
    np.testing.assert_allclose(here.mean(dim=0), host.mean(axis=0), atol=0.1 * host.std())
    np.testing.assert_allclose(here.std(dim=0), host.std(axis=0), rtol=0.1)


def test_a_stream_has_fresh_chunks_of_the_sizes_asked_for() -> None:
    found = list(few_dimensions.chunks("magnitudes", 1000, 300, 4, "cpu"))
    assert [len(chunk) for chunk in found] == [300, 300, 300, 100]
    assert len(torch.cat(found).unique(dim=0)) == 1000


def test_few_dimensions_refuse_what_they_have_not() -> None:
    with pytest.raises(ValueError, match="got 'moons'"):
        few_dimensions.make("moons", 5, 5, 3, "cpu")
    with pytest.raises(ValueError, match="5 dimensions, not 3"):
        few_dimensions.make("pixels", 5, 5, 3, "cpu")


# --- for NN-Descent --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "d"), [("sift", 128), ("mixture", 40), ("gaussian", 7)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_points_come_twice_the_same_and_are_sound(kind: str, d: int, dtype: str, descriptors: np.ndarray) -> None:
    first, second = (clusters.make(kind, 1700, d, dtype, "cpu") for _ in range(2))
    assert first.shape == (1700, d)
    assert first.dtype == getattr(torch, dtype)
    assert torch.equal(first, second)
    assert torch.isfinite(first).all()
    assert len(first.unique(dim=0)) == 1700


def test_copies_of_descriptors_are_their_blocks_turned_and_moved(descriptors: np.ndarray) -> None:
    found = clusters.make("sift", 2250, 128, "float32", "cpu").double()
    real = torch.from_numpy(descriptors).double()
    assert torch.equal(found[:900], real)
    between = torch.cdist(real, real)
    for copy in (found[900:1800], found[1800:]):
        # Rotations keep distances, so only the noise differs.
        expected = between[: len(copy), : len(copy)]
        apart = (torch.cdist(copy, copy) ** 2 - expected**2) / (2 * 128 * clusters.SIFT_NOISE**2)
        off = ~torch.eye(len(copy), dtype=torch.bool)
        assert apart[off].mean().item() == pytest.approx(1, abs=0.1)
        # They are not real rows, but lie in the same region.
        assert torch.cdist(copy, real).min() > 100
        assert torch.linalg.vector_norm(copy.mean(dim=0) - real.mean(dim=0)) < 0.1 * expected.mean()


def test_clusters_are_as_thin_as_they_say() -> None:
    d = 60
    law = clusters.mixture(1, d, "cpu")
    first = law(4000)
    spread = torch.linalg.eigvalsh(first.double().T.cov()).flip(0)
    wide = int((spread > 2 * clusters.NOISE**2).sum())
    assert clusters.INTRINSIC[0] <= wide <= clusters.INTRINSIC[1]
    assert (spread[wide:].mean() / clusters.NOISE**2).item() == pytest.approx(1, rel=0.05)
    assert (spread[:wide].sum() / (d * clusters.STRENGTH**2)).item() == pytest.approx(1, rel=0.05)
    # Variances fall as 1, 1/2, 1/3, ...
    assert (spread[0] / spread[9]).item() == pytest.approx(10, rel=0.2)
    assert not torch.equal(law(4000), first)


def test_gist_is_made_of_windows_of_photographs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("skimage", reason="the photographs are those inside scikit-image")
    monkeypatch.setattr(gist, "PICTURE", 80)
    found = clusters.make("gist", 300, 960, "float32", "cpu")
    assert torch.equal(found, clusters.make("gist", 300, 960, "float32", "cpu"))
    assert (found >= 0).all()
    assert (found.mean(dim=1) > 0).all()
    assert len(found.unique(dim=0)) == 300


def test_patches_are_windows_of_photographs_no_two_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = np.arange(20 * 18 * 3, dtype=np.uint16).reshape(20, 18, 3) % 251
    too_small = np.zeros((15, 40, 3), np.uint8)
    pictures = [gradient.astype(np.uint8), too_small, 255 - gradient.astype(np.uint8)]
    monkeypatch.setattr(patches.photographs, "colour_photographs", lambda: pictures)
    expected = {
        picture[top : top + 16, left : left + 16].tobytes()
        for picture in (pictures[0], pictures[2])
        for top in range(5)
        for left in range(3)
    }
    whole = hard.make("patches", 25, 5, 768, "cpu")
    assert tuple(whole.points.shape) == (25, 768)
    rows = torch.cat(whole).to(torch.uint8).numpy()
    assert {row.tobytes() for row in rows} == expected
    assert len(expected) == 30
    assert torch.equal(hard.make("patches", 30, 0, 768, "cpu").points[:25], whole.points)
    with pytest.raises(RuntimeError, match="31 windows were asked for, the photographs have 30"):
        hard.make("patches", 31, 0, 768, "cpu")
    with pytest.raises(ValueError, match="768 dimensions, not 9"):
        hard.make("patches", 3, 0, 9, "cpu")


def test_variances_of_slow_topics_fall_slowly() -> None:
    """The share of the variance in the strongest direction follows from the power of i."""
    shares = {}
    for kind in ("topics", "slow topics"):
        rows = hard.make(kind, 20_000, 0, 64, "cpu").points.double()
        spread = torch.linalg.eigvalsh(rows.T.cov()).flip(0)
        shares[kind] = float(spread[:8].sum() / spread.sum())
    assert shares["topics"] > shares["slow topics"] + 0.1


def test_means_over_cells_are_those_of_the_pixels() -> None:
    maps = torch.rand((70, 90, 1, 2), generator=torch.Generator().manual_seed(1))
    place = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.3, 0.7, 0.5]])
    found = gist.means(gist.integral(maps), place).view(3, 4, 4, 2)
    # The smallest window has 32 pixels and lies in the corner: cells of 8.
    expected = maps[:32, :32, 0].view(4, 8, 4, 8, 2).mean(dim=(1, 3))
    torch.testing.assert_close(found[0], expected)
    # The largest window has the whole height, at the right edge.
    whole = maps[:, -70:, 0].double().mean(dim=(0, 1)).float()
    torch.testing.assert_close(found[1].mean(dim=(0, 1)), whole, rtol=0.05, atol=0)
    assert torch.isfinite(found).all()


def test_filters_answer_to_their_orientation() -> None:
    y, x = torch.meshgrid(torch.arange(64.0), torch.arange(64.0), indexing="ij")
    stripes = {0: 127 + 100 * torch.cos(2 * torch.pi * 0.3 * x), 4: 127 + 100 * torch.cos(2 * torch.pi * 0.3 * y)}
    for expected, picture in stripes.items():
        finest = gist.responses(picture[:, :, None].expand(-1, -1, 3))[8:-8, 8:-8].mean(dim=(0, 1, 2))[:8]
        assert int(finest.argmax()) == expected


def test_clusters_refuse_what_they_have_not() -> None:
    with pytest.raises(ValueError, match="got 'moons'"):
        clusters.make("moons", 5, 5, "float32", "cpu")
    with pytest.raises(ValueError, match="128 dimensions, not 3"):
        clusters.make("sift", 5, 3, "float32", "cpu")


# --- for exact search on a GPU --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in hard.KINDS if kind not in ("sift", "gist", "patches")])
def test_hard_rows_have_their_shape_and_come_twice_the_same(kind: str) -> None:
    first, second = (hard.make(kind, 300, 20, 9, "cpu") for _ in range(2))
    assert tuple(first.points.shape) == (300, 9)
    assert tuple(first.queries.shape) == (20, 9)
    assert first.points.dtype == torch.float32
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(first.points[:20], first.queries)
    assert hard.make(kind, 300, 0, 9, "cpu").queries is None


def test_data_do_not_depend_on_where_they_are_kept_and_barely_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = hard.make("tight", 300, 0, 9, "cpu").points
    assert torch.equal(whole, hard.make("tight", 300, 0, 9, "cpu", host=True).points)
    monkeypatch.setattr(hard, "BLOCK", 9 * 64)
    assert hard.make("tight", 300, 0, 9, "cpu").points.shape == whole.shape


def test_hard_data_are_what_their_names_say() -> None:
    far = hard.make("offset 1e6", 2000, 0, 4, "cpu").points.double()
    assert abs(far.mean() - 1e6) < 1
    assert torch.equal(far, (far * 16).round() / 16)
    assert len(hard.make("copies", 5000, 0, 4, "cpu").points.unique(dim=0)) == hard.DISTINCT
    assert 150 < len(hard.make("copies 16", 3200, 0, 4, "cpu").points.unique(dim=0)) <= 200
    tight = hard.make("tight", 500, 0, 16, "cpu").points.double()
    apart = torch.cdist(tight, tight)
    same = apart < 100
    assert len(same.unique(dim=0)) == 20
    assert apart[~same].min() > 1e4


def test_real_descriptors_are_those_of_the_file(descriptors: np.ndarray) -> None:
    points, queries = hard.make("sift", 20, 10, 128, "cpu")
    assert points.dtype == torch.float32
    np.testing.assert_array_equal(points.numpy(), descriptors[:20])
    np.testing.assert_array_equal(queries.numpy(), descriptors[20:30])
    with pytest.raises(ValueError, match="128 dimensions, not 64"):
        hard.make("sift", 20, 0, 64, "cpu")
    with pytest.raises(ValueError, match="got 'gauss'"):
        hard.make("gauss", 20, 0, 64, "cpu")


# --- to select from -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int32", "uint8"])
@pytest.mark.parametrize("kind", ["random", "ascending", "descending", "equal"])
def test_data_have_their_type_and_come_twice_the_same(kind: str, dtype: str) -> None:
    first, second = (selections.make(kind, 3, 5000, dtype, "cpu") for _ in range(2))
    assert first.shape == (3, 5000)
    assert first.dtype == getattr(torch, dtype)
    assert first.is_contiguous()
    assert torch.equal(first, second)
    steps = first[:, 1:].double() - first[:, :-1].double()
    if kind == "random":
        assert (steps < 0).any(dim=1).all()
        assert len(first.double().unique()) > 200
    else:
        assert (steps * {"ascending": 1, "descending": -1, "equal": 1}[kind] >= 0).all()
        distinct = {"ascending": selections.LEVELS[dtype], "descending": selections.LEVELS[dtype], "equal": 1}[kind]
        assert len(first[0].double().unique()) == min(5000, distinct)


def test_exponential_values_have_their_law() -> None:
    found = selections.make("exponential", 40, 5000, "float32", "cpu").double()
    assert (found >= 0).all()
    assert found.mean().item() == pytest.approx(1, abs=0.02)
    assert (found > 2).double().mean().item() == pytest.approx(np.exp(-2), abs=0.005)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
def test_repeated_values_are_sixteen(dtype: str) -> None:
    values, counts = selections.make("repeated", 4, 4000, dtype, "cpu").unique(return_counts=True)
    assert values.tolist() == list(range(16))
    assert counts.min() > 800


def test_leading_bits_are_equal_and_the_others_are_not() -> None:
    bits = selections.make("leading", 4, 4000, "float32", "cpu").view(torch.int32)
    assert (bits >> 12).unique().tolist() == [0x3F800000 >> 12]
    for bit in range(12):
        assert 0.4 < (bits >> bit & 1).double().mean() < 0.6


def test_selections_refuse_what_they_cannot_give() -> None:
    with pytest.raises(ValueError, match="leading bits come as float32, got 'uint8'"):
        selections.make("leading", 1, 1, "uint8", "cpu")
    with pytest.raises(ValueError, match="got 'gauss'"):
        selections.make("gauss", 1, 1, "float32", "cpu")


def test_shapes_of_a_pool_are_views_of_its_beginning() -> None:
    pool = selections.Pool(60, "float32", "cpu")
    wide, tall = pool.view(3, 20), pool.view(10, 5)
    assert torch.equal(wide.flatten()[:50], tall.flatten())
    assert wide.data_ptr() == tall.data_ptr()


def test_sift_distances_are_those_of_the_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = np.random.default_rng(1).integers(0, 256, (30, 128), dtype=np.uint8)
    photographs.write_bvecs(tmp_path / "rows.bvecs", rows)
    monkeypatch.setenv("TONARI_SIFT", str(tmp_path / "rows.bvecs"))
    found = selections.make("sift", 6, 20, "float32", "cpu").numpy()
    apart = rows[20:26, None].astype(np.float64) - rows[None, :20]
    # The squares are exact; torch's square root is not always the nearest float.
    np.testing.assert_allclose(found, np.sqrt((apart**2).sum(2)), rtol=2e-7)


def test_sift_makes_do_with_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TONARI_SIFT", raising=False)
    monkeypatch.setattr(photographs, "SIFT_DIRECTORIES", ())
    assert selections.sift_size(100, 5000) == (100, 5000)
    assert selections.sift_size(8192, 65536) == (2000, 8000)
    assert selections.sift_rows(10_000).shape == (10_000, 128)
    with pytest.raises(ValueError, match="holds 10000 descriptors, 10001 were asked for"):
        selections.sift_rows(10_001)
