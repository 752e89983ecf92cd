"""The border: what passes is not copied, and what does not is told why and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tonari.inputs import (
    ACCEPTED,
    ACCEPTED_NAMES,
    BFLOAT16,
    as_floats,
    as_rows,
    check_k,
    check_nonnegative,
    check_output_path,
    check_threads,
    dtype_name,
    dtype_of,
    held,
    kind_of,
    like,
    name_of_dtype,
    parse_memory,
    same_width,
)


@pytest.mark.parametrize(("name", "dtype"), list(zip(ACCEPTED_NAMES, ACCEPTED, strict=True)))
def test_good_rows_are_not_copied(name: str, dtype: Any) -> None:
    x = np.ones((4, 3), name)
    x.flags.writeable = False
    rows = as_rows(x, "points")
    assert type(rows) is np.ndarray
    assert (rows.dtype, rows.itemsize, rows.nbytes) == (dtype, x.itemsize, x.nbytes)
    assert np.shares_memory(rows, x)
    assert np.shares_memory(as_rows(rows, "points"), x)  # chunks of a stream are checked twice


def test_a_memory_map_is_not_copied(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((5, 2), np.float32))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    rows = as_rows(mapped, "points")
    assert type(rows) is np.ndarray
    assert np.shares_memory(rows, mapped)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::2],
        lambda x: x[:, ::-1],
        lambda x: x[:, 1:],
        lambda x: x.T,
        np.asfortranarray,
        lambda x: x.astype(">f4"),
        lambda x: x.view(np.matrix),
        lambda x: np.frombuffer(b"?" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape),
    ],
)
def test_other_layouts_give_the_same_rows(view: Any) -> None:
    x = view(np.arange(24, dtype=np.float32).reshape(6, 4))
    rows = as_rows(x, "points")
    assert rows.flags.c_contiguous
    assert rows.flags.aligned
    assert rows.dtype == np.float32
    assert rows.dtype.isnative
    np.testing.assert_array_equal(rows, np.asarray(x))


def test_lists_of_floats() -> None:
    rows = as_rows([[0.5, 1], [2, 3]], "points")
    assert rows.dtype == np.float64
    assert rows.tolist() == [[0.5, 1.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (
            [[1, 2], [3, 4]],
            TypeError,
            r"points: int64 is not supported, only float32, .*try numpy.asarray\(x, dtype=numpy.float32\)",
        ),
        (np.zeros((2, 2), np.uint16), TypeError, "uint16 is not supported"),
        (np.zeros((2, 2), bool), TypeError, r"bool .*\.astype\(numpy.uint8\)"),
        (np.zeros((2, 2), np.complex64), TypeError, r"complex64 .*\.view\(numpy.float32\)"),
        (np.zeros((2, 2), np.complex128), TypeError, r"complex128 .*\.view\(numpy.float64\)"),
        (np.zeros((2, 2), np.longdouble), TypeError, r"longdouble|float128 .*\.astype\(numpy.float64\)"),
        (np.array([["a", "b"]]), TypeError, "text is not supported"),
        (np.array([[1.0, None]]), TypeError, "object"),
        (None, TypeError, "object"),
        ([[1.0], [1.0, 2.0]], ValueError, "points: cannot be read as an array of shape"),
        (np.zeros(5, np.float32), ValueError, r"got \(5,\); use .reshape\(1, -1\)"),
        (np.zeros((2, 3, 4), np.float32), ValueError, r"got \(2, 3, 4\); use .reshape\(2, -1\)"),
        (np.float32(3), ValueError, r"expected shape \(n, d\), got \(\)"),
        (np.zeros((0, 4), np.float32), ValueError, r"shape \(0, 4\) is empty"),
        (np.zeros((4, 0), np.float32), ValueError, r"shape \(4, 0\) is empty"),
        ([], ValueError, "is empty"),
        (np.ma.array(np.ones((2, 2)), mask=np.eye(2)), ValueError, r"masked values; .*\.filled"),
    ],
)
def test_refuses(x: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_rows(x, "points")


def test_an_unmasked_array_passes() -> None:
    assert as_rows(np.ma.array(np.ones((2, 2))), "points").tolist() == [[1, 1], [1, 1]]


def test_refuses_sparse() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    for matrix in (sparse.eye(3, format="csr"), sparse.coo_array(np.eye(3))):
        with pytest.raises(TypeError, match=r"points: sparse input .*\.toarray"):
            as_rows(matrix, "points")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, "bfloat16", np.float32, np.float64])
def test_names_the_first_row_that_is_not_finite(value: float, dtype: Any) -> None:
    x = np.zeros((50, 7), dtype)
    x[31, 4] = x[31, 6] = x[40, 0] = value
    with pytest.raises(ValueError, match=rf"queries: row 31 has a value that is not finite \({value} in column 4\)"):
        as_rows(x, "queries")


@pytest.mark.parametrize("sign", [-1, 1])
def test_names_the_first_row_whose_squares_overflow(sign: int) -> None:
    x = np.full((6, 5), sign * 1e150)
    assert as_rows(x, "points") is not None
    x[4, 2] = sign * 1.01e150
    with pytest.raises(ValueError, match=r"row 4 has a value whose square overflows float64 .* in column 2.*1e\+150"):
        as_rows(x, "points")


def test_largest_values_of_other_dtypes_pass() -> None:
    for dtype in (np.float16, np.float32, "bfloat16"):
        assert as_rows(np.full((2, 2), ml_dtypes.finfo(dtype).max, dtype), "points").dtype == dtype_of(dtype)


def test_all_bfloat16_have_their_values() -> None:
    x = np.arange(2**16, dtype=np.uint16).view("bfloat16").reshape(256, 256)
    for rows in (x, x[::2, 1::3], x.T):
        assert as_floats(held(rows)).tobytes() == rows.astype(np.float32).tobytes()
    assert as_floats(x[0, :1].astype(np.float16)).dtype == np.float16


def test_names_of_bfloat16() -> None:
    for dtype in ("bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16), BFLOAT16):
        assert dtype_of(dtype) == BFLOAT16
    for dtype in ("float16", "V2", [("b", "V2")], ml_dtypes.float8_e5m2, np.uint16):
        assert dtype_of(dtype) == np.dtype(dtype) != BFLOAT16
    for x in (np.zeros(3, ml_dtypes.bfloat16), np.zeros(3, BFLOAT16)):
        assert name_of_dtype(x) == dtype_name(x.dtype) == "bfloat16"


def test_numpy_does_not_compute_with_bytes_of_bfloat16() -> None:
    rows = held(np.ones((4, 3), "bfloat16"))
    for compute in (np.isfinite, np.abs, np.square, lambda x: x + x, lambda x: x.astype(np.float64), np.max):
        with pytest.raises((TypeError, ValueError)):
            compute(rows)


@pytest.mark.process
def test_bfloat16_imports_nothing() -> None:
    """Without ml_dtypes and torch, and without their being imported where they are there."""
    code = """
import sys
import numpy as np, tonari
from tonari.inputs import BFLOAT16
plan = tonari.plan(4, 2, 3, 1, dtype="bfloat16")
rows = np.array([[0x3F80, 0, 0], [0, 0x4040, 0], [0, 0, 0xC000], [0x7F7F, 0, 0]], np.uint16).view(BFLOAT16)
print(plan.dtype, tonari.search(rows[:2], rows, 1).indices.ravel().tolist())
print(sorted({"ml_dtypes", "torch", "jax"} & set(sys.modules)))
"""
    source = str(Path(sys.modules["tonari"].__file__).parents[1])
    child = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout.splitlines() == ["bfloat16 [0, 1]", "[]"]


def test_same_width() -> None:
    same_width(np.zeros((2, 3)), np.zeros((5, 3)))
    with pytest.raises(ValueError, match=r"queries of shape \(2, 3\) and points of shape \(5, 4\)"):
        same_width(np.zeros((2, 3)), np.zeros((5, 4)))


def test_check_nonnegative() -> None:
    x = np.zeros((9, 4), np.float32)
    x[2, 2] = -0.0
    check_nonnegative(x, "points")
    check_nonnegative(x.astype(np.uint8), "points")
    x[7, 3] = -1e-30
    with pytest.raises(ValueError, match=r"points: row 7 has a negative value .* in column 3"):
        check_nonnegative(x, "points")
    with pytest.raises(ValueError, match="queries: row 0 has a negative value"):
        check_nonnegative(np.full((1, 1), -3, np.int8), "queries")


def test_check_k() -> None:
    assert check_k(3, 3, without_self=False) == 3
    assert type(check_k(np.int64(1), 3, without_self=True)) is int
    for bad in (True, np.True_, 3.0, "3", None):
        with pytest.raises(TypeError, match=r"k=.*expected a whole number"):
            check_k(bad, 10, without_self=False)
    for small in (0, -2):
        with pytest.raises(ValueError, match="the smallest k is 1"):
            check_k(small, 10, without_self=False)
    with pytest.raises(ValueError, match=r"k=11: the largest k is 10, as there are 10 points$"):
        check_k(11, 10, without_self=False)
    with pytest.raises(ValueError, match=r"k=10: the largest k is 9, as there are 10 points and a point is not"):
        check_k(10, 9, without_self=True)
    with pytest.raises(ValueError, match="k=1: the largest k is 0, as there is 1 point and"):
        check_k(1, 0, without_self=True)


class _Device(str):
    """Prints as "cuda:1" and has a type, "cuda"."""

    __slots__ = ()

    @property
    def type(self) -> str:
        return self.split(":")[0]


class _Tensor:
    """As much of a torch tensor as the border looks at."""

    layout, is_nested = "torch.strided", False

    def __init__(self, array: Any, dtype: str, device: str = "cpu") -> None:
        self._array, self.dtype, self.device = array, f"torch.{dtype}", _Device(device)

    def detach(self) -> _Tensor:
        return self

    def resolve_neg(self) -> _Tensor:
        return self

    def numpy(self) -> Any:
        return self._array


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = types.ModuleType("torch")
    module.Tensor = _Tensor  # type: ignore[attr-defined]
    module.from_numpy = lambda array: _Tensor(array, array.dtype.name)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_tensors(torch: Any) -> None:
    x = np.ones((3, 2), np.float32)
    tensor = _Tensor(x, "float32")
    assert kind_of(tensor) == "torch"
    assert kind_of(x) == "numpy"
    assert np.shares_memory(as_rows(tensor, "points"), x)
    back = like("torch", x)
    assert isinstance(back, torch.Tensor)
    assert np.shares_memory(back.numpy(), x)
    with pytest.raises(ValueError, match=r"points: is on cuda:1, expected host memory; use .cpu\(\)"):
        as_rows(_Tensor(x, "float32", "cuda:1"), "points")
    with pytest.raises(ValueError, match=r"points: is on mps:0, expected host memory or a CUDA device; use .cpu\(\)"):
        as_rows(_Tensor(x, "float32", "mps:0"), "points")
    with pytest.raises(TypeError, match=r"float8_e5m2 is not supported.*\.to\(torch.float32\)"):
        as_rows(_Tensor(None, "float8_e5m2"), "points")


class _HostArray:
    """An array of a library that speaks DLPack, in host memory, as JAX's are on a machine without a GPU."""

    def __init__(self, array: Any) -> None:
        self._array, self.dtype, self.shape = array, array.dtype, array.shape

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._array


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_host_memory_of_other_libraries_is_read_as_numpy(dtype: str) -> None:
    x = np.ones((3, 2), dtype)
    assert np.shares_memory(as_rows(_HostArray(x), "points"), x)
    assert kind_of(_HostArray(x)) == "numpy"


def test_records_are_named() -> None:
    with pytest.raises(TypeError, match="points: a record is not supported"):
        as_rows(np.zeros((2, 2), [("a", "f4")]), "points")


def test_values_can_be_left_to_others() -> None:
    x = np.full((3, 2), np.nan, np.float32)
    assert as_rows(x, "points", check_values=False) is not None
    with pytest.raises(ValueError, match="row 0"):
        as_rows(x, "points")


def test_torch_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    x = np.ones((3, 2), np.float32)
    assert kind_of(x) == kind_of([[1.0]]) == "numpy"
    assert like("numpy", x) is x
    as_rows(x, "points")
    assert "torch" not in sys.modules


def test_check_threads() -> None:
    assert check_threads(None) is None
    assert check_threads(np.int32(7)) == 7
    for bad in (True, 2.0, "2"):
        with pytest.raises(TypeError, match="threads="):
            check_threads(bad)
    for small in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            check_threads(small)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (None, None),
        (5, 5),
        (np.int64(2**40), 2**40),
        ("1B", 1),
        ("3 kB", 3000),
        ("3KiB", 3072),
        ("2GB", 2 * 10**9),
        ("2GiB", 2**31),
        (" 0.5 MiB ", 2**19),
        ("512mb", 512 * 10**6),
        ("1TB", 10**12),
        ("1tib", 2**40),
    ],
)
def test_parse_memory(text: Any, size: int | None) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize("bad", ["", "GB", "2", "2G", "2 G B", "-2GB", "1e9B", "2GB!", "1,5GB", "0MB", "0.1B", 0, -5])
def test_parse_memory_refuses(bad: Any) -> None:
    with pytest.raises(ValueError, match="memory="):
        parse_memory(bad)


@pytest.mark.parametrize("bad", [True, 2.5e9, b"2GB"])
def test_parse_memory_refuses_types(bad: Any) -> None:
    with pytest.raises(TypeError, match="a whole number of bytes or a string"):
        parse_memory(bad)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_check_output_path_refuses_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "link.npz").symlink_to("pipe.npz")
    (tmp_path / "null.npz").symlink_to("/dev/null")
    for name in ("pipe.npz", "link.npz", "null.npz"):
        with pytest.raises(FileExistsError, match=rf"{name}: is a device, a pipe or a socket; name a regular file"):
            check_output_path(tmp_path / name, (".npz",))
    (tmp_path / "new.npz").symlink_to("none.npz")  # what it points to is made
    assert check_output_path(tmp_path / "new.npz", (".npz",)) == tmp_path / "new.npz"


def test_check_output_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "graph.NPZ"
    assert check_output_path(str(target), (".npz",)) == target
    assert not target.exists()
    target.write_bytes(b"old")
    assert check_output_path(target, {".npy", ".npz"}) == target
    with pytest.raises(ValueError, match=r"has the suffix '.txt', expected .npy, .npz"):
        check_output_path(tmp_path / "graph.txt", (".npz", ".npy"))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        check_output_path(tmp_path / "no" / "graph.npz", (".npz",))
    with pytest.raises(NotADirectoryError, match="is a file"):
        check_output_path(target / "graph.npz", (".npz",))
    (tmp_path / "dir.npz").mkdir()
    with pytest.raises(IsADirectoryError, match="name a file in it"):
        check_output_path(tmp_path / "dir.npz", (".npz",))
    with pytest.raises(OSError, match="too long"):
        check_output_path(tmp_path / f"{'x' * 5000}.npz", (".npz",))
    monkeypatch.setattr(os, "access", lambda path, mode: not (Path(path) == tmp_path and mode & os.W_OK))
    with pytest.raises(PermissionError, match="cannot be written to"):
        check_output_path(target, (".npz",))
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert check_output_path("here.npz", (".npz",)) == Path("here.npz")
